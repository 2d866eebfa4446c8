//! Tests of the module with a fake HTTP client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mlua::{Lua, Value};
use parking_lot::Mutex;
use restante_http_client::{HttpError, HttpService, Request, Response};

use super::*;
use crate::event::ScriptEvent;

/// A client that records requests and responds with their contents.
#[derive(Default)]
struct EchoClient {
    requests: Mutex<Vec<Request>>,
    active: AtomicUsize,
    max_active: AtomicUsize,
}

impl HttpService for EchoClient {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        self.max_active.fetch_max(self.active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        self.requests.lock().push(request.clone());
        if request.url.contains("slow") {
            thread::sleep(Duration::from_millis(20));
        }
        self.active.fetch_sub(1, Ordering::SeqCst);
        if request.url.contains("broken") {
            return Err(HttpError::Network("no route".to_owned()));
        }
        let headers = [
            ("content-type", "text/plain"),
            ("x-many", "first"),
            ("x-many", "second"),
            ("set-cookie", "a=1; Path=/"),
            ("set-cookie", "b=\"two\""),
            ("set-cookie", "nonsense"),
        ];
        let mut body = format!("{} {}\n", request.method, request.url);
        for (name, value) in &request.headers {
            body.extend([name, ": ", value, "\n"]);
        }
        body.push_str(&String::from_utf8_lossy(request.body.as_deref().unwrap_or_default()));
        Ok(Response {
            status: 201,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: body.into_bytes(),
            url: request.url.clone(),
        })
    }
}

fn state(time_left: Duration) -> (Lua, Arc<EchoClient>) {
    let lua = Lua::new();
    let client = Arc::new(EchoClient::default());
    let service: Arc<dyn HttpService> = Arc::clone(&client) as Arc<dyn HttpService>;
    lua.globals().set("http", module(&lua, &service).unwrap()).unwrap();
    lua.set_app_data(CallContext { event: Some(ScriptEvent::AfterStored), deadline: Instant::now() + time_left });
    (lua, client)
}

fn eval(code: &str) -> String {
    let (lua, _) = state(Duration::from_hours(1));
    let value: Value = lua.load(code).eval().unwrap();
    value.to_string().unwrap()
}

#[test]
fn builds_requests_from_arguments() {
    let table = [
        ("get('http://x/')", "GET http://x/\n"),
        ("post('http://x/', {body = 'a\\0b'})", "POST http://x/\na\0b"),
        ("put('http://x/', {body = ''})", "PUT http://x/\n"),
        ("patch('http://x/')", "PATCH http://x/\n"),
        ("delete('http://x/')", "DELETE http://x/\n"),
        ("head('http://x/')", "HEAD http://x/\n"),
        ("request('options', 'http://x/')", "OPTIONS http://x/\n"),
        ("get('http://x/?a=1', {query = 'b=2'})", "GET http://x/?b=2\n"),
        ("get('http://x/', {query = {b = 'ö &', a = 1, c = {1, 2}}})", "GET http://x/?a=1&b=%C3%B6+%26&c=1&c=2\n"),
        (
            "post('http://x/', {form = 'raw=1'})",
            "POST http://x/\nContent-Type: application/x-www-form-urlencoded\nraw=1",
        ),
        (
            "post('http://x/', {form = {b = '=', a = true}})",
            "POST http://x/\nContent-Type: application/x-www-form-urlencoded\na=true&b=%3D",
        ),
        ("post('http://x/', {form = 'f', body = 'b'})", "POST http://x/\nb"),
        ("get('http://x/', {headers = {B = 2, A = 'x'}})", "GET http://x/\nA: x\nB: 2\n"),
        (
            "post('http://x/', {form = 'f', headers = {['content-type'] = 'mine'}})",
            "POST http://x/\ncontent-type: mine\nf",
        ),
        ("get('http://x/', {cookies = {b = 'x;y\\r\\nz', a = 1}})", "GET http://x/\nCookie: a=1; b=xyz\n"),
        ("get('http://x/', {auth = {user = 'u', pass = 'p'}})", "GET http://x/\nAuthorization: Basic dTpw\n"),
        ("get('http://x/', {no_such_option = 1, query = 7, headers = 'x', body = {}})", "GET http://x/\n"),
        ("get('http://x/', 'no options')", "GET http://x/\n"),
    ];
    for (code, expected) in table {
        assert_eq!(eval(&format!("return http.{code}.body")), expected, "{code}");
    }
}

#[test]
fn responses_have_their_fields() {
    let table = [
        ("type(r)", "userdata"),
        ("r.status_code", "201"),
        ("r.headers['Content-Type']", "text/plain"),
        ("r.headers['X-Many']", "first"),
        ("r.headers['content-type']", "nil"),
        ("r.cookies.a", "1"),
        ("r.cookies.b", "two"),
        ("r.cookies.nonsense", "nil"),
        ("r.body_size == #r.body", "true"),
        ("r.url", "http://x/"),
        ("r.no_such_field", "nil"),
        ("r[1]", "nil"),
        ("pcall(function() r.body = 1 end)", "false"),
        ("select('#', http.get('http://x/'))", "1"),
    ];
    for (code, expected) in table {
        assert_eq!(eval(&format!("local r = http.get('http://x/') return {code}")), expected, "{code}");
    }
}

#[test]
fn errors_are_nil_and_a_text() {
    let table = [
        ("http.get('http://broken/')", "no route"),
        ("http.get('http://x/', {auth = {user = 'u'}})", "auth needs the fields user and pass"),
        ("http.get('http://x/', {timeout = 'soon'})", "\"soon\" is no timeout"),
        ("http.get('http://x/', {timeout = -1})", "\"-1\" is no timeout"),
    ];
    for (code, expected) in table {
        assert_eq!(eval(&format!("local r, why = {code} assert(r == nil) return why")), expected, "{code}");
    }
}

#[test]
fn request_timeout_is_limited_by_the_deadline() {
    let table = [
        ("http.get('http://x/')", 1800..=3600),
        ("http.get('http://x/', {timeout = 7200})", 1800..=3600),
        ("http.get('http://x/', {timeout = 5})", 5..=5),
        ("http.get('http://x/', {timeout = '7s'})", 7..=7),
        ("http.get('http://x/', {timeout = '0.5m'})", 30..=30),
        ("http.get('http://x/', {timeout = '2w'})", 1800..=3600),
        ("http.get('http://x/', {timeout = '999999999999999999999999w'})", 1800..=3600),
        ("http.get('http://x/', {timeout = 1e300})", 1800..=3600),
        ("http.request_batch{{'GET', 'http://x/', {timeout = '9s'}}}", 9..=9),
    ];
    for (code, expected) in table {
        let (lua, client) = state(Duration::from_hours(1));
        lua.load(code).exec().unwrap();
        let timeout = client.requests.lock()[0].timeout.as_secs();
        assert!(expected.contains(&timeout), "{code}: {timeout}");
    }
    let (lua, client) = state(Duration::ZERO);
    lua.load("http.get('http://x/')").exec().unwrap();
    assert!(client.requests.lock()[0].timeout.is_zero());
}

#[test]
fn batch_is_concurrent_and_keeps_the_order() {
    let table = [
        ("#http.request_batch{}", "0"),
        ("select(2, http.request_batch{{'get', 'http://x/'}})", "nil"),
        ("http.request_batch{{'get', 'http://x/'}, {'post', 'http://y/', {body = 'b'}}}[2].body", "POST http://y/\nb"),
        ("http.request_batch{{'get', 'http://broken/'}, {'get', 'http://y/'}}[2].url", "http://y/"),
        ("select(2, http.request_batch{{'get', 'http://broken/'}, {'get', 'http://y/'}})[1]", "no route"),
        ("select(2, http.request_batch{{'get', 'http://broken/'}, {'get', 'http://y/'}})[2]", "nil"),
        ("select(2, http.request_batch{7})[1]", "a request is a table {method, url, options}"),
    ];
    for (code, expected) in table {
        assert_eq!(eval(&format!("return ({code})")), expected, "{code}");
    }

    let (lua, client) = state(Duration::from_hours(1));
    let code = "local list = {} for i = 1, 40 do list[i] = {'GET', 'http://slow/' .. i} end
        local responses, errors = http.request_batch(list)
        for i = 1, 40 do assert(responses[i].url == 'http://slow/' .. i) end
        return errors";
    assert!(lua.load(code).eval::<Value>().unwrap().is_nil());
    assert!((1..=8).contains(&client.max_active.load(Ordering::SeqCst)));
}

#[test]
fn rejects_requests_over_the_size_limit() {
    let (lua, client) = state(Duration::from_hours(1));
    let long = "local long = string.rep('x', 33 * 1024 * 1024)";
    let code = format!("{long} local r, why = http.post('http://x/', {{body = long .. long}}) return why");
    assert_eq!(lua.load(code).eval::<String>().unwrap(), "the request is too long");
    let raising = [
        format!(
            "{long} http.request_batch{{{{'POST', 'http://x/', {{body = long}}}}, {{'POST', 'http://x/', {{body = long}}}}}}"
        ),
        "local list = {} for i = 1, 101 do list[i] = {'GET', 'http://x/'} end http.request_batch(list)".to_owned(),
    ];
    for code in raising {
        assert!(lua.load(code).exec().is_err());
    }
    assert!(client.requests.lock().is_empty());
}

#[test]
fn repeated_text_counts_against_the_budget() {
    let table = [
        "form = {a = list}",
        "query = {a = list}",
        "headers = list",
        "cookies = list",
        "query = {a = half}, form = {a = half}",
        "form = {a = escaped}",
        "auth = {user = long:rep(40), pass = long:rep(40)}",
    ];
    for options in table {
        let (lua, client) = state(Duration::from_hours(1));
        let code = format!(
            "local long, list, half, escaped = ('x'):rep(2^20), {{}}, {{}}, {{}}
             for i = 1, 3000 do list[i] = long end
             for i = 1, 40 do half[i] = long end
             for i = 1, 30 do escaped[i] = ('/'):rep(2^20) end
             return select(2, http.post('http://x/', {{{options}}}))"
        );
        assert_eq!(lua.load(code).eval::<String>().unwrap(), "the request is too long", "{options}");
        assert!(client.requests.lock().is_empty());
    }
    let code = "local headers = {} for i = 1, 1001 do headers['x' .. i] = '' end
        return select(2, http.get('http://x/', {headers = headers}))";
    assert_eq!(eval(code), "a request has at most 1000 header fields and cookies");
}

#[test]
fn responses_of_a_batch_are_limited_in_total() {
    let code = "local list = {} for i = 1, 5 do list[i] = {'POST', 'http://x/', {body = ('x'):rep(12 * 2^20)}} end
        local responses, errors = http.request_batch(list)
        local got, why = 0
        for i = 1, 5 do if responses[i] then got = got + 1 else why = errors[i] end end
        return got .. why";
    assert_eq!(eval(code), "2the responses of the batch are too long");
}

#[test]
fn batch_fails_if_responses_exceed_the_memory() {
    let (lua, _) = state(Duration::from_hours(1));
    lua.load("big = {} for i = 1, 100 do big[i] = {'POST', 'http://x/' .. i, {body = string.rep('x', 100000)}} end")
        .exec()
        .unwrap();
    lua.set_memory_limit(lua.used_memory() + 1_000_000).unwrap();
    let error = lua.load("http.request_batch(big)").exec().unwrap_err();
    assert!(error.to_string().contains("not enough memory"), "{error}");
}
