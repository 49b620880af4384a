//! Brace expansion: `a{b,c}` is `ab ac`, `{1..3}` is `1 2 3`. It comes before all other expansions and looks at unquoted text only.

use super::super::syntax::{Part, PartKind, Word};

/// The most words that one word becomes.
const MAX_WORDS: usize = 128;

/// The most braces that one word opens.
const MAX_BRACES: usize = 32;

/// An unquoted character, or a part that is taken as a whole.
#[derive(Clone)]
enum Atom {
    Character(char),
    Whole(Part),
}

impl Atom {
    fn is(&self, wanted: char) -> bool {
        matches!(self, Self::Character(character) if *character == wanted)
    }
}

/// The words that a word becomes; nothing when there are too many. A word without braces is returned as it is.
pub(super) fn expand(word: &Word) -> Option<Vec<Word>> {
    let unquoted = |part: &Part| matches!(&part.kind, PartKind::Text(text) if !part.quoted && text.contains('{'));
    if !word.parts.iter().any(unquoted) {
        return Some(vec![word.clone()]);
    }
    let mut atoms = Vec::new();
    for part in &word.parts {
        match &part.kind {
            PartKind::Text(text) if !part.quoted => atoms.extend(text.chars().map(Atom::Character)),
            _ => atoms.push(Atom::Whole(part.clone())),
        }
    }
    if atoms.iter().filter(|atom| atom.is('{')).count() > MAX_BRACES {
        return None;
    }
    let mut budget = MAX_WORDS;
    let expanded = alternatives(&atoms, &mut budget)?;
    if let [only] = &expanded[..]
        && only.len() == atoms.len()
    {
        return Some(vec![word.clone()]);
    }
    Some(expanded.into_iter().map(|atoms| joined(atoms, word)).collect())
}

/// Every reading of some atoms.
fn alternatives(atoms: &[Atom], budget: &mut usize) -> Option<Vec<Vec<Atom>>> {
    let Some(Group { before, members, after }) = first_group(atoms) else { return Some(vec![atoms.to_vec()]) };
    let mut heads = Vec::new();
    for member in members {
        for middle in alternatives(&member, budget)? {
            heads.push(middle);
        }
    }
    let mut words = Vec::new();
    let tails = alternatives(after, budget)?;
    for head in &heads {
        for tail in &tails {
            *budget = budget.checked_sub(1)?;
            words.push([before, head.as_slice(), tail.as_slice()].concat());
        }
    }
    Some(words)
}

/// Braces with the members between them.
struct Group<'a> {
    before: &'a [Atom],
    members: Vec<Vec<Atom>>,
    after: &'a [Atom],
}

/// The first pair of braces that is expanded.
fn first_group(atoms: &[Atom]) -> Option<Group<'_>> {
    let mut from = 0;
    while let Some(open) = atoms[from..].iter().position(|atom| atom.is('{')).map(|at| from + at) {
        if let Some((close, commas)) = group(atoms, open) {
            let inside = &atoms[open + 1..close];
            let members = if commas.is_empty() { sequence(inside) } else { Some(split(atoms, open, close, &commas)) };
            if let Some(members) = members {
                return Some(Group { before: &atoms[..open], members, after: &atoms[close + 1..] });
            }
        }
        from = open + 1;
    }
    None
}

/// The end of the group that opens at a place, and its own commas.
fn group(atoms: &[Atom], open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0, Vec::new());
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Character('{') => depth += 1,
            Atom::Character('}') => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            Atom::Character(',') if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}

fn split(atoms: &[Atom], open: usize, close: usize, commas: &[usize]) -> Vec<Vec<Atom>> {
    let starts = std::iter::once(open).chain(commas.iter().copied());
    let ends = commas.iter().copied().chain(std::iter::once(close));
    starts.zip(ends).map(|(start, end)| atoms[start + 1..end].to_vec()).collect()
}

/// `1..5`, `a..e`, `1..9..2`.
fn sequence(inside: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let text: String = inside
        .iter()
        .map(|atom| match atom {
            Atom::Character(character) => Some(*character),
            Atom::Whole(_) => None,
        })
        .collect::<Option<_>>()?;
    let mut bounds = text.split("..");
    let (first, last, step) = (bounds.next()?, bounds.next()?, bounds.next());
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok().map(|step| step.abs().max(1)))?;
    if bounds.next().is_some() {
        return None;
    }
    let letter = |text: &str| Some(text.chars().next()?).filter(|c| c.is_ascii_alphabetic() && text.len() == 1);
    let (first, last, letters) = match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(first), Ok(last)) => (first, last, false),
        _ => (i64::from(u32::from(letter(first)?)), i64::from(u32::from(letter(last)?)), true),
    };
    let count = first.abs_diff(last) / step.unsigned_abs();
    if count >= MAX_WORDS as u64 {
        // More than are read: the caller's budget ends here.
        return Some(vec![Vec::new(); MAX_WORDS + 1]);
    }
    let direction = if first <= last { step } else { -step };
    let value = |nth: u64| first + direction * i64::try_from(nth).unwrap_or(i64::MAX);
    let atoms = |number: i64| -> Vec<Atom> {
        if letters {
            let character = u32::try_from(number).ok().and_then(char::from_u32).unwrap_or('a');
            vec![Atom::Character(character)]
        } else {
            number.to_string().chars().map(Atom::Character).collect()
        }
    };
    Some((0..=count).map(|nth| atoms(value(nth))).collect())
}

fn joined(atoms: Vec<Atom>, word: &Word) -> Word {
    let mut parts: Vec<Part> = Vec::new();
    for atom in atoms {
        match (atom, parts.last_mut()) {
            (Atom::Character(character), Some(Part { kind: PartKind::Text(text), quoted: false, .. })) => text.push(character),
            (Atom::Character(character), _) => {
                parts.push(Part { kind: PartKind::Text(character.to_string()), quoted: false, span: word.span.clone() });
            }
            (Atom::Whole(part), _) => parts.push(part),
        }
    }
    Word { span: word.span.clone(), parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Option<Vec<String>> {
        let parts = text.split('"').enumerate().filter(|(_, text)| !text.is_empty());
        let parts = parts.map(|(nth, text)| Part { kind: PartKind::Text(text.to_owned()), quoted: nth % 2 == 1, span: 0..0 });
        let word = Word { span: 0..0, parts: parts.collect() };
        let shown = |word: Word| {
            let text = |part: &Part| match &part.kind {
                PartKind::Text(text) => text.clone(),
                _ => String::new(),
            };
            word.parts.iter().map(text).collect()
        };
        expand(&word).map(|words| words.into_iter().map(shown).collect())
    }

    #[test]
    fn braces_are_expanded_as_in_bash() {
        for (text, words) in [
            ("a{b,c}d", &["abd", "acd"][..]),
            ("{a,b}{1,2}", &["a1", "a2", "b1", "b2"]),
            ("{a,{b,c}}", &["a", "b", "c"]),
            ("r{m,}", &["rm", "r"]),
            ("{src}", &["{src}"]),
            ("{}", &["{}"]),
            ("{a", &["{a"]),
            ("{a{b,c}", &["{ab", "{ac"]),
            ("{1..3}", &["1", "2", "3"]),
            ("{3..1}", &["3", "2", "1"]),
            ("{1..5..2}", &["1", "3", "5"]),
            ("{a..c}", &["a", "b", "c"]),
            ("{a..3}", &["{a..3}"]),
            ("{\"a,b\",c}", &["a,b", "c"]),
            ("\"{a,b}\"", &["{a,b}"]),
        ] {
            assert_eq!(
                expanded(text).as_deref(),
                Some(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
        assert_eq!(expanded("{1..999999999}"), None);
        assert_eq!(expanded(&"{a,b}".repeat(12)), None);
        assert_eq!(expanded(&"{".repeat(40)), None);
    }
}
