//! Paths of fields within a payload: `$.input.token`, `$.items[*].secret`, `$['odd name']`, `$..password`.

use std::fmt;
use std::str::FromStr;

use super::InvalidRedaction;

/// A path of fields: at least one segment after the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath(Vec<Segment>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// The member of this name.
    Member(String),
    /// The item at this position.
    Index(usize),
    /// Every member and every item.
    Every,
    /// The member of this name, at any depth from here.
    Descend(String),
}

impl FieldPath {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl Segment {
    pub(super) fn takes_member(&self, name: &str) -> bool {
        match self {
            Self::Member(wanted) | Self::Descend(wanted) => wanted == name,
            Self::Every => true,
            Self::Index(_) => false,
        }
    }

    pub(super) fn takes_index(&self, at: usize) -> bool {
        match self {
            Self::Index(wanted) => *wanted == at,
            Self::Every => true,
            Self::Member(_) | Self::Descend(_) => false,
        }
    }

    pub(super) fn descends(&self) -> bool {
        matches!(self, Self::Descend(_))
    }

    /// A member's step as a path shows it.
    pub(super) fn shown(member: &str) -> String {
        if is_plain(member) { format!(".{member}") } else { format!("[{}]", quoted(member)) }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        self.0.iter().try_for_each(|segment| match segment {
            Segment::Member(name) => f.write_str(&Segment::shown(name)),
            Segment::Index(at) => write!(f, "[{at}]"),
            Segment::Every => f.write_str("[*]"),
            Segment::Descend(name) if is_plain(name) => write!(f, "..{name}"),
            Segment::Descend(name) => write!(f, "..[{}]", quoted(name)),
        })
    }
}

impl FromStr for FieldPath {
    type Err = InvalidRedaction;

    fn from_str(path: &str) -> Result<Self, InvalidRedaction> {
        let mut reader = Reader { path, at: 0 };
        reader.expect("$", "a path begins with `$`")?;
        let mut segments = Vec::new();
        while reader.at < path.len() {
            segments.push(reader.segment()?);
        }
        if segments.is_empty() {
            return Err(reader.refuse("name a field below `$`, as in `$.input.token`"));
        }
        Ok(Self(segments))
    }
}

struct Reader<'a> {
    path: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn segment(&mut self) -> Result<Segment, InvalidRedaction> {
        if self.take("..") {
            return if self.take("[") {
                self.quoted_member().map(Segment::Descend)
            } else {
                self.plain_member().map(Segment::Descend)
            };
        }
        if self.take(".") {
            return if self.take("*") { Ok(Segment::Every) } else { self.plain_member().map(Segment::Member) };
        }
        self.expect("[", "write `.name`, `..name`, `['name']`, `[0]` or `[*]`")?;
        if self.take("*") {
            self.expect("]", "close the bracket")?;
            return Ok(Segment::Every);
        }
        if self.rest().starts_with('\'') {
            return self.quoted_member().map(Segment::Member);
        }
        let digits = self.run(|byte| byte.is_ascii_digit());
        let index = digits.parse().map_err(|_| self.refuse("a bracket holds a position, `*` or a quoted name"))?;
        self.expect("]", "close the bracket")?;
        Ok(Segment::Index(index))
    }

    fn plain_member(&mut self) -> Result<String, InvalidRedaction> {
        let name = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if name.is_empty() {
            return Err(self.refuse("a name of letters, digits, `_` and `-` stands here; quote others, as in `['odd name']`"));
        }
        Ok(name.to_owned())
    }

    fn quoted_member(&mut self) -> Result<String, InvalidRedaction> {
        self.expect("'", "quote the name with `'`")?;
        let mut name = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '\'' => {
                    self.at += at + 1;
                    self.expect("]", "close the bracket")?;
                    return Ok(name);
                }
                '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
                plain => name.push(plain),
            }
        }
        Err(self.refuse("the quoted name has no end"))
    }

    fn rest(&self) -> &'a str {
        &self.path[self.at..]
    }

    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|&byte| belongs(byte)).count();
        self.at += length;
        &rest[..length]
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str, why: &'static str) -> Result<(), InvalidRedaction> {
        if self.take(text) { Ok(()) } else { Err(self.refuse(why)) }
    }

    fn refuse(&self, why: &'static str) -> InvalidRedaction {
        InvalidRedaction::Path { path: self.path.chars().take(1024).collect(), at: self.at, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-15: a path is written back as it would be read.
    #[test]
    fn a_path_is_read_and_shown_again() {
        for path in ["$.input.token", "$.items[*].secret", "$.items[0]", "$['odd name'].x", "$..password", "$..['it\\'s'][*]"] {
            let read: FieldPath = path.parse().unwrap();
            assert_eq!(read.to_string(), path);
        }
        assert_eq!("$.a.*".parse::<FieldPath>().unwrap(), "$.a[*]".parse().unwrap());
    }

    #[test]
    fn a_wrong_path_is_refused_at_its_place() {
        for (path, place) in
            [("", 0), ("input", 0), ("$", 1), ("$.", 2), ("$.a b", 3), ("$[x]", 2), ("$['a", 3), ("$[1", 3), ("$..", 3)]
        {
            match path.parse::<FieldPath>() {
                Err(InvalidRedaction::Path { at, .. }) => assert_eq!(at, place, "{path:?}"),
                other => panic!("{path:?}: {other:?}"),
            }
        }
    }
}
