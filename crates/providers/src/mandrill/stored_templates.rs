//! The templates that are stored with the API.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Merge, Variable, ok, unknown_call};
use crate::email::{Content, Parts};
use crate::failure::{Failure, FailureKind};
use crate::incoming::Incoming;
use crate::person::Person;
use crate::provider::Action;
use crate::templates::{Template, Templates};
use crate::values::List;
use crate::variables::TextBudget;

#[derive(Deserialize)]
struct TemplateRequest<'a> {
    #[serde(default, alias = "template_name")]
    name: String,
    from_email: Option<String>,
    from_name: Option<String>,
    subject: Option<String>,
    code: Option<String>,
    text: Option<String>,
    #[serde(borrow, default)]
    template_content: List<Variable<'a>>,
    #[serde(borrow, default)]
    merge_vars: List<Variable<'a>>,
}

/// The sender of a template.
#[derive(Default, Deserialize, Serialize)]
struct Sender {
    from_email: Option<String>,
    from_name: Option<String>,
}

/// Returns the sender of a template, if it has one.
pub(super) fn sender(template: &Template) -> Result<Option<Person>, Failure> {
    let Sender { from_email, from_name } = serde_json::from_str(&template.extra).unwrap_or_default();
    let name = from_name.as_deref().unwrap_or_default();
    from_email.map(|email| Person::new("from_email", name, &email)).transpose()
}

/// Responds to a call.
pub(super) fn respond(call: &str, incoming: &Incoming, templates: &Templates<'_>) -> Result<Action, Failure> {
    if call == "list" {
        return Ok(ok(templates.list().iter().map(|template| show(template)).collect::<Vec<_>>()));
    }
    if !["add", "update", "info", "delete", "render"].contains(&call) {
        return Err(unknown_call(call));
    }
    let request: TemplateRequest<'_> = incoming.json()?;
    if request.name.is_empty() {
        return Err(Failure::missing("name"));
    }
    if call == "add" {
        if templates.find(&request.name).is_some() {
            let message = format!("A template with name \"{}\" already exists", request.name);
            return Err(Failure::new(FailureKind::Exists, message));
        }
        let slug = request.name.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "-");
        let template =
            Template { id: slug, alias: Some(request.name.clone()), name: request.name.clone(), ..Template::default() };
        return put(template, request, templates);
    }
    let template = templates
        .find(&request.name)
        .ok_or_else(|| Failure::new(FailureKind::NotFound, format!("No such template \"{}\"", request.name)))?;
    match call {
        "update" => put(Template::clone(&template), request, templates),
        "delete" => {
            templates.remove(&request.name);
            Ok(ok(show(&template)))
        }
        "render" => {
            let variables = request.template_content.0.iter().chain(&request.merge_vars.0);
            let parts = Parts { html: template.html.clone(), ..Parts::default() };
            let content = Merge::new(None, variables)?.content(parts, &TextBudget::new(incoming))?;
            let html = if let Content::Parts(parts) = content { parts.html } else { None };
            Ok(ok(json!({"html": html})))
        }
        _ => Ok(ok(show(&template))),
    }
}

/// Stores a template with the values of a request.
fn put(mut template: Template, request: TemplateRequest<'_>, templates: &Templates<'_>) -> Result<Action, Failure> {
    let mut from: Sender = serde_json::from_str(&template.extra).unwrap_or_default();
    from.from_email = request.from_email.or(from.from_email);
    from.from_name = request.from_name.or(from.from_name);
    template.extra = serde_json::to_string(&from).map_err(Failure::malformed)?;
    template.subject = request.subject.unwrap_or(template.subject);
    template.html = request.code.or(template.html);
    template.text = request.text.or(template.text);
    let shown = show(&template);
    templates.put(template)?;
    Ok(ok(shown))
}

fn show(template: &Template) -> Value {
    let Sender { from_email, from_name } = serde_json::from_str(&template.extra).unwrap_or_default();
    json!({
        "slug": template.id,
        "name": template.name,
        "labels": [],
        "code": template.html,
        "publish_code": template.html,
        "subject": template.subject,
        "text": template.text,
        "from_email": from_email,
        "from_name": from_name,
    })
}
