//! Which APIs a listener serves, and below which path.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::slice::from_ref;

use restante_http_core::api::Api;
use restante_http_rest::{About, Descriptions, Status};
use restante_settings::{ApiMount, ApiName};

use crate::operations;

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

/// All APIs of the server.
pub(crate) struct Apis {
    pub(crate) rest: Api,
    pub(crate) web: Api,
    operations: Api,
    mailpit: Api,
    providers: Vec<Api>,
}

impl Apis {
    pub(crate) fn new(info: ServerInfo) -> Self {
        let ServerInfo { about, status, greeting_file } = info;
        let mut rest = restante_http_rest::api(Descriptions { about, status });
        rest.routes.extend(restante_http_openapi::routes(restante_http_rest::schemas));
        Self {
            rest,
            web: restante_http_web::api(greeting_file),
            operations: operations::api(),
            mailpit: restante_dialect_mailpit::api(),
            providers: restante_providers::apis(),
        }
    }

    /// Returns the API of this name. Each provider has its own.
    pub(crate) fn get(&self, name: ApiName) -> &[Api] {
        match name {
            ApiName::Rest => from_ref(&self.rest),
            ApiName::Web => from_ref(&self.web),
            ApiName::Operations => from_ref(&self.operations),
            ApiName::Mailpit => from_ref(&self.mailpit),
            ApiName::Providers => &self.providers,
        }
    }
}

/// Returns the OpenAPI document with line breaks, for a server at any URL. Used to generate clients without a running
/// server.
pub fn openapi() -> serde_json::Result<String> {
    restante_http_openapi::openapi(restante_http_rest::schemas())
}

/// The APIs of one listener. Each is served below its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerApis {
    /// The prefixes and the APIs below them. A prefix is empty, or `/x/y` without a trailing slash.
    pub(crate) mounts: Vec<(String, ApiName)>,
    /// Whether this is a main listener, which has the pages.
    pub(crate) is_main: bool,
}

impl ListenerApis {
    /// Returns the APIs of the main listeners: all that are served without configuration, and those below other paths.
    pub fn main(mounts: &[ApiMount]) -> Self {
        let main = ApiName::MAIN.into_iter().map(|api| (String::new(), api));
        let below = mounts.iter().filter(|mount| mount.addr.is_none()).flat_map(prefixed);
        Self { mounts: main.chain(below).collect(), is_main: true }
    }

    /// Returns the APIs of a listener of their own.
    pub fn separate<'m>(mounts: impl IntoIterator<Item = &'m ApiMount>) -> Self {
        Self { mounts: mounts.into_iter().flat_map(prefixed).collect(), is_main: false }
    }

    /// Fails if two APIs have the same path.
    pub fn check(&self) -> Result<(), Collision> {
        let apis = Apis::new(ServerInfo::default());
        let mounted = self.mounts.iter();
        check_collisions(mounted.flat_map(|(prefix, name)| apis.get(*name).iter().map(|api| (prefix.as_str(), api))))
    }
}

fn prefixed(mount: &ApiMount) -> impl Iterator<Item = (String, ApiName)> {
    mount.apis.iter().map(|api| (mount.prefix.clone(), *api))
}

/// Two APIs of one listener have the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The name of the first API.
    pub first: &'static str,
    /// The name of the second API.
    pub second: &'static str,
    /// The path.
    pub path: String,
}

impl Display for Collision {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { first, second, path } = self;
        if first == second {
            return write!(f, "the API {first} is served twice at {path}");
        }
        write!(
            f,
            "the APIs {first} and {second} have the same path {path}: serve one of them below another path or at another address"
        )
    }
}

/// Fails if two APIs have the same path, unless they share it. Paths with parameters are the same if they differ only in the
/// names of these.
pub(crate) fn check_collisions<'a>(apis: impl Iterator<Item = (&'a str, &'a Api)>) -> Result<(), Collision> {
    let mut owners: HashMap<String, &'static str> = HashMap::new();
    for (prefix, api) in apis {
        for (path, _) in api.all_routes() {
            let path = format!("{prefix}{path}");
            if let Some(first) = owners.insert(path_shape(&path), api.name) {
                return Err(Collision { first, second: api.name, path });
            }
        }
    }
    Ok(())
}

/// Returns a path template without the names of its parameters.
pub(crate) fn path_shape(template: &str) -> String {
    let segment = |segment: &'_ str| match segment.as_bytes() {
        [b'{', b'*', .., b'}'] => "{*}".to_owned(),
        [b'{', .., b'}'] => "{}".to_owned(),
        _ => segment.to_owned(),
    };
    template.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};

    use super::*;

    fn api(name: &'static str, paths: &[&str]) -> Api {
        let routes = paths.iter().map(|path| ((*path).to_owned(), get(async || "").merge(post(async || "")))).collect();
        Api::new(name, routes)
    }

    #[test]
    fn main_listeners_have_no_collisions() {
        assert_eq!(ListenerApis::main(&[]).check(), Ok(()));
    }

    #[test]
    fn collisions_name_both_apis_and_the_path() {
        let first = api("first", &["/email", "/x/{id}", "/files/{*path}"]);
        let table = [
            ("", "/email", Some("/email")),
            ("", "/x/{name}", Some("/x/{name}")),
            ("", "/files/{*file}", Some("/files/{*file}")),
            ("", "/x/fixed", None),
            ("", "/x/{id}/y", None),
            ("/second", "/email", None),
            ("/x", "/{name}", Some("/x/{name}")),
        ];
        for (prefix, path, expected) in table {
            let second = api("second", &[path]);
            let collision = check_collisions([("", &first), (prefix, &second)].into_iter()).err();
            let expected = expected.map(|path| Collision { first: "first", second: "second", path: path.to_owned() });
            assert_eq!(collision, expected, "{prefix}{path}");
        }
        let collision = Collision { first: "first", second: "second", path: "/email".to_owned() };
        assert!(collision.to_string().starts_with("the APIs first and second have the same path /email:"));
    }

    #[test]
    fn an_api_twice_at_the_same_place_is_a_collision() {
        let mount: ApiMount = "localhost:8025 mailpit mailpit".parse().unwrap();
        let collision = ListenerApis::separate([&mount]).check().unwrap_err();
        assert_eq!((collision.first, collision.second), ("mailpit", "mailpit"));
    }
}
