//! Projects: names relative to a home, the paths of a project, and the table of all routes, with which a client of one
//! project reaches nothing of another one.

use std::collections::BTreeSet;

use restante_mail::message::Summary;
use restante_mailroom::Page;
use restante_settings::ApiName;
use restante_store::CopyUpdate;
use serde_json::json;

use super::*;
use crate::apis::Apis;
use crate::tests::support::accounts::Accounts;
use crate::tests::support::events::EventServer;

const ROUTES: &str = include_str!("projects/routes.txt");
/// The number of the message of the project `acme`.
const ACME: u64 = 1;

/// Stores the same message for mailbox `bob` in the project `shop`, in `acme`, and in no project.
async fn add_messages(server: &TestServer) {
    server.add_message_with_details(0, "shop:bob", "Subject: Hello\r\n\r\nHello\r\n").await;
    server.add_message_with_details(ACME, "acme:bob", "Subject: Sesame\r\n\r\nSesame\r\n").await;
    server.add_message_with_details(2, "bob", "Subject: Sesame\r\n\r\nSesame\r\n").await;
}

/// Stores a message without To for mailbox `bob` in the project `shop` and in `acme`, as a delivery does.
async fn add_shared_message(server: &TestServer, number: u64) {
    let copy = |(mailbox, recipient): (&str, &str)| {
        let recipients = [recipient.to_owned()];
        let fields = DetailFields { lacks_to: true, recipients: &recipients, ..DetailFields::default() };
        let details = Details::new(&fields);
        NewCopy {
            mailbox: mailbox.to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details,
            trace: None,
        }
    };
    let message = NewMessage {
        received: Timestamp::from_microsecond(id(number).cast_signed()).unwrap(),
        headline: Headline::new("<a@example.org>", [], "Shared"),
        body: Bytes::from_static(b"Subject: Shared\r\n\r\nHello\r\n"),
        copies: [("acme:bob", "sesame@acme.test"), ("shop:bob", "bob@shop.test")].map(copy).into(),
    };
    server.store.append(message).await.unwrap();
}

#[tokio::test]
async fn names_are_relative_to_the_home() {
    let accounts = Accounts::with_search();
    add_messages(&accounts.server).await;
    let (shop, all) = (accounts.token(&["shop:*"]).await, accounts.token(&[]).await);
    let both = accounts.token(&["shop:*", "acme:*"]).await;
    // The request, and the mailboxes in the responses to the three tokens; "" if it is refused.
    let table = [
        ("GET /api/v1/mailbox/bob", "bob", "bob", ""),
        ("GET /api/v1/mailbox/shop:bob", "bob", "shop:bob", "shop:bob"),
        ("GET /api/v1/mailbox/SHOP:Bob", "bob", "shop:bob", "shop:bob"),
        ("GET /api/v1/mailbox/acme:bob", "", "acme:bob", "acme:bob"),
        ("GET /api/v2/mailboxes", "bob", "acme:bob bob shop:bob", "acme:bob shop:bob"),
        ("GET /api/v2/mailboxes?prefix=b", "bob", "bob", ""),
        ("GET /api/v2/mailboxes?prefix=shop:", "", "shop:bob", "shop:bob"),
        ("GET /api/v2/messages", "bob", "bob acme:bob shop:bob", "acme:bob shop:bob"),
        ("GET /api/v2/messages?mailbox=bob", "bob bob", "bob bob", ""),
        ("GET /api/v2/messages/latest", "bob bob", "bob bob", "acme:bob acme:bob"),
        ("GET /api/v2/wait?timeout=0&count=3&match=mailbox:bob", "bob", "bob", ""),
        ("GET /api/v2/wait?timeout=0&count=3&match=mailbox:shop:bob", "bob", "shop:bob", "shop:bob"),
        ("GET /api/v2/mailbox/bob/wait?timeout=0", "bob", "bob", ""),
    ];
    for (request, in_home, everywhere, in_two) in table {
        for (header, expected) in [(&shop, in_home), (&all, everywhere), (&both, in_two)] {
            // Twice, so that the second response is the cached one.
            for _ in 0..2 {
                let response = accounts.server.request(&format!("{request}\n{header}")).await;
                assert_eq!(mailboxes_in(&response.json()), expected, "{request} {}", response.text());
            }
        }
    }
    let projects = accounts.server.request(&format!("GET /api/v2/projects?limit=1\n{all}")).await.json();
    let expected = json!({"projects": [{"name": "acme", "messages": 1, "unseen": 1}], "next": "acme"});
    assert_eq!(projects, expected);
    for header in [&all, &both] {
        let rest = accounts.server.request(&format!("GET /api/v2/projects?after=acme\n{header}")).await.json();
        assert_eq!(rest, json!({"projects": [{"name": "shop", "messages": 1, "unseen": 1}], "next": null}));
    }
    let about = accounts.server.request(&format!("GET /api/v2/server\n{shop}")).await.json();
    assert_eq!(about["project"], "shop");
    let invalid = accounts.server.request(&format!("GET /api/v2/projects?after=A\n{all}")).await;
    assert!(invalid.problem(400).starts_with("The parameter after is invalid: the name of a project has"));
}

/// Returns the mailboxes in a response, in their order.
fn mailboxes_in(value: &serde_json::Value) -> String {
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        ("mailboxes", serde_json::Value::Array(names))
                            if names.iter().all(serde_json::Value::is_string) =>
                        {
                            found.extend(names.iter().filter_map(|name| name.as_str()).map(ToOwned::to_owned));
                        }
                        ("mailbox" | "name", serde_json::Value::String(name)) => found.push(name.clone()),
                        _ => collect(value, found),
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, &mut found);
    found.join(" ")
}

#[tokio::test]
async fn all_paths_are_also_below_a_project() {
    for (base, prefix) in [("", ""), ("/base", "/base"), ("/base", "")] {
        let settings = Settings { base_path: base.to_owned(), cache_bytes: 1 << 20, ..Settings::default() };
        let server = TestServer::with(settings);
        add_messages(&server).await;
        let get = async |path: &str| server.request(&format!("GET {prefix}{path}")).await;
        let list = get("/p/shop/api/v1/mailbox/bob").await;
        assert_eq!((mailboxes_in(&list.json()).as_str(), list.numbers()), ("bob", vec![0]));
        assert_eq!(mailboxes_in(&get("/p/acme/api/v2/messages").await.json()), "bob");
        assert_eq!(get("/p/acme/api/v1/messages").await.json()["messages"].as_array().map(Vec::len), Some(1));
        assert_eq!(get("/p/none/api/v1/messages").await.json()["total"], 0);
        assert_eq!(
            get("/p/shop/api/v1/mailbox/acme:bob").await.problem(403),
            "The credentials are not for this mailbox."
        );
        assert_eq!(get("/p/shop/api/v2/server").await.json()["project"], "shop");
        assert!(get("/p/shop/").await.text().contains("<html"), "a page");
        assert_eq!(get("/p/shop").await.header("location"), "./shop/");
        assert_eq!(get("/p/shop/m//bob").await.header("location"), format!("{prefix}/p/shop/m/bob"));
        assert_eq!(get("/p/shop/p/acme/api/v1/mailbox/bob").await.status, 404);
        assert_eq!(get("/p/Shop/api/v1/mailbox/bob").await.status, 404);
        assert_eq!(get("/p/shop/api/v2/sessions").await.status, 403);
        let view = get(&format!("/p/shop/view/{}", id(0))).await;
        assert_eq!(view.header("location"), format!("{base}/p/shop/messages/{}", id(0)));
        let deleted = server.request(&format!("DELETE {prefix}/p/shop/api/v2/mailboxes")).await;
        assert_eq!(deleted.json(), json!({"deleted": 1}));
        assert_eq!(mailboxes_in(&get("/api/v2/messages").await.json()), "bob acme:bob");
    }
}

#[tokio::test]
async fn links_are_in_the_project() {
    let server = TestServer::new();
    server.add_message(0, "shop:test", MAIL).await;
    let message = server.request(&format!("GET /p/shop/api/v1/mailbox/test/{}", id(0))).await.json();
    let link = message["attachments"][0]["view-link"].as_str().unwrap();
    let path = link.strip_prefix("http://localhost:9000").unwrap();
    assert!(path.starts_with("/p/shop/mailbox/vattach/test/"), "{link}");
    assert_eq!(server.request(&format!("GET {path}")).await.status, 200);
    let message = server.request(&format!("GET /api/v1/mailbox/shop:test/{}", id(0))).await.json();
    let link = message["attachments"][0]["view-link"].as_str().unwrap();
    assert!(link.contains("/mailbox/vattach/shop%3Atest/"), "{link}");
    let compat = server.request(&format!("GET /p/shop/serve/mailbox/test/{}", id(0))).await.json();
    assert!(compat["html"].as_str().unwrap().contains("\"/p/shop/mailbox/vattach/test/"), "{compat}");
}

#[tokio::test]
async fn no_route_reaches_another_project() {
    let accounts = Accounts::with_search();
    add_messages(&accounts.server).await;
    let store = &accounts.server.store;
    let mailboxes = ["acme:bob", "bob"].map(|name| restante_mail::naming::MailboxName::from(name.to_owned()));
    let [acme, plain] = &mailboxes;
    for mailbox in &mailboxes {
        let message = store.list(mailbox, Page::ALL).await.unwrap().messages.remove(0);
        let tags = Some(Tags::new(["sesame"]).unwrap());
        let update = CopyUpdate { tags, ..CopyUpdate::new((&message).into()) };
        store.update_copies(vec![update]).await.unwrap();
    }
    let state = async || {
        let listings = [store.list(acme, Page::ALL).await.unwrap(), store.list(plain, Page::ALL).await.unwrap()];
        let fields = |message: &Summary| (message.id, message.seen, message.tags.clone());
        listings.map(|listing| listing.messages.iter().map(fields).collect::<Vec<_>>())
    };
    let header = accounts.token(&["shop:*"]).await;
    let mut problems = Vec::new();
    for (Row { method, route, expected, body }, number) in rows().zip(3..) {
        let Ok(expected) = expected.parse::<u16>() else { continue };
        add_shared_message(&accounts.server, number).await;
        let before = state().await;
        let request = async |path: &str| {
            let request = format!("{method} {path}\nContent-Type: application/json\n{header}");
            let body = body.replace("{id}", &id(ACME).to_string());
            accounts.server.request_with(&request, body, Peer::default()).await
        };
        let path = fill(route, "bob");
        let response = request(&path).await;
        if response.status != expected {
            problems.push(format!("{method} {route} {} instead of {expected}", response.status.as_u16()));
        }
        // The API of Mailpit repeats the tag of the request.
        let text = String::from_utf8_lossy(&response.body).to_lowercase().replace("tag not found: sesame", "");
        if text.contains("sesame") || text.contains("acme") {
            problems.push(format!("{method} {route} shows another project: {text}"));
        }
        if route.contains("{name}") {
            let status = request(&fill(route, "acme%3Abob")).await.status.as_u16();
            problems.extend((status != 403).then(|| format!("{method} {route} {status} for acme:bob")));
        }
        let denied = request(&format!("/p/acme{path}")).await;
        // Postal reports errors with the status 200.
        let is_denied = denied.status == 403 || denied.text().contains("InvalidServerAPIKey");
        problems.extend((!is_denied).then(|| format!("{method} {route} {} below /p/acme", denied.status)));
        assert_eq!(state().await, before, "{method} {route} changed another project");
    }
    assert_eq!(problems, [""; 0]);
}

#[test]
fn table_has_all_routes() {
    let apis = Apis::new(ServerInfo::default());
    let all = ApiName::ALL.into_iter().flat_map(|name| apis.get(name));
    let routes = all.flat_map(|api| api.routes.iter().map(|(path, _)| path.clone()));
    let routes = routes.chain(restante_http_web::root_routes().into_iter().map(|(path, _)| path));
    let template = |row: Row| row.route.split('?').next().unwrap_or_default().to_owned();
    assert_eq!(rows().map(template).collect::<BTreeSet<_>>(), routes.collect::<BTreeSet<_>>());
}

/// Every method that has no row is refused.
#[tokio::test]
async fn table_has_all_methods() {
    let accounts = Accounts::with_search();
    let header = accounts.token(&[]).await;
    let methods = |path: &str| {
        let rows = rows().filter(|row| row.route.split('?').next() == Some(path));
        rows.map(|row| row.method).collect::<BTreeSet<_>>()
    };
    let paths: BTreeSet<_> = rows().filter_map(|row| row.route.split('?').next()).collect();
    let mut problems = Vec::new();
    for path in paths {
        let known = methods(path);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"].into_iter().filter(|method| !known.contains(method)) {
            let response = accounts.server.request(&format!("{method} {}\n{header}", fill(path, "bob"))).await;
            problems.extend((response.status != 405).then(|| format!("{method} {path} {}", response.status.as_u16())));
        }
    }
    assert_eq!(problems, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_events_of_their_project() {
    for Row { route, .. } in rows().filter(|row| row.expected == "events") {
        let accounts = Accounts::with_search();
        let header = accounts.token(&["shop:*"]).await;
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let settings = Settings { auth: Some(accounts.auth.clone()), ..Settings::default() };
        let server = EventServer::with_store(store, settings);
        let mut subscriber = server.websocket_with(&fill(route, "bob"), &header).await;
        for (mailbox, subject) in [("acme:bob", "Sesame"), ("bob", "Sesame"), ("shop:bob", "Hello")] {
            server.deliver_in(mailbox, subject).await;
        }
        let event = loop {
            let event = subscriber.next().await;
            if event.contains("Hello") {
                break event;
            }
            assert!(event.contains("\"stats\"") && event.contains("\"Total\":1"), "{route}: {event}");
        };
        assert!(!event.contains("shop") && !event.contains("Sesame"), "{route}: {event}");
        assert_eq!(event.contains("\"bob\""), route != "/api/events", "{route}: {event}");
    }
}

/// A row of the table of routes.
struct Row {
    method: &'static str,
    route: &'static str,
    expected: &'static str,
    body: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    let lines = ROUTES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let mut fields = line.splitn(4, ' ');
        let [method, route, expected, body] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        Row { method, route, expected, body }
    })
}

/// Returns the path of a route with these values.
fn fill(route: &str, name: &str) -> String {
    let id = id(ACME).to_string();
    let values = [("{name}", name), ("{id}", &id), ("{index}", "0"), ("{*file}", "x"), ("{tag}", "sesame")];
    let path = values.iter().fold(route.to_owned(), |path, (parameter, value)| path.replace(parameter, value));
    path.replace("{project}", "acme").replace("{part}", "1").replace("{file}", &format!("{id}.txt"))
}
