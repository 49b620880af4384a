use super::field::Field;
pub(in crate::guard) enum Child {
    Command { words: Vec<Field>, assignments: Vec<(String, Field)>, more: bool, folder: Folder },
    Text { text: Field, skip: usize, positional: Vec<Field>, here: bool },
    Input { positional: Vec<Field> },
    File { path: Field, positional: Vec<Field>, here: bool },
    Unclear(usize),
}
pub(in crate::guard) enum Folder { Same, Known(Field), Unknown }
pub(in crate::guard) fn children(_fields: &[Field]) -> Option<Vec<Child>> { None }
