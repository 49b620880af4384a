//! The serializer that writes canonical JSON.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};

use super::MAX_DEPTH;
use super::keys::KeyText;
use crate::declare::error::{CanonicalError, prefix};
use crate::declare::number::{Number, NumberFault, push_f64, push_i64, push_u64};
use crate::declare::parse::parse_json;

/// How `serde_json` hands over a number under `arbitrary_precision`: a struct of this name with one member of this name, a text.
const NUMBER: &str = "$serde_json::private::Number";
/// How `serde_json` hands over a text that is JSON already, under `raw_value`.
const RAW: &str = "$serde_json::private::RawValue";

/// Canonical JSON in the making.
pub(super) struct Writer {
    out: Vec<u8>,
    /// Room to put the members of one object in order.
    sorted: Vec<u8>,
    /// The keys of the objects that are open, unescaped, one after the other.
    keys: String,
    /// The members of the objects that are open.
    members: Vec<Member>,
    depth: usize,
}

/// One member of an open object: its key in `Writer::keys`, its text in `Writer::out`.
#[derive(Clone, Copy)]
struct Member {
    key: (usize, usize),
    text: (usize, usize),
}

/// A refusal on its way up: each level puts its segment before the path.
#[derive(Debug)]
pub(super) struct Fault(Box<CanonicalError>);

impl Fault {
    pub(super) fn new(error: CanonicalError) -> Self {
        Self(Box::new(error))
    }

    pub(super) fn into_error(self) -> CanonicalError {
        *self.0
    }

    #[cold]
    fn under(mut self, segment: &str) -> Self {
        match &mut *self.0 {
            CanonicalError::NonFinite { path }
            | CanonicalError::IntegerOutOfRange { path }
            | CanonicalError::NumberText { path }
            | CanonicalError::DuplicateKey { path, .. }
            | CanonicalError::KeyNotText { path }
            | CanonicalError::Refused { path, .. } => prefix(path, segment),
            CanonicalError::TooDeep => {}
        }
        self
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(CanonicalError::Refused { path: String::new(), message: message.to_string() })
    }
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            out: Vec::with_capacity(1024),
            sorted: Vec::new(),
            keys: String::with_capacity(128),
            members: Vec::with_capacity(16),
            depth: 0,
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.out
    }

    fn open(&mut self, bracket: u8) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(CanonicalError::TooDeep));
        }
        self.out.push(bracket);
        Ok(())
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        self.out.push(bracket);
    }

    fn open_variant(&mut self, variant: &str) -> Result<(), Fault> {
        self.open(b'{')?;
        self.text(variant);
        self.out.push(b':');
        Ok(())
    }

    /// Appends a text with the escapes of RFC 8785, section 3.2.2.2.
    fn text(&mut self, text: &str) {
        self.out.reserve(text.len() + 2);
        self.out.push(b'"');
        let mut rest = text.as_bytes();
        loop {
            let plain = plain_prefix(rest);
            self.out.extend_from_slice(&rest[..plain]);
            match rest.get(plain) {
                Some(byte) => self.escape(*byte),
                None => break,
            }
            rest = &rest[plain + 1..];
        }
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'\x08' => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            b'\x0c' => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => byte,
            control => {
                let digits = [HEX[usize::from(control >> 4)], HEX[usize::from(control & 15)]];
                self.out.extend_from_slice(b"\\u00");
                self.out.extend_from_slice(&digits);
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }

    fn double(&mut self, number: f64) -> Result<(), Fault> {
        if !number.is_finite() {
            return Err(Fault::new(CanonicalError::NonFinite { path: String::new() }));
        }
        push_f64(&mut self.out, number);
        Ok(())
    }

    /// A number that came as a text. It is written as the same number would be that came as a number.
    fn number_text(&mut self, text: &str) -> Result<(), Fault> {
        match Number::read(text) {
            Ok(Number::Natural(number)) => push_u64(&mut self.out, number),
            Ok(Number::Negative(number)) => push_i64(&mut self.out, number),
            Ok(Number::Double(number)) => push_f64(&mut self.out, number),
            Err(NumberFault::NonFinite) => return Err(Fault::new(CanonicalError::NonFinite { path: String::new() })),
            Err(NumberFault::Grammar) => return Err(Fault::new(CanonicalError::NumberText { path: String::new() })),
        }
        Ok(())
    }

    fn raw_text(&mut self, text: &str) -> Result<(), Fault> {
        let value = parse_json(text).map_err(serde::ser::Error::custom)?;
        value.serialize(self)
    }
}

/// How many bytes at the front stand for themselves. Whole blocks are looked at without branches, which the compiler turns into wide instructions.
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let escaped = |byte: &u8| (*byte < 0x20) | (*byte == b'"') | (*byte == b'\\');
    let blocks = bytes.chunks_exact(BLOCK).take_while(|block| !block.iter().fold(false, |any, byte| any | escaped(byte)));
    let clean = blocks.count() * BLOCK;
    clean + bytes[clean..].iter().position(escaped).unwrap_or(bytes.len() - clean)
}

/// The members of an object that is open.
struct Object {
    first_member: usize,
    first_key: usize,
    start: usize,
}

impl Object {
    fn open(writer: &mut Writer) -> Result<Self, Fault> {
        writer.open(b'{')?;
        Ok(Self { first_member: writer.members.len(), first_key: writer.keys.len(), start: writer.out.len() })
    }

    /// Writes the key that `write` appends to the keys, and remembers the member.
    fn key(&self, writer: &mut Writer, write: impl FnOnce(&mut String) -> Result<(), Fault>) -> Result<(), Fault> {
        if writer.members.len() > self.first_member {
            writer.out.push(b',');
        }
        let from = writer.keys.len();
        write(&mut writer.keys)?;
        let member = Member { key: (from, writer.keys.len()), text: (writer.out.len(), 0) };
        writer.members.push(member);
        let keys = std::mem::take(&mut writer.keys);
        writer.text(&keys[from..]);
        writer.keys = keys;
        writer.out.push(b':');
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&self, writer: &mut Writer, value: &T) -> Result<(), Fault> {
        let at = writer.members.len() - 1;
        let written = value.serialize(&mut *writer);
        let member = &mut writer.members[at];
        match written {
            Ok(()) => {
                member.text.1 = writer.out.len();
                Ok(())
            }
            Err(fault) => Err(fault.under(&writer.keys[member.key.0..member.key.1])),
        }
    }

    fn close(&self, writer: &mut Writer) -> Result<(), Fault> {
        let Writer { out, sorted, keys, members, .. } = writer;
        let own = &mut members[self.first_member..];
        let key = |member: &Member| &keys[member.key.0..member.key.1];
        if !own.windows(2).all(|pair| in_utf16_order(key(&pair[0]), key(&pair[1])).is_lt()) {
            own.sort_by(|one, other| in_utf16_order(key(one), key(other)));
            if let Some(pair) = own.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
                let key = key(&pair[0]).to_owned();
                return Err(Fault::new(CanonicalError::DuplicateKey { path: String::new(), key }));
            }
            sorted.clear();
            for member in own.iter() {
                if !sorted.is_empty() {
                    sorted.push(b',');
                }
                sorted.extend_from_slice(&out[member.text.0..member.text.1]);
            }
            out.truncate(self.start);
            out.extend_from_slice(sorted);
        }
        members.truncate(self.first_member);
        keys.truncate(self.first_key);
        writer.close(b'}');
        Ok(())
    }
}

/// The order of two keys by UTF-16 units. It is the order of their bytes unless one holds a character beyond the first plane.
fn in_utf16_order(one: &str, other: &str) -> std::cmp::Ordering {
    let beyond = |key: &str| key.bytes().any(|byte| byte >= 0xf0);
    if beyond(one) || beyond(other) { one.encode_utf16().cmp(other.encode_utf16()) } else { one.cmp(other) }
}

/// An array that is open, or the array of a tuple variant.
pub(super) struct Items<'w> {
    writer: &'w mut Writer,
    count: usize,
    variant: bool,
}

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        if self.count > 0 {
            self.writer.out.push(b',');
        }
        value.serialize(&mut *self.writer).map_err(|fault| fault.under(&self.count.to_string()))?;
        self.count += 1;
        Ok(())
    }

    fn close(self) {
        self.writer.close(b']');
        if self.variant {
            self.writer.close(b'}');
        }
    }
}

/// A map or struct that is open, or one of the two structs by which `serde_json` means something else.
pub(super) struct Fields<'w> {
    writer: &'w mut Writer,
    shape: Shape,
}

enum Shape {
    Object { object: Object, variant: bool },
    Number,
    Raw,
}

impl Fields<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
        match &self.shape {
            Shape::Object { object, .. } => {
                object.key(self.writer, |keys| {
                    keys.push_str(key);
                    Ok(())
                })?;
                object.value(self.writer, value)
            }
            Shape::Number => {
                let mut text = String::new();
                value.serialize(KeyText(&mut text))?;
                self.writer.number_text(&text)
            }
            Shape::Raw => {
                let mut text = String::new();
                value.serialize(KeyText(&mut text))?;
                self.writer.raw_text(&text)
            }
        }
    }

    fn close(self) -> Result<(), Fault> {
        if let Shape::Object { object, variant } = self.shape {
            object.close(self.writer)?;
            if variant {
                self.writer.close(b'}');
            }
        }
        Ok(())
    }
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Items<'w>;
    type SerializeTuple = Items<'w>;
    type SerializeTupleStruct = Items<'w>;
    type SerializeTupleVariant = Items<'w>;
    type SerializeMap = Fields<'w>;
    type SerializeStruct = Fields<'w>;
    type SerializeStructVariant = Fields<'w>;

    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Fault> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Fault> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Fault> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Fault> {
        push_i64(&mut self.out, value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Fault> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(natural), _) => self.serialize_u64(natural),
            (_, Ok(negative)) => self.serialize_i64(negative),
            _ => Err(Fault::new(CanonicalError::IntegerOutOfRange { path: String::new() })),
        }
    }

    fn serialize_u8(self, value: u8) -> Result<(), Fault> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Fault> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Fault> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Fault> {
        push_u64(&mut self.out, value);
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Fault> {
        match u64::try_from(value) {
            Ok(natural) => self.serialize_u64(natural),
            Err(_) => Err(Fault::new(CanonicalError::IntegerOutOfRange { path: String::new() })),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<(), Fault> {
        self.double(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Fault> {
        self.double(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Fault> {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Fault> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.open_variant(variant)?;
        value.serialize(&mut *self).map_err(|fault| fault.under(variant))?;
        self.close(b'}');
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items<'w>, Fault> {
        self.open(b'[')?;
        Ok(Items { writer: self, count: 0, variant: false })
    }

    fn serialize_tuple(self, len: usize) -> Result<Items<'w>, Fault> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<Items<'w>, Fault> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Items<'w>, Fault> {
        self.open_variant(variant)?;
        self.open(b'[')?;
        Ok(Items { writer: self, count: 0, variant: true })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Fields<'w>, Fault> {
        let object = Object::open(self)?;
        Ok(Fields { writer: self, shape: Shape::Object { object, variant: false } })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Fields<'w>, Fault> {
        match name {
            NUMBER => Ok(Fields { writer: self, shape: Shape::Number }),
            RAW => Ok(Fields { writer: self, shape: Shape::Raw }),
            _ => self.serialize_map(Some(len)),
        }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Fields<'w>, Fault> {
        self.open_variant(variant)?;
        let object = Object::open(self)?;
        Ok(Fields { writer: self, shape: Shape::Object { object, variant: true } })
    }
}

macro_rules! items {
    ($($contract:ident $method:ident),+) => {$(
        impl $contract for Items<'_> {
            type Ok = ();
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.item(value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close();
                Ok(())
            }
        }
    )+};
}

items!(SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

macro_rules! fields {
    ($($contract:ident),+) => {$(
        impl $contract for Fields<'_> {
            type Ok = ();
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Fault> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close()
            }
        }
    )+};
}

fields!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Fields<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        match &self.shape {
            Shape::Object { object, .. } => object.key(self.writer, |keys| key.serialize(KeyText(keys))),
            Shape::Number | Shape::Raw => unreachable!("these shapes are opened as structs only"),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        match &self.shape {
            Shape::Object { object, .. } => object.value(self.writer, value),
            Shape::Number | Shape::Raw => unreachable!("these shapes are opened as structs only"),
        }
    }

    fn end(self) -> Result<(), Fault> {
        self.close()
    }
}
