//! The fields of objects: their names and kinds.

/// A field of an object: its name and kind.
#[derive(Clone, Copy)]
pub(super) struct Field(pub(super) &'static str, pub(super) FieldKind);

/// What a field contains, and whether scripts can write to it.
#[derive(Clone, Copy)]
pub(super) enum FieldKind {
    Text,
    Number,
    Address,
    Addresses,
    Mailboxes,
    /// A value that scripts cannot change.
    ReadOnly,
    /// A value that is read from the message.
    Content,
    /// The source of the message. Scripts can set it in objects that they created.
    Source,
}
