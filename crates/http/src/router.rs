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
use crate::live::frame::EventFormat;
use crate::middleware::{cors, request_checks};
use crate::openapi::{self, ApiDescription};
use crate::operations::about::{self, About};
use crate::operations::status::{self, Status};
use crate::operations::{metrics, probe};
use crate::paths;
use crate::response::links::Purpose;
use crate::response::problem::Problem;
use crate::response::success::permanent_redirect;
use crate::state::attachment::PartSelector;
use crate::state::{Server, Settings};
use crate::web::greeting::{self, Greeting};
use crate::web::{self, attachments, login, pages, plain_page, preview};

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
        .fallback(plain_page::not_found)
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
    let add_page = |routes: Routes, page: &str| {
        let routes = routes.route(&path(page), get(pages::page::<0>));
        routes.route(&path(&format!("{page}/")), get(pages::redirect_without_slash))
    };
    let routes = paths::ROOT_PAGES.into_iter().fold(routes, add_page);
    // The resources of a copy, and those of the first copy of a message.
    let add_resources = |routes: Routes, copy: &str| {
        let resource = |name: &str| path(&format!("/api/v2/{copy}/{name}"));
        routes
            .route(&resource("links"), get(extract::links))
            .route(&resource("codes"), get(extract::codes))
            .route(&resource("unsubscribe"), get(extract::unsubscribe))
            .route(&resource("parts"), get(extract::parts))
            .route(&resource("parts/{index}"), get(extract::part_content))
            .route(&resource("html-check"), get(html_check::html_check))
            .route(&resource("body"), get(body::body))
            .route(&resource("attachments.zip"), get(attachments::archive))
            .route(&resource("transcript"), get(sessions::transcript))
    };
    ["mailbox/{name}/{id}", "messages/{id}"]
        .into_iter()
        .fold(routes, add_resources)
        .route(&path("/"), get(pages::page::<0>))
        .route(&path("/messages/{id}"), get(pages::page::<1>))
        .route(&path("/m/{name}"), get(pages::page::<1>))
        .route(&path("/m/{name}/{id}"), get(pages::page::<2>))
        .route(&path("/messages/{id}/"), get(pages::redirect_without_slash))
        // There are no pages at these paths. They redirect to the inbox.
        .route(&path("/messages"), get(async || permanent_redirect("./".to_owned())))
        .route(&path("/messages/"), get(async || permanent_redirect("../".to_owned())))
        .route(&path("/m"), get(async || permanent_redirect("./".to_owned())))
        .route(&path("/m/"), get(async || permanent_redirect("../".to_owned())))
        .route(&path("/m/{name}/"), get(pages::redirect_without_slash))
        .route(&path("/m/{name}/{id}/"), get(pages::redirect_without_slash))
        .route(&path(paths::ASSETS), get(pages::asset))
        .route(&path(paths::LOGIN), get(login::form).post(login::log_in))
        .route(&path(paths::LOGOUT), post(login::log_out))
        .route(&path("/api/v1/mailbox/{name}"), get(mailbox::list).delete(mailbox::purge))
        .route(&path("/api/v1/mailbox/{name}/{id}"), get(mailbox::message).patch(mailbox::mark).delete(mailbox::remove))
        // An existing client deletes a message by the path of its source.
        .route(&path("/api/v1/mailbox/{name}/{id}/source"), get(mailbox::source).delete(mailbox::remove))
        .route(&path("/api/v1/monitor/messages"), live::websocket(EventFormat::Summary))
        .route(&path("/api/v1/monitor/messages/{name}"), live::websocket(EventFormat::Summary))
        .route(&path("/api/v2/mailboxes"), get(mailboxes::list).delete(mailboxes::purge))
        .route(&path("/api/v2/mailbox/{name}"), post(inject::inject))
        .route(&path("/api/v2/mailbox/{name}/wait"), get(wait::wait))
        .route(&path("/api/v2/mailbox/{name}/attachments"), get(attachment_counts::counts))
        .route(&path("/api/v2/mailbox/{name}/{id}"), get(message::details))
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
        .route(&path("/api/v2/messages/{id}/attachments/{index}"), get(attachments::file))
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
        .route(&path("/api/v2/sessions"), get(sessions::list))
        .route(&path("/api/v2/sessions/{id}"), get(sessions::session))
        .route(&path("/api/v2/monitor/messages"), live::websocket(EventFormat::Change))
        .route(&path("/api/v2/monitor/messages/{name}"), live::websocket(EventFormat::Change))
        .route(&path("/api/v2/events"), get(live::events))
        .route(&path("/api/v2/events/{name}"), get(live::events))
        .route(&path(openapi::DOCUMENT_PATH), get(openapi::document).layer(Extension(state.description.clone())))
        .route(&path(paths::DOCS), get(openapi::docs).layer(Extension(state.description.clone())))
        .route(
            &path("/mailbox/dattach/{name}/{id}/{index}/{*file}"),
            attachments::serve(PartSelector::Attachment, Purpose::Download),
        )
        .route(
            &path("/mailbox/vattach/{name}/{id}/{index}/{*file}"),
            attachments::serve(PartSelector::Attachment, Purpose::View),
        )
        .route(&path("/serve/mailbox/{name}/{id}"), get(web::message::compat))
        .route(&path("/serve/mailbox/{name}/{id}/html"), get(preview::preview))
        .route(&path("/serve/mailbox/{name}/{id}/source"), get(mailbox::source))
        .route(
            &path("/serve/mailbox/{name}/{id}/attach/{index}/{*file}"),
            attachments::serve(PartSelector::InbucketAttachment, Purpose::View),
        )
        .route(&path(greeting::GREETING_PATH), get(greeting::greeting).layer(Extension(state.greeting.clone())))
        .route(&path(status::STATUS_PATH), get(status::status).layer(Extension(state.status.clone())))
        .route(&path(about::ABOUT_PATH), get(about::about).layer(Extension(state.about.clone())))
        .route(&path(paths::LIVE), get(probe::live))
        .route(&path(paths::READY), get(probe::ready))
        .route(&path(metrics::METRICS_PATH), get(metrics::metrics))
        .route(&path(metrics::VARS_PATH), get(metrics::vars))
}
