//! The serializer that accepts what can be the key of an object, and appends its text.

use std::fmt::Write as _;

use serde::ser::{Impossible, Serialize, Serializer};

use super::writer::Fault;
use crate::declare::CanonicalError;

/// Appends the text of a key: of a text, a character, a boolean, an integer or a unit variant.
pub(super) struct KeyText<'k>(pub(super) &'k mut String);

fn refused<T>() -> Result<T, Fault> {
    Err(Fault::new(CanonicalError::KeyNotText { path: String::new() }))
}

impl KeyText<'_> {
    fn shown(self, value: impl std::fmt::Display) -> Result<(), Fault> {
        write!(self.0, "{value}").map_err(serde::ser::Error::custom)
    }
}

macro_rules! shown {
    ($($method:ident $kind:ty),+ $(,)?) => {$(
        fn $method(self, value: $kind) -> Result<(), Fault> {
            self.shown(value)
        }
    )+};
}

impl Serializer for KeyText<'_> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Impossible<(), Fault>;
    type SerializeTuple = Impossible<(), Fault>;
    type SerializeTupleStruct = Impossible<(), Fault>;
    type SerializeTupleVariant = Impossible<(), Fault>;
    type SerializeMap = Impossible<(), Fault>;
    type SerializeStruct = Impossible<(), Fault>;
    type SerializeStructVariant = Impossible<(), Fault>;

    shown!(
        serialize_bool bool, serialize_char char,
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128,
    );

    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        self.0.push_str(value);
        Ok(())
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_f32(self, _value: f32) -> Result<(), Fault> {
        refused()
    }

    fn serialize_f64(self, _value: f64) -> Result<(), Fault> {
        refused()
    }

    fn serialize_bytes(self, _value: &[u8]) -> Result<(), Fault> {
        refused()
    }

    fn serialize_none(self) -> Result<(), Fault> {
        refused()
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        refused()
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Fault> {
        refused()
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<(), Fault> {
        refused()
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Self::SerializeSeq, Fault> {
        refused()
    }

    fn serialize_tuple(self, _len: usize) -> Result<Self::SerializeTuple, Fault> {
        refused()
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Self::SerializeTupleStruct, Fault> {
        refused()
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleVariant, Fault> {
        refused()
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Self::SerializeMap, Fault> {
        refused()
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Self::SerializeStruct, Fault> {
        refused()
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeStructVariant, Fault> {
        refused()
    }
}
