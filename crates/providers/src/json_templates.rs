//! Templates that are stored as the JSON of the provider: those of Resend, Postmark and Brevo.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, FailureKind};
use crate::incoming::Incoming;
use crate::templates::{TEMPLATE, Template, Templates};
use crate::values::merge_objects;

/// Stores a template with the members of these JSON objects. Those of later ones have precedence. `T` has their types, and `check`
/// can refuse them.
pub(crate) fn put<T: DeserializeOwned>(
    templates: &Templates<'_>,
    id: String,
    name_member: &str,
    objects: &[&str],
    check: fn(&T) -> Result<(), Failure>,
) -> Result<Template, Failure> {
    #[derive(Deserialize)]
    struct Names {
        #[serde(alias = "Name")]
        name: Option<String>,
        #[serde(alias = "Alias")]
        alias: Option<String>,
    }

    let extra = merge_objects("template", objects.iter().copied())?;
    let Names { name, alias } = serde_json::from_str(&extra).map_err(Failure::malformed)?;
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| Failure::missing(name_member))?;
    let template = Template { id, alias, name, extra, ..Template::default() };
    check(&stored_members(&template)?)?;
    let other = template.alias.as_deref().and_then(|alias| templates.find(alias));
    if other.is_some_and(|other| other.id != template.id) {
        return Err(Failure::new(FailureKind::Exists, "Another template has this alias."));
    }
    templates.put(template.clone())?;
    Ok(template)
}

/// Returns the members that are stored with a template.
pub(crate) fn stored_members<T: DeserializeOwned>(template: &Template) -> Result<T, Failure> {
    serde_json::from_str(&template.extra).map_err(Failure::malformed)
}

/// Returns the template that a path names.
pub(crate) fn find(incoming: &Incoming, templates: &Templates<'_>) -> Result<Arc<Template>, Failure> {
    let not_found = || Failure::new(FailureKind::NotFound, "Template not found");
    let failure = || Failure { field: Some(TEMPLATE.to_owned()), ..not_found() };
    templates.find(incoming.path_value("id")).ok_or_else(failure)
}

/// Returns the body of a request as text.
pub(crate) fn body(incoming: &Incoming) -> Result<&str, Failure> {
    str::from_utf8(&incoming.body).map_err(Failure::malformed)
}
