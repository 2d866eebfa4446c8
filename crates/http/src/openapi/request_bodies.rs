//! The schemas of request bodies. Handlers do not use these types. A test sends what the schemas permit and what they forbid.
#![expect(dead_code, reason = "the fields are read by the macro only")]

use restante_api_types::patterns;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::openapi::operation::string_matching;

/// How to mark messages.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    seen: bool,
}

/// How to mark a message. Without `seen`, and if it is null, nothing changes. Other members are ignored.
#[derive(ToSchema)]
pub(super) struct OptionalMark {
    seen: Option<bool>,
}

/// How to change a message. At least one member is required.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub(super) struct MessageChanges {
    /// Whether the message is marked as seen.
    #[schema(nullable = false)]
    seen: Option<bool>,
    /// The tags, which replace the current ones.
    #[schema(nullable = false, max_items = 20)]
    tags: Option<Vec<Tag>>,
}

/// A tag.
pub(super) struct Tag;

/// Messages of a mailbox.
#[derive(ToSchema)]
pub(super) struct Ids {
    /// The ids of the messages. Ids of messages that do not exist are ignored.
    ids: Vec<String>,
}

/// Messages of a mailbox, and how to mark them.
#[derive(ToSchema)]
pub(super) struct IdsAndMark {
    /// The ids of the messages. Ids of messages that do not exist are ignored.
    ids: Vec<String>,
    seen: bool,
}

/// Messages.
#[derive(ToSchema)]
pub(super) struct MessageIds {
    /// The ids of the messages. Ids of messages that do not exist are ignored.
    #[schema(max_items = 20_000)]
    ids: Vec<String>,
}

/// Messages, and how to mark them.
#[derive(ToSchema)]
pub(super) struct MessageIdsAndMark {
    /// The ids of the messages. Ids of messages that do not exist are ignored.
    #[schema(max_items = 20_000)]
    ids: Vec<String>,
    seen: bool,
}

/// Where a message is sent to.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// The name of the target. It may be left out if there is only one.
    #[schema(nullable = false)]
    target: Option<String>,
    /// The recipients. By default those of the envelope.
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    to: Option<Vec<RecipientAddress>>,
}

/// The address of a recipient.
pub(super) struct RecipientAddress;

/// Entries of the relay queue or the webhook queue. Exactly one member is required.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1, max_properties = 1)]
pub(super) struct EntrySelection {
    /// The ids of the entries. Ids of entries that do not exist are ignored.
    #[schema(nullable = false, max_items = 1_000)]
    ids: Option<Vec<String>>,
    /// The name of a target, for all of its entries.
    #[schema(nullable = false)]
    target: Option<String>,
    #[schema(schema_with = always_true)]
    all: Option<bool>,
}

/// Targets. Exactly one member is required.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1, max_properties = 1)]
pub(super) struct TargetSelection {
    /// The name of a target.
    #[schema(nullable = false)]
    target: Option<String>,
    #[schema(schema_with = always_true)]
    all: Option<bool>,
}

/// The fields of a new message.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMail {
    /// The author, with or without a name.
    from: String,
    /// The recipients in the header, with or without names. By default the mailbox to which the message is delivered.
    #[schema(nullable = false, max_items = 1_000)]
    to: Option<Vec<String>>,
    #[schema(nullable = false, max_items = 1_000)]
    cc: Option<Vec<String>>,
    #[schema(schema_with = subject)]
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    #[schema(schema_with = header_fields)]
    headers: Option<()>,
    #[schema(nullable = false, max_items = 500)]
    attachments: Option<Vec<NewAttachment>>,
    /// The date in the header, not before the year 1900. By default the current time.
    #[schema(format = DateTime)]
    date: Option<String>,
}

/// An attachment of a new message.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct NewAttachment {
    #[schema(schema_with = filename)]
    filename: Option<String>,
    /// `type/subtype`, optionally with parameters. Not a multipart.
    content_type: Option<String>,
    #[schema(schema_with = content)]
    content: String,
    #[schema(schema_with = content_id)]
    content_id: Option<String>,
}

impl PartialSchema for Tag {
    fn schema() -> RefOr<Schema> {
        let about = "A tag: at most 64 letters, digits, spaces and characters `-_.@`. Spaces at its ends are ignored.";
        describe(string_matching(patterns::TAG), about).into()
    }
}

impl ToSchema for Tag {}

impl PartialSchema for RecipientAddress {
    fn schema() -> RefOr<Schema> {
        describe(string_matching(patterns::ADDRESS), "The address of a recipient.").into()
    }
}

impl ToSchema for RecipientAddress {}

fn always_true() -> Object {
    let schema = ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).build();
    describe(schema, "All entries.")
}

fn subject() -> Object {
    string_matching(patterns::LINE)
}

fn filename() -> Object {
    nullable(string_matching(patterns::LINE))
}

fn content() -> Object {
    describe(string_matching(patterns::BASE64), "The content in base64.")
}

fn content_id() -> Object {
    let about = "The content id by which the HTML refers to the attachment.";
    nullable(describe(string_matching(patterns::CONTENT_ID), about))
}

fn header_fields() -> Object {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(string_matching(patterns::FIELD_NAME)))
        .additional_properties(Some(AdditionalProperties::RefOr(string_matching(patterns::LINE).into())))
        .max_properties(Some(500))
        .build();
    let about = "Additional header fields. `From`, `To`, `Cc`, `Subject`, `MIME-Version` and `Content-…` are made from the other \
                 members.";
    describe(schema, about)
}

fn describe(mut schema: Object, description: &str) -> Object {
    schema.description = Some(description.to_owned());
    schema
}

fn nullable(mut schema: Object) -> Object {
    schema.schema_type = SchemaType::from_iter([Type::String, Type::Null]);
    schema
}
