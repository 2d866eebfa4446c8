//! The fields of objects: their names, and what they hold.

/// A field of an object.
#[derive(Clone, Copy)]
pub(super) struct Field(pub(super) &'static str, pub(super) FieldKind);

/// What a field holds, and what scripts may do with it.
#[derive(Clone, Copy)]
pub(super) enum FieldKind {
    Text,
    Number,
    Address,
    Addresses,
    Mailboxes,
    /// Something that scripts cannot change.
    ReadOnly,
    /// Something read from the mail.
    Content,
    /// The mail, which scripts may give to objects that they have made.
    Source,
}
