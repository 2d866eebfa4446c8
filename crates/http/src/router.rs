//! The table of routes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use restante_mailroom::Mailroom;
use restante_relay::Relay;
use restante_webhook::Webhooks;

use crate::api::v1::mailbox;
use crate::api::v2::{
    attachment_counts, batch, body, extract, html_check, inject, mailboxes, message, message_changes, messages, queue,
    relay, search, sessions, usage, wait, webhooks,
};
use crate::dialects::mailpit;
use crate::live;
use crate::middleware::{cors, request_checks};
use crate::openapi;
use crate::openapi::ApiDescription;
use crate::operations::about::About;
use crate::operations::status::Status;
use crate::operations::{about, metrics, probe, status};
use crate::paths;
use crate::response::problem::Problem;
use crate::state::{Server, Settings};
use crate::web;
use crate::web::greeting::Greeting;
use crate::web::{assets, attachments, greeting, login, not_found, pages, preview};

/// Returns the complete service. It serves all paths under the base path and at the root, because some clients drop the
/// base path.
pub fn router(mailroom: Arc<Mailroom>, settings: Settings, info: ServerInfo) -> Router {
    build_router(Arc::new(Server::new(mailroom, settings)), info)
}

pub(crate) fn build_router(server: Arc<Server>, info: ServerInfo) -> Router {
    let state = HandlerState::new(info);
    let base = server.settings.base_path.as_str();
    let mut routes = Routes::default();
    if !base.is_empty() {
        routes = add_routes(base, routes.route(base, get(pages::redirect_to_home)), &state);
    }
    // Crawlers read only the root of a host (RFC 9309 section 2.3), and so do browsers for the icon.
    let routes =
        add_routes("", routes, &state).route(paths::ROBOTS, get(pages::robots)).route(paths::ICON, get(pages::icon));
    let service = routes
        .router
        .fallback(not_found::not_found)
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed)
        .layer(from_fn_with_state(server.clone(), request_checks::check_request));
    let service = match server.settings.cors {
        // Outside of authentication: preflight requests have no credentials.
        Some(_) => service.layer(from_fn_with_state(server.clone(), cors::apply_cors)),
        None => service,
    };
    service.with_state(server)
}

/// The descriptions of the server.
#[derive(Default)]
pub struct ServerInfo {
    /// The description for the web interface.
    pub about: About,
    /// The description for Inbucket's status page.
    pub status: Status,
    /// An HTML file to show as the greeting instead of the built-in text.
    pub greeting_file: Option<PathBuf>,
}

/// The state that only single handlers need.
pub(crate) struct HandlerState {
    about: Arc<About>,
    status: Arc<Status>,
    greeting: Arc<Greeting>,
    description: Arc<ApiDescription>,
}

impl HandlerState {
    pub(crate) fn new(info: ServerInfo) -> Self {
        Self {
            about: Arc::new(info.about),
            status: Arc::new(info.status),
            greeting: Arc::new(Greeting::new(info.greeting_file)),
            description: Arc::default(),
        }
    }
}

/// A router in which the first of several routes with the same path wins. A base path can equal any path of the server,
/// and so can the paths below it.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) router: Router<Arc<Server>>,
    pub(crate) paths: HashSet<String>,
}

impl Routes {
    pub(crate) fn route(mut self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        if self.paths.insert(path.to_owned()) {
            self.router = self.router.route(path, handler);
        }
        self
    }
}

/// Adds all routes below the root, or below a base path.
fn add_routes(base: &str, routes: Routes, state: &HandlerState) -> Routes {
    let add = |routes: Routes, (path, handler): mailpit::Route| routes.route(&format!("{base}{path}"), handler);
    mailpit::routes().into_iter().fold(add_own_routes(base, routes, state), add)
}

/// Adds the routes of the web interface and the API, without those of dialects.
pub(crate) fn add_own_routes(base: &str, routes: Routes, state: &HandlerState) -> Routes {
    let path = |path: &str| format!("{base}{path}");
    routes
        .route(&path("/"), get(pages::root_page))
        .route(&path("/messages/{id}"), get(pages::page_one_below))
        .route(&path("/m/{name}"), get(pages::page_one_below))
        .route(&path("/m/{name}/{id}"), get(pages::page_two_below))
        .route(&path("/monitor"), get(pages::root_page))
        .route(&path("/status"), get(pages::root_page))
        .route(&path("/search"), get(pages::root_page))
        .route(&path("/sessions"), get(pages::root_page))
        .route(&path("/relay"), get(pages::root_page))
        .route(&path("/webhooks"), get(pages::root_page))
        .route(&path("/settings"), get(pages::root_page))
        .route(&path("/send"), get(pages::root_page))
        .route(&path("/messages"), get(pages::redirect_to_sibling_home))
        .route(&path("/messages/"), get(pages::redirect_to_parent))
        .route(&path("/messages/{id}/"), get(pages::redirect_without_slash))
        .route(&path("/m"), get(pages::redirect_to_sibling_home))
        .route(&path("/m/"), get(pages::redirect_to_parent))
        .route(&path("/m/{name}/"), get(pages::redirect_without_slash))
        .route(&path("/m/{name}/{id}/"), get(pages::redirect_without_slash))
        .route(&path("/monitor/"), get(pages::redirect_without_slash))
        .route(&path("/status/"), get(pages::redirect_without_slash))
        .route(&path("/search/"), get(pages::redirect_without_slash))
        .route(&path("/sessions/"), get(pages::redirect_without_slash))
        .route(&path("/relay/"), get(pages::redirect_without_slash))
        .route(&path("/webhooks/"), get(pages::redirect_without_slash))
        .route(&path("/settings/"), get(pages::redirect_without_slash))
        .route(&path("/send/"), get(pages::redirect_without_slash))
        .route(&path(paths::ASSETS), get(assets::asset))
        .route(&path(paths::LOGIN), get(login::form).post(login::log_in))
        .route(&path(paths::LOGOUT), post(login::log_out))
        .route(&path("/api/v1/mailbox/{name}"), get(mailbox::list).delete(mailbox::purge))
        .route(&path("/api/v1/mailbox/{name}/{id}"), get(mailbox::message).patch(mailbox::mark).delete(mailbox::remove))
        // An existing client deletes a message by the path of its source.
        .route(&path("/api/v1/mailbox/{name}/{id}/source"), get(mailbox::source).delete(mailbox::remove))
        .route(&path("/api/v1/monitor/messages"), get(live::summaries))
        .route(&path("/api/v1/monitor/messages/{name}"), get(live::summaries))
        .route(&path("/api/v2/mailboxes"), get(mailboxes::list).delete(mailboxes::purge))
        .route(&path("/api/v2/mailbox/{name}"), post(inject::inject))
        .route(&path("/api/v2/mailbox/{name}/wait"), get(wait::wait))
        .route(&path("/api/v2/mailbox/{name}/attachments"), get(attachment_counts::counts))
        .route(&path("/api/v2/mailbox/{name}/{id}"), get(message::details))
        .route(&path("/api/v2/mailbox/{name}/{id}/links"), get(extract::links))
        .route(&path("/api/v2/mailbox/{name}/{id}/codes"), get(extract::codes))
        .route(&path("/api/v2/mailbox/{name}/{id}/unsubscribe"), get(extract::unsubscribe))
        .route(&path("/api/v2/mailbox/{name}/{id}/parts"), get(extract::parts))
        .route(&path("/api/v2/mailbox/{name}/{id}/parts/{index}"), get(extract::part_content))
        .route(&path("/api/v2/mailbox/{name}/{id}/html-check"), get(html_check::html_check))
        .route(&path("/api/v2/mailbox/{name}/{id}/body"), get(body::body))
        .route(&path("/api/v2/mailbox/{name}/{id}/attachments.zip"), get(attachments::archive))
        .route(&path("/api/v2/mailbox/{name}/delete"), post(batch::delete))
        .route(&path("/api/v2/mailbox/{name}/mark"), post(batch::mark))
        .route(
            &path("/api/v2/messages"),
            get(messages::list).patch(message_changes::mark_matching).delete(message_changes::delete_matching),
        )
        .route(&path("/api/v2/messages/mark"), post(message_changes::mark))
        .route(&path("/api/v2/messages/delete"), post(message_changes::delete))
        .route(&path("/api/v2/messages/{id}"), get(messages::message).patch(messages::change).delete(messages::delete))
        .route(&path("/api/v2/messages/{id}/details"), get(message::details))
        .route(&path("/api/v2/messages/{id}/source"), get(messages::source))
        .route(&path("/api/v2/messages/{id}/html"), get(preview::preview))
        .route(&path("/api/v2/messages/{id}/links"), get(extract::links))
        .route(&path("/api/v2/messages/{id}/codes"), get(extract::codes))
        .route(&path("/api/v2/messages/{id}/unsubscribe"), get(extract::unsubscribe))
        .route(&path("/api/v2/messages/{id}/parts"), get(extract::parts))
        .route(&path("/api/v2/messages/{id}/parts/{index}"), get(extract::part_content))
        .route(&path("/api/v2/messages/{id}/html-check"), get(html_check::html_check))
        .route(&path("/api/v2/messages/{id}/body"), get(body::body))
        .route(&path("/api/v2/messages/{id}/attachments/{index}"), get(attachments::file))
        .route(&path("/api/v2/messages/{id}/attachments.zip"), get(attachments::archive))
        .route(&path("/api/v2/messages/{id}/transcript"), get(sessions::transcript))
        .route(&path("/api/v2/messages/{id}/release"), post(relay::release))
        .route(&path("/api/v2/relay"), get(relay::targets))
        .route(&path("/api/v2/relay/entries"), get(queue::list::<Relay>))
        .route(&path("/api/v2/relay/entries/{id}"), get(relay::entry))
        .route(&path("/api/v2/relay/retry"), post(queue::retry::<Relay>))
        .route(&path("/api/v2/relay/cancel"), post(queue::cancel::<Relay>))
        .route(&path("/api/v2/webhooks"), get(webhooks::targets))
        .route(&path("/api/v2/webhooks/entries"), get(queue::list::<Webhooks>))
        .route(&path("/api/v2/webhooks/entries/{id}"), get(webhooks::entry))
        .route(&path("/api/v2/webhooks/retry"), post(queue::retry::<Webhooks>))
        .route(&path("/api/v2/webhooks/cancel"), post(queue::cancel::<Webhooks>))
        .route(&path("/api/v2/webhooks/pause"), post(webhooks::pause))
        .route(&path("/api/v2/webhooks/resume"), post(webhooks::resume))
        .route(&path("/api/v2/usage"), get(usage::usage))
        .route(&path("/api/v2/wait"), get(wait::wait_for_any))
        .route(&path("/api/v2/search"), get(search::search))
        .route(&path("/api/v2/mailbox/{name}/{id}/transcript"), get(sessions::transcript))
        .route(&path("/api/v2/sessions"), get(sessions::list))
        .route(&path("/api/v2/sessions/{id}"), get(sessions::session))
        .route(&path("/api/v2/monitor/messages"), get(live::changes))
        .route(&path("/api/v2/monitor/messages/{name}"), get(live::changes))
        .route(&path("/api/v2/events"), get(live::events))
        .route(&path("/api/v2/events/{name}"), get(live::events))
        .route(&path(openapi::DOCUMENT_PATH), get(openapi::document).layer(Extension(state.description.clone())))
        .route(&path(paths::DOCS), get(openapi::docs).layer(Extension(state.description.clone())))
        .route(&path("/mailbox/dattach/{name}/{id}/{index}/{*file}"), get(attachments::download))
        .route(&path("/mailbox/vattach/{name}/{id}/{index}/{*file}"), get(attachments::view))
        .route(&path("/serve/mailbox/{name}/{id}"), get(web::message::compat))
        .route(&path("/serve/mailbox/{name}/{id}/html"), get(preview::preview))
        .route(&path("/serve/mailbox/{name}/{id}/source"), get(mailbox::source))
        .route(&path("/serve/mailbox/{name}/{id}/attach/{index}/{*file}"), get(attachments::inbucket_view))
        .route(&path(greeting::GREETING_PATH), get(greeting::greeting).layer(Extension(state.greeting.clone())))
        .route(&path(status::STATUS_PATH), get(status::status).layer(Extension(state.status.clone())))
        .route(&path(about::ABOUT_PATH), get(about::about).layer(Extension(state.about.clone())))
        .route(&path(paths::LIVE), get(probe::live))
        .route(&path(paths::READY), get(probe::ready))
        .route(&path(metrics::METRICS_PATH), get(metrics::metrics))
        .route(&path(metrics::VARS_PATH), get(metrics::vars))
}
