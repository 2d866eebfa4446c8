//! BODY and BODYSTRUCTURE (RFC 3501 section 7.4.2).

use restante_mail::mime::{StructuredValue, unfold};

use super::MessageView;
use super::envelope::Writer;
use crate::imap::write::write_number;

/// The values of the fields that describe a part. Of several fields with one name, the first counts.
#[derive(Default)]
struct ContentFields<'a> {
    content_type: Option<&'a [u8]>,
    id: Option<&'a [u8]>,
    description: Option<&'a [u8]>,
    md5: Option<&'a [u8]>,
    disposition: Option<&'a [u8]>,
    language: Option<&'a [u8]>,
    location: Option<&'a [u8]>,
}

impl MessageView {
    /// Writes BODY, or BODYSTRUCTURE if `is_extended` is set. `is_utf8` is described at
    /// [`write_string`](crate::imap::write::write_string).
    pub(in crate::imap) fn write_body(&self, out: &mut Vec<u8>, is_extended: bool, is_utf8: bool) {
        self.write_part(0, is_extended, &mut Writer::new(out, is_utf8));
    }

    /// Writes a part with the parts in it. The recursion is limited by the depth of parts.
    fn write_part(&self, index: usize, is_extended: bool, writer: &mut Writer<'_>) {
        let node = &self.nodes[index];
        let fields = self.content_fields(index);
        let (kind, subtype) = node.part.content_type.split_once('/').unwrap_or(("text", "plain"));
        writer.raw("(");
        if !node.children.is_empty() {
            for &child in &node.children {
                self.write_part(child, is_extended, writer);
            }
            writer.raw(" ");
            writer.nstring(Some(subtype.as_bytes()));
            if is_extended {
                writer.raw(" ");
                write_parameters(fields.content_type, false, writer);
                write_extension(&fields, writer);
            }
            writer.raw(")");
            return;
        }
        writer.nstring(Some(kind.as_bytes()));
        writer.raw(" ");
        writer.nstring(Some(subtype.as_bytes()));
        writer.raw(" ");
        write_parameters(fields.content_type, node.part.is_text(), writer);
        for field in [fields.id, fields.description] {
            writer.raw(" ");
            writer.field(field);
        }
        writer.raw(" ");
        writer.nstring(Some(node.part.encoding_name.as_bytes()));
        writer.raw(" ");
        let body = &self.source[node.part.body.clone()];
        write_number(writer.out, body.len() as u64);
        if let Some(root) = node.message {
            writer.raw(" ");
            self.write_envelope_of(root, writer);
            writer.raw(" ");
            self.write_part(root, is_extended, writer);
        }
        if node.message.is_some() || node.part.is_text() {
            writer.raw(" ");
            write_number(writer.out, memchr::memchr_iter(b'\n', body).count() as u64);
        }
        if is_extended {
            writer.raw(" ");
            writer.field(fields.md5);
            write_extension(&fields, writer);
        }
        writer.raw(")");
    }

    fn content_fields(&self, node: usize) -> ContentFields<'_> {
        let mut found = ContentFields::default();
        for (name, value) in self.fields(node) {
            let slot = match name.to_ascii_lowercase().as_slice() {
                b"content-type" => &mut found.content_type,
                b"content-id" => &mut found.id,
                b"content-description" => &mut found.description,
                b"content-md5" => &mut found.md5,
                b"content-disposition" => &mut found.disposition,
                b"content-language" => &mut found.language,
                b"content-location" => &mut found.location,
                _ => continue,
            };
            slot.get_or_insert(value);
        }
        found
    }
}

/// Writes the parameters of a field as they are written, or NIL. Text without a charset is in US-ASCII.
fn write_parameters(field: Option<&[u8]>, is_text: bool, writer: &mut Writer<'_>) {
    let mut parameters = field.map(StructuredValue::raw_parameters).unwrap_or_default();
    parameters.retain(|(name, _)| !name.is_empty());
    if is_text && !parameters.iter().any(|(name, _)| name == "charset") {
        parameters.insert(0, ("charset".to_owned(), b"us-ascii".to_vec()));
    }
    if parameters.is_empty() {
        return writer.raw("NIL");
    }
    for (index, (name, value)) in parameters.iter().enumerate() {
        writer.raw(if index == 0 { "(" } else { " " });
        writer.nstring(Some(name.as_bytes()));
        writer.raw(" ");
        writer.nstring(Some(value));
    }
    writer.raw(")");
}

/// Writes the disposition, the languages and the location.
fn write_extension(fields: &ContentFields<'_>, writer: &mut Writer<'_>) {
    writer.raw(" ");
    let disposition = fields.disposition.map(StructuredValue::parse).unwrap_or_default();
    if disposition.value().is_empty() {
        writer.raw("NIL");
    } else {
        writer.raw("(");
        writer.nstring(Some(disposition.value().as_bytes()));
        writer.raw(" ");
        write_parameters(fields.disposition, false, writer);
        writer.raw(")");
    }
    writer.raw(" ");
    let languages = fields.language.map(unfold).unwrap_or_default();
    let languages = languages.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|tag| !tag.is_empty());
    let languages: Vec<_> = languages.collect();
    if languages.is_empty() {
        writer.raw("NIL");
    } else {
        for (index, language) in languages.iter().enumerate() {
            writer.raw(if index == 0 { "(" } else { " " });
            writer.nstring(Some(language));
        }
        writer.raw(")");
    }
    writer.raw(" ");
    writer.field(fields.location);
}
