//! The texts of a message that SEARCH compares: decoded and folded to lower case.

use restante_mail::mime::decode_field;

use super::MessageView;

impl MessageView {
    /// Returns the values of the fields with this name in the header of the message, decoded and folded.
    pub(in crate::imap) fn folded_fields(&self, name: &str) -> impl Iterator<Item = String> {
        let fields = self.fields(0).filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
        fields.map(|(_, value)| fold(decode_field(value)))
    }

    /// Returns the header of the message, decoded and folded, with one field per line.
    pub(in crate::imap) fn folded_header(&self) -> String {
        self.decoded_header(0)
    }

    /// Returns the texts in the body, decoded and folded, and the headers of messages in it.
    pub(in crate::imap) fn folded_body(&self) -> Vec<String> {
        let messages = self.nodes.iter().filter_map(|node| node.message).map(|root| self.decoded_header(root));
        let texts = self.nodes.iter().filter(|node| node.children.is_empty() && node.part.is_text());
        let texts = texts.map(|node| fold(node.part.decode_text(&self.source)));
        messages.chain(texts).collect()
    }

    fn decoded_header(&self, node: usize) -> String {
        let mut header = String::new();
        for (name, value) in self.fields(node) {
            header.push_str(&String::from_utf8_lossy(name));
            header.push_str(": ");
            header.push_str(&decode_field(value));
            header.push('\n');
        }
        fold(header)
    }
}

/// Converts a text to lower case. Unlike [`str::to_lowercase`], it converts each character by itself, so that the start of a
/// text becomes the start of the result.
pub(in crate::imap) fn fold(mut text: String) -> String {
    if text.is_ascii() {
        text.make_ascii_lowercase();
        return text;
    }
    text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}
