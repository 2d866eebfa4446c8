//! The list of projects that have messages, in pages.

use std::collections::BTreeMap;
use std::ops::Bound;

use axum::response::Response;
use restante_http_core::extractors::access::Access;
use restante_http_core::extractors::query::{FromQuery, Parsed, QueryPairs};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_mail::naming::{Project, ProjectError};
use restante_store::ProjectState;
use serde::Serialize;
use utoipa::ToSchema;

/// The default number of projects in a list, and the maximum.
const DEFAULT_PROJECTS: usize = 100;
const MAX_PROJECTS: usize = 1000;

/// Lists the projects with mailboxes that the client may read. If these are not all mailboxes, all names of those that it
/// may read are read.
pub(crate) async fn list(
    Access { server, grant, cancellation }: Access,
    Parsed(page): Parsed<ProjectPage>,
) -> Result<Response, Problem> {
    // One more than requested, to know whether this is the last page.
    let limit = page.limit.saturating_add(1);
    let mut projects = if grant.covers_all_mailboxes() {
        server.mailroom.projects(page.after.as_ref(), limit).await?
    } else {
        let mut found: BTreeMap<Project, ProjectState> = BTreeMap::new();
        let visit = server.messages.visit_mailboxes(&grant, |mailbox| {
            let Some(name) = mailbox.name.project() else { return };
            let empty = || ProjectState { name: name.clone(), copies: 0, unseen: 0 };
            let project = found.entry(name.clone()).or_insert_with(empty);
            project.copies += mailbox.messages;
            project.unseen += mailbox.unseen;
        });
        cancellation.run_until_cancelled(visit).await?;
        let after = page.after.map_or(Bound::Unbounded, Bound::Excluded);
        found.range((after, Bound::Unbounded)).take(limit).map(|(_, project)| project.clone()).collect()
    };
    let is_last = projects.len() <= page.limit;
    projects.truncate(page.limit);
    let next = projects.last().filter(|_| !is_last).map(|last| last.name.as_str());
    success::no_store_json(&Projects { projects: projects.iter().map(ProjectRecord::new).collect(), next })
}

/// The requested page of the list of projects.
pub(crate) struct ProjectPage {
    after: Option<Project>,
    limit: usize,
}

impl FromQuery for ProjectPage {
    fn from_query(query: &QueryPairs) -> Result<Self, Problem> {
        let invalid = |error: ProjectError| Problem::Malformed(format!("The parameter after is invalid: {error}."));
        let after = query.text("after")?.map(str::parse).transpose().map_err(invalid)?;
        Ok(Self { after, limit: query.limit(DEFAULT_PROJECTS, MAX_PROJECTS)? })
    }
}

/// A page of the list of projects, ascending by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Projects<'a> {
    projects: Vec<ProjectRecord<'a>>,
    /// The value of `after` for the next page, or null on the last page.
    #[schema(required)]
    next: Option<&'a str>,
}

/// A project that has messages.
#[derive(Serialize, ToSchema)]
#[schema(as = Project)]
struct ProjectRecord<'a> {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    name: &'a str,
    /// The number of messages in its mailboxes. A message in several mailboxes is counted once for each of them.
    messages: u64,
    /// The number of these that are not marked as seen.
    unseen: u64,
}

impl<'a> ProjectRecord<'a> {
    fn new(ProjectState { name, copies, unseen }: &'a ProjectState) -> Self {
        Self { name: name.as_str(), messages: *copies, unseen: *unseen }
    }
}
