//! Links that look like buttons: by a class name, by their own style, or by the table cell that contains only them.

use restante_mail::mime::html_tokens::find_attribute;

/// The maximum length of a style or a class that is examined, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 1024;
/// Colors that are no background of a button.
const PLAIN_COLORS: [&str; 8] = ["transparent", "none", "inherit", "initial", "white", "#fff", "#ffffff", "unset"];

/// The parts of the style of an element that make it look like a button.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the properties are independent of each other")]
pub(crate) struct ButtonStyle {
    has_name: bool,
    has_color: bool,
    has_border: bool,
    has_padding: bool,
    has_round_corners: bool,
    is_block: bool,
}

impl ButtonStyle {
    /// Reads the attributes of a tag.
    pub(crate) fn new(attributes: &str) -> Self {
        let attribute = |name| {
            let value = find_attribute(attributes, name).unwrap_or_default();
            value[..value.floor_char_boundary(MAX_ATTRIBUTE_BYTES)].to_ascii_lowercase()
        };
        let (class, role) = (attribute("class"), attribute("role"));
        let has_name = role.trim() == "button"
            || ["button", "btn"].iter().any(|name| class.contains(name))
            || class.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "cta");
        let mut style = Self { has_name, has_color: is_color(&attribute("bgcolor")), ..Self::default() };
        for declaration in attribute("style").split(';') {
            if let Some((property, value)) = declaration.split_once(':') {
                style.read_declaration(property.trim(), value.trim());
            }
        }
        style
    }

    fn read_declaration(&mut self, property: &str, value: &str) {
        let is_zero = value.is_empty() || value.starts_with('0') || value.starts_with("none");
        match property {
            "background" | "background-color" => self.has_color |= is_color(value),
            "border" => self.has_border |= !is_zero,
            "border-radius" => self.has_round_corners |= !is_zero,
            "display" => self.is_block |= matches!(value.trim_end_matches(" !important"), "block" | "inline-block"),
            _ if property.starts_with("padding") => self.has_padding |= !is_zero,
            _ => {}
        }
    }

    /// Returns whether an element with this style is a button.
    pub(crate) fn is_button(self) -> bool {
        self.has_name
            || self.has_color && (self.has_padding || self.has_round_corners || self.is_block)
            || self.has_border && self.has_padding
    }

    /// Returns whether a link with this style is a button in a table cell, of which it is the first content.
    pub(crate) fn is_button_in(self, cell: Self) -> bool {
        cell.has_color && (cell.has_round_corners || cell.has_padding || self.has_padding || self.is_block)
            || cell.has_name
    }
}

/// Returns whether an element inside of a link makes the link a button.
pub(crate) fn is_button_tag(name: &str, attributes: &str) -> bool {
    name == "button" || matches!(name, "span" | "div" | "td" | "table") && ButtonStyle::new(attributes).is_button()
}

fn is_color(value: &str) -> bool {
    let first = value.split_whitespace().next().unwrap_or_default();
    !first.is_empty() && !PLAIN_COLORS.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_by_their_style() {
        let table = [
            ("class=btn", true),
            ("class='mcnButton '", true),
            ("class='email-cta'", true),
            ("class=octave", false),
            ("role=button", true),
            ("style='background:#06c;padding:12px 24px'", true),
            ("style='background-color: #3869D4; border-radius: 3px'", true),
            ("style='background-color:#fff;padding:4px'", false),
            ("style='background:transparent;padding:4px'", false),
            ("style='background:#06c'", false),
            ("style='border:1px solid #333;padding:10px'", true),
            ("style='border:0;padding:10px'", false),
            ("style='border:none;padding:10px;display:block'", false),
            ("style='color:#06c;text-decoration:none'", false),
            ("", false),
        ];
        for (attributes, expected) in table {
            assert_eq!(ButtonStyle::new(&format!(" {attributes}")).is_button(), expected, "{attributes}");
        }
    }

    #[test]
    fn buttons_by_their_cell() {
        let table = [
            ("bgcolor='#0055aa'", "style='padding:12px;display:inline-block'", true),
            ("style='background:#0a5;border-radius:4px'", "", true),
            ("class=button-td", "", true),
            ("bgcolor=white", "style='padding:12px'", false),
            ("bgcolor='#0055aa'", "style='color:red'", false),
            ("", "style='padding:12px'", false),
        ];
        for (cell, link, expected) in table {
            let [cell, link] = [cell, link].map(|attributes| ButtonStyle::new(&format!(" {attributes}")));
            assert_eq!(link.is_button_in(cell), expected, "{cell:?} {link:?}");
        }
    }
}
