//! The templates that clients have stored with the API of a provider, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use restante_mail::compose::Attachment;
use restante_mail::naming::Project;

use crate::email::Parts;
use crate::failure::{Failure, FailureKind};
use crate::text_budget::TextBudget;

/// The field of failures because of an unknown template.
pub(crate) const TEMPLATE: &str = "template";
/// The maximum number of templates of a project.
const MAX_TEMPLATES: usize = 1000;
/// The maximum size of a template.
const MAX_TEMPLATE_BYTES: usize = 512 * 1024;
/// The size of a template without texts.
const TEMPLATE_BYTES: usize = 500;
/// The maximum length of the name, the id and the alias of a template.
const MAX_NAME_BYTES: usize = 1000;
/// The maximum size of the templates of a project.
const MAX_PROJECT_BYTES: usize = 16 * 1024 * 1024;
/// The maximum size of all templates.
const MAX_TOTAL_BYTES: usize = 128 * 1024 * 1024;
/// The name of the attachment with the data of an unknown template.
const DATA_FILENAME: &str = "template-data.json";

/// A template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    /// The id by which the provider finds it.
    pub(crate) id: String,
    /// Another name by which it can be found.
    pub(crate) alias: Option<String>,
    /// The name that people see.
    pub(crate) name: String,
    pub(crate) subject: String,
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
    /// What else the provider stores with it, as JSON. Only the module of the provider reads it.
    pub(crate) extra: String,
}

/// A template in a request to send.
#[derive(Clone, Debug)]
pub(crate) struct TemplateUse {
    pub(crate) source: TemplateSource,
    /// The data, as JSON.
    pub(crate) data: String,
}

/// Where a template comes from.
#[derive(Clone, Debug)]
pub(crate) enum TemplateSource {
    /// A stored one with this id or alias.
    Stored(String),
    /// The request contains it.
    Inline(Template),
}

/// The templates of all providers.
#[derive(Debug, Default)]
pub(crate) struct TemplateStore {
    templates: Mutex<StoredTemplates>,
    last_number: AtomicU64,
}

#[derive(Debug, Default)]
struct StoredTemplates {
    by_key: BTreeMap<TemplateKey, Arc<Template>>,
    /// The size of all of them.
    bytes: usize,
}

impl StoredTemplates {
    fn remove(&mut self, key: &TemplateKey) -> Option<Arc<Template>> {
        let removed = self.by_key.remove(key)?;
        self.bytes -= removed.size();
        Some(removed)
    }
}

/// The project, the provider, and the id.
type TemplateKey = (Option<Project>, &'static str, String);

/// The templates of a provider that a request may use: those of its project.
#[derive(Debug)]
pub(crate) struct Templates<'a> {
    store: &'a TemplateStore,
    project: Option<Project>,
    provider: &'static str,
}

impl TemplateSource {
    /// Returns whether this is the empty name, which clients write if they use no template.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Stored(name) if name.is_empty())
    }
}

impl Template {
    /// Returns its size in memory, approximately.
    pub(crate) fn size(&self) -> usize {
        let Self { id, alias, name, subject, text, html, extra } = self;
        let optional = [alias, text, html].into_iter().flatten();
        TEMPLATE_BYTES + [id, name, subject, extra].into_iter().chain(optional).map(String::len).sum::<usize>()
    }
}

impl TemplateStore {
    /// Returns whether there are no templates.
    pub(crate) fn is_empty(&self) -> bool {
        self.templates.lock().by_key.is_empty()
    }

    /// Returns the templates of a provider in a project.
    pub(crate) fn scope(&self, project: Option<Project>, provider: &'static str) -> Templates<'_> {
        Templates { store: self, project, provider }
    }
}

impl<'a> Templates<'a> {
    /// Returns the templates of another provider in the same project.
    pub(crate) fn of(&self, provider: &'static str) -> Templates<'a> {
        Templates { store: self.store, project: self.project.clone(), provider }
    }

    /// Returns a number for the id of a new template. No other template has it.
    pub(crate) fn new_number(&self) -> u64 {
        self.store.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn key(&self, id: &str) -> TemplateKey {
        (self.project.clone(), self.provider, id.to_owned())
    }

    /// Returns all templates, in the order of their ids.
    pub(crate) fn list(&self) -> Vec<Arc<Template>> {
        let templates = self.store.templates.lock();
        let is_own = |key: &TemplateKey| key.0 == self.project && key.1 == self.provider;
        let own = templates.by_key.range(self.key("")..).take_while(|(key, _)| is_own(key));
        own.map(|(_, template)| template.clone()).collect()
    }

    /// Returns the template with this id or alias.
    pub(crate) fn find(&self, id_or_alias: &str) -> Option<Arc<Template>> {
        let by_id = self.store.templates.lock().by_key.get(&self.key(id_or_alias)).cloned();
        by_id.or_else(|| self.list().into_iter().find(|template| template.alias.as_deref() == Some(id_or_alias)))
    }

    /// Stores a template. It replaces the one with the same id.
    pub(crate) fn put(&self, template: Template) -> Result<(), Failure> {
        let names = [Some(&template.id), Some(&template.name), template.alias.as_ref()];
        let has_long_name = names.into_iter().flatten().any(|name| name.len() > MAX_NAME_BYTES);
        if template.size() > MAX_TEMPLATE_BYTES || has_long_name {
            return Err(Failure::new(
                FailureKind::TooLarge,
                format!(
                    "The template has more than {MAX_TEMPLATE_BYTES} bytes, or a name of more than {MAX_NAME_BYTES}."
                ),
            ));
        }
        let mut templates = self.store.templates.lock();
        let key = self.key(&template.id);
        let first = (self.project.clone(), "", String::new());
        let of_project = templates.by_key.range(first..).take_while(|(other, _)| other.0 == self.project);
        let others = of_project.filter(|(other, _)| **other != key).map(|(_, other)| other.size());
        let (count, bytes) = others.fold((1, template.size()), |(count, bytes), size| (count + 1, bytes + size));
        if count > MAX_TEMPLATES || bytes > MAX_PROJECT_BYTES || templates.bytes + template.size() > MAX_TOTAL_BYTES {
            return Err(Failure::new(FailureKind::Invalid, "The templates of this server are too many or too large."));
        }
        templates.remove(&key);
        templates.bytes += template.size();
        templates.by_key.insert(key, Arc::new(template));
        Ok(())
    }

    /// Removes the template with this id or alias. Returns it if there was one.
    pub(crate) fn remove(&self, id_or_alias: &str) -> Option<Arc<Template>> {
        let template = self.find(id_or_alias)?;
        self.store.templates.lock().remove(&self.key(&template.id))
    }

    /// Returns the parts of a message that a template and its data make. Parts of the request replace those of the template.
    /// If the provider has no templates here, the data becomes an attachment; if it has others, an unknown name is an error.
    pub(crate) fn render(&self, template: &TemplateUse, parts: Parts, budget: &TextBudget) -> Result<Parts, Failure> {
        let TemplateUse { source, data } = template;
        let stored;
        let template = match source {
            TemplateSource::Inline(template) => template,
            TemplateSource::Stored(name) => {
                let Some(found) = self.find(name) else { return self.without_template(name, data, parts) };
                stored = found;
                &*stored
            }
        };
        let rendered = crate::rendering::render(template, data, budget)?;
        Ok(Parts {
            subject: if parts.subject.is_empty() { rendered.subject } else { parts.subject },
            text: parts.text.or(rendered.text),
            html: parts.html.or(rendered.html),
            attachments: parts.attachments,
        })
    }

    fn without_template(&self, name: &str, data: &str, mut parts: Parts) -> Result<Parts, Failure> {
        if !self.list().is_empty() {
            let message = format!("The template {name} does not exist.");
            return Err(Failure { field: Some(TEMPLATE.to_owned()), ..Failure::new(FailureKind::NotFound, message) });
        }
        let note = format!("(unknown template {})", name.replace(char::is_control, " "));
        parts.subject = if parts.subject.is_empty() { note } else { format!("{} {note}", parts.subject) };
        if parts.text.is_none() && parts.html.is_none() {
            parts.text = Some(format!(
                "The template {name} is not stored on this server. Its data is in the attachment {DATA_FILENAME}.\n"
            ));
        }
        parts.attachments.push(Attachment {
            filename: Some(DATA_FILENAME.to_owned()),
            content_type: Some("application/json".to_owned()),
            content: data.as_bytes().to_vec().into(),
            content_id: None,
        });
        Ok(parts)
    }
}
