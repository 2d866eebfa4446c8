//! A writer for HTML with markup and escaped text.

use restante_html::push_escaped;

/// HTML under construction.
#[derive(Default)]
pub(super) struct Html(String);

impl Html {
    /// Appends markup, which must not contain text from other sources.
    pub(super) fn markup(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Appends text, or the value of a quoted attribute.
    pub(super) fn text(&mut self, text: &str) {
        push_escaped(&mut self.0, text);
    }

    /// Appends an element. `beginning` is its name and, if it has some, its attributes.
    pub(super) fn element(&mut self, beginning: &str, content: impl FnOnce(&mut Self)) {
        let name = beginning.split(' ').next().unwrap_or(beginning);
        for piece in ["<", beginning, ">"] {
            self.markup(piece);
        }
        content(self);
        for piece in ["</", name, ">"] {
            self.markup(piece);
        }
    }

    /// Appends an element that contains prose.
    pub(super) fn prose_element(&mut self, beginning: &str, prose: &str) {
        self.element(beginning, |html| html.prose(prose));
    }

    /// Appends a link to an anchor of this page.
    pub(super) fn link(&mut self, kind: &str, to: &str, content: impl FnOnce(&mut Self)) {
        self.markup("<a href=\"#");
        self.text(&anchor(kind, to));
        self.markup("\">");
        content(self);
        self.markup("</a>");
    }

    /// Appends prose. Text in backticks becomes code.
    pub(super) fn prose(&mut self, prose: &str) {
        for (index, piece) in prose.split('`').enumerate() {
            if index % 2 == 1 {
                self.element("code", |html| html.text(piece));
            } else {
                self.text(piece);
            }
        }
    }

    /// Appends paragraphs.
    pub(super) fn paragraphs(&mut self, prose: &str) {
        for paragraph in prose.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            self.prose_element("p", paragraph);
        }
    }

    /// Returns the HTML.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Returns the id of an anchor.
pub(super) fn anchor(kind: &str, name: &str) -> String {
    if kind.is_empty() { name.to_owned() } else { format!("{kind}-{name}") }
}
