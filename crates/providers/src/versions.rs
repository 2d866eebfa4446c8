//! Versions of templates. Each is stored as a template whose id is that of its template and its own, with a slash between them.

use std::sync::Arc;

use crate::templates::{Template, Templates};

/// Returns the id under which a version is stored.
pub(crate) fn key(template: &str, version: &str) -> String {
    format!("{template}/{version}")
}

/// Returns all templates without their versions.
pub(crate) fn templates(templates: &Templates<'_>) -> Vec<Arc<Template>> {
    templates.list().into_iter().filter(|template| !template.id.contains('/')).collect()
}

/// Returns the versions of a template.
pub(crate) fn versions(templates: &Templates<'_>, template: &str) -> Vec<Arc<Template>> {
    let prefix = key(template, "");
    templates.list().into_iter().filter(|version| version.id.starts_with(&prefix)).collect()
}

/// Removes a template and its versions.
pub(crate) fn remove(templates: &Templates<'_>, template: &str) {
    for version in versions(templates, template) {
        templates.remove(&version.id);
    }
    templates.remove(template);
}
