//! Rendering of templates.

use crate::email::Parts;
use crate::failure::Failure;
use crate::templates::Template;

/// Renders the texts of a template with data, which is JSON.
pub(crate) fn render(template: &Template, _data: &str) -> Result<Parts, Failure> {
    let Template { subject, text, html, .. } = template.clone();
    Ok(Parts { subject, text, html, attachments: Vec::new() })
}
