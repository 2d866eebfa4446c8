//! The table of routes of the pages.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::routing::{get, post};
use restante_http_core::api::{Api, Route};
use restante_http_core::paths;
use restante_http_core::response::success::permanent_redirect;

use crate::greeting::{self, Greeting};
use crate::{login, pages, single_sign_on};

/// Returns the pages as an API. `greeting_file` is an HTML file to show as the greeting instead of the built-in text.
pub fn api(greeting_file: Option<PathBuf>) -> Api {
    Api::new("web", routes(greeting_file))
}

fn routes(greeting_file: Option<PathBuf>) -> Vec<Route> {
    let greeting = Extension(Arc::new(Greeting::new(greeting_file)));
    let mut routes = vec![
        ("/".to_owned(), get(pages::page::<0>)),
        ("/messages/{id}".to_owned(), get(pages::page::<1>)),
        ("/m/{name}".to_owned(), get(pages::page::<1>)),
        ("/m/{name}/{id}".to_owned(), get(pages::page::<2>)),
        ("/messages/{id}/".to_owned(), get(pages::redirect_without_slash)),
        // There are no pages at these paths. They redirect to the inbox.
        ("/messages".to_owned(), get(async || permanent_redirect("./".to_owned()))),
        ("/messages/".to_owned(), get(async || permanent_redirect("../".to_owned()))),
        ("/m".to_owned(), get(async || permanent_redirect("./".to_owned()))),
        ("/m/".to_owned(), get(async || permanent_redirect("../".to_owned()))),
        ("/m/{name}/".to_owned(), get(pages::redirect_without_slash)),
        ("/m/{name}/{id}/".to_owned(), get(pages::redirect_without_slash)),
        (paths::DOCS.to_owned(), get(pages::page::<1>)),
        (paths::ASSETS.to_owned(), get(pages::asset)),
        (paths::LOGIN.to_owned(), get(login::form).post(login::log_in)),
        (paths::LOGIN_OIDC.to_owned(), get(single_sign_on::start)),
        (paths::LOGIN_OIDC_CALLBACK.to_owned(), get(single_sign_on::complete)),
        (paths::LOGOUT.to_owned(), post(login::log_out)),
        (paths::LOGOUT_OIDC.to_owned(), get(single_sign_on::log_out)),
        (greeting::GREETING_PATH.to_owned(), get(greeting::greeting).layer(greeting)),
    ];
    for page in paths::ROOT_PAGES {
        routes.push((page.to_owned(), get(pages::page::<0>)));
        routes.push((format!("{page}/"), get(pages::redirect_without_slash)));
    }
    routes
}

/// Returns the routes that exist only at the root of a host: crawlers read only this one (RFC 9309 section 2.3), and so do
/// browsers for the icon.
pub fn root_routes() -> Vec<Route> {
    vec![(paths::ROBOTS.to_owned(), get(pages::robots)), (paths::ICON.to_owned(), get(pages::icon))]
}
