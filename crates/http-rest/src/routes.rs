//! The table of routes of the REST API and live events.

use std::sync::Arc;

use axum::Extension;
use axum::extract::Request;
use axum::routing::{MethodRouter, delete, get, patch, post};
use restante_http_core::api::Api;
use restante_http_core::credentials::Credentials;
use restante_http_core::render::file::PartSelector;
use restante_http_core::response::links::Purpose;
use restante_http_core::server::Server;
use restante_relay::Relay;
use restante_webhook::Webhooks;

use crate::live::frame::EventFormat;
use crate::serve::status::{self, Status};
use crate::v1::mailbox;
use crate::v2::about::{self, About};
use crate::v2::{
    attachment_counts, batch, body, chaos, extract, html_check, inject, mailboxes, message, message_changes, messages,
    projects, queue, relay, runs, search, sessions, tags, usage, wait, webhooks,
};
use crate::{attachments, live, preview, serve};

/// The beginnings of the paths of WebSockets and event streams.
const STREAM_PATHS: [&str; 3] = ["/api/v1/monitor/", "/api/v2/monitor/", "/api/v2/events"];

/// The descriptions of the server.
#[derive(Default)]
pub struct Descriptions {
    /// The description for the web interface.
    pub about: About,
    /// The description for Inbucket's status page.
    pub status: Status,
}

/// Returns the API.
pub fn api(descriptions: Descriptions) -> Api {
    Api { credentials, ..Api::new("rest", routes(descriptions)) }
}

fn credentials(template: &str, request: &Request) -> Credentials {
    if STREAM_PATHS.iter().any(|path| template.starts_with(path)) {
        Credentials::from_headers_or_query(request)
    } else {
        Credentials::from_headers(request)
    }
}

fn routes(Descriptions { about, status }: Descriptions) -> Vec<(String, MethodRouter<Arc<Server>>)> {
    let (about, status) = (Extension(Arc::new(about)), Extension(Arc::new(status)));
    let mut routes = vec![
        ("/api/v1/mailbox/{name}".to_owned(), get(mailbox::list).delete(mailbox::purge)),
        ("/api/v1/mailbox/{name}/{id}".to_owned(), get(mailbox::message).patch(mailbox::mark).delete(mailbox::remove)),
        // An existing client deletes a message by the path of its source.
        ("/api/v1/mailbox/{name}/{id}/source".to_owned(), get(mailbox::source).delete(mailbox::remove)),
        ("/api/v1/monitor/messages".to_owned(), live::websocket(EventFormat::Summary)),
        ("/api/v1/monitor/messages/{name}".to_owned(), live::websocket(EventFormat::Summary)),
        ("/api/v2/mailboxes".to_owned(), get(mailboxes::list).delete(mailboxes::purge)),
        ("/api/v2/mailbox/{name}".to_owned(), post(inject::inject)),
        ("/api/v2/mailbox/{name}/wait".to_owned(), get(wait::wait)),
        ("/api/v2/mailbox/{name}/attachments".to_owned(), get(attachment_counts::counts)),
        ("/api/v2/mailbox/{name}/{id}".to_owned(), get(message::details)),
        ("/api/v2/mailbox/{name}/delete".to_owned(), post(batch::delete)),
        ("/api/v2/mailbox/{name}/mark".to_owned(), post(batch::mark)),
        (
            "/api/v2/messages".to_owned(),
            get(messages::list).patch(message_changes::mark_matching).delete(message_changes::delete_matching),
        ),
        ("/api/v2/messages/mark".to_owned(), post(message_changes::mark)),
        ("/api/v2/messages/delete".to_owned(), post(message_changes::delete)),
        ("/api/v2/messages/{id}".to_owned(), get(messages::message).patch(messages::change).delete(messages::delete)),
        ("/api/v2/messages/{id}/details".to_owned(), get(message::details)),
        ("/api/v2/messages/{id}/source".to_owned(), get(messages::source)),
        ("/api/v2/messages/{id}/html".to_owned(), get(preview::preview)),
        ("/api/v2/messages/{id}/attachments/{index}".to_owned(), get(attachments::file)),
        ("/api/v2/messages/{id}/release".to_owned(), post(relay::release)),
        ("/api/v2/projects".to_owned(), get(projects::list)),
        ("/api/v2/tags".to_owned(), get(tags::list)),
        ("/api/v2/tags/{tag}".to_owned(), patch(tags::rename).delete(tags::delete)),
        ("/api/v2/relay".to_owned(), get(relay::targets)),
        ("/api/v2/relay/entries".to_owned(), get(queue::list::<Relay>)),
        ("/api/v2/relay/entries/{id}".to_owned(), get(relay::entry)),
        ("/api/v2/relay/retry".to_owned(), post(queue::retry::<Relay>)),
        ("/api/v2/relay/cancel".to_owned(), post(queue::cancel::<Relay>)),
        ("/api/v2/webhooks".to_owned(), get(webhooks::targets)),
        ("/api/v2/webhooks/entries".to_owned(), get(queue::list::<Webhooks>)),
        ("/api/v2/webhooks/entries/{id}".to_owned(), get(webhooks::entry)),
        ("/api/v2/webhooks/retry".to_owned(), post(queue::retry::<Webhooks>)),
        ("/api/v2/webhooks/cancel".to_owned(), post(queue::cancel::<Webhooks>)),
        ("/api/v2/webhooks/pause".to_owned(), post(webhooks::pause)),
        ("/api/v2/webhooks/resume".to_owned(), post(webhooks::resume)),
        ("/api/v2/chaos".to_owned(), get(chaos::get).put(chaos::set)),
        ("/api/v2/runs".to_owned(), post(runs::lease).layer(about.clone())),
        ("/api/v2/runs/{project}".to_owned(), delete(runs::end)),
        ("/api/v2/usage".to_owned(), get(usage::usage)),
        ("/api/v2/wait".to_owned(), get(wait::wait_for_any)),
        ("/api/v2/search".to_owned(), get(search::search)),
        ("/api/v2/sessions".to_owned(), get(sessions::list)),
        ("/api/v2/sessions/{id}".to_owned(), get(sessions::session)),
        ("/api/v2/monitor/messages".to_owned(), live::websocket(EventFormat::Change)),
        ("/api/v2/monitor/messages/{name}".to_owned(), live::websocket(EventFormat::Change)),
        ("/api/v2/events".to_owned(), get(live::events)),
        ("/api/v2/events/{name}".to_owned(), get(live::events)),
        (
            "/mailbox/dattach/{name}/{id}/{index}/{*file}".to_owned(),
            attachments::serve(PartSelector::Attachment, Purpose::Download),
        ),
        (
            "/mailbox/vattach/{name}/{id}/{index}/{*file}".to_owned(),
            attachments::serve(PartSelector::Attachment, Purpose::View),
        ),
        ("/serve/mailbox/{name}/{id}".to_owned(), get(serve::message::compat)),
        ("/serve/mailbox/{name}/{id}/html".to_owned(), get(preview::preview)),
        ("/serve/mailbox/{name}/{id}/source".to_owned(), get(mailbox::source)),
        (
            "/serve/mailbox/{name}/{id}/attach/{index}/{*file}".to_owned(),
            attachments::serve(PartSelector::InbucketAttachment, Purpose::View),
        ),
        (status::STATUS_PATH.to_owned(), get(status::status).layer(status)),
        (about::ABOUT_PATH.to_owned(), get(about::about).layer(about)),
    ];
    // The resources of a copy, and those of the first copy of a message.
    for copy in ["mailbox/{name}/{id}", "messages/{id}"] {
        let resources: [(&str, MethodRouter<Arc<Server>>); 9] = [
            ("links", get(extract::links)),
            ("codes", get(extract::codes)),
            ("unsubscribe", get(extract::unsubscribe)),
            ("parts", get(extract::parts)),
            ("parts/{index}", get(extract::part_content)),
            ("html-check", get(html_check::html_check)),
            ("body", get(body::body)),
            ("attachments.zip", get(attachments::archive)),
            ("transcript", get(sessions::transcript)),
        ];
        routes.extend(resources.map(|(name, handler)| (format!("/api/v2/{copy}/{name}"), handler)));
    }
    routes
}
