//! The modules of scripts: logger, JSON, HTTP, the store and their own files; and `print`.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

use super::folder::{Folder, send, subjects};

use crate::support::{LineConnection, TEST_TIMEOUT};

#[test]
fn logger_and_print_write_to_the_log() {
    let folder = Folder::new(
        "logger",
        r#"
local logger = require("logger")

function inbucket.before.mail_from_accepted(session)
  print("printed", 1, nil, session.from)
  logger.debug("a detail")
  logger.info("a note", { from = session.from.address, words = "two words" })
  logger.warn("a warning", {})
  logger.error("a forged\nline")
end
"#,
    );
    for (level, sees_debug) in [("info", false), ("debug", true)] {
        let mut server = folder.start(&["--loglevel", level]);
        server.connect_smtp().start_message("bob@x.org");
        server.wait_for_log("INFO  printed\\t1\\tnil\\t<ann@x.org> script=rules.lua");
        server.wait_for_log("INFO  a note script=rules.lua from=ann@x.org words=\"two words\"");
        server.wait_for_log("WARN  a warning script=rules.lua");
        server.wait_for_log("ERROR a forged\\nline script=rules.lua");
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(server.full_log().contains("DEBUG a detail script=rules.lua"), sees_debug);
    }
}

#[test]
fn json_encodes_and_decodes() {
    let folder = Folder::new(
        "json",
        r#"
local json, note = require("json"), require("note")

function inbucket.before.mail_from_accepted(session)
  note(json.encode({ from = session.from.address, list = { 1, true, "ä" }, empty = {} }))
  local value = json.decode('{"a": [1, {"b": "c"}], "n": null}')
  note(value.a[1], value.a[2].b, value.n)
  local nothing, why = json.decode("{nonsense")
  note(nothing, type(why))
  nothing, why = json.encode({ f = print })
  note(nothing, type(why))
end
"#,
    );
    let server = folder.start(&[]);
    server.connect_smtp().start_message("bob@x.org");
    let expected = [r#"{"empty":[],"from":"ann@x.org","list":[1,true,"ä"]}"#, "1 c nil", "nil string", "nil string"];
    assert_eq!(folder.notes(4), expected);
}

/// Starts a web server that records each request as text and always sends the same response.
fn start_web_server() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            let mut connection = LineConnection::new(stream);
            let mut request = String::new();
            let mut length = 0;
            while let Some(line) = connection.line().filter(|line| !line.is_empty()) {
                let lower = line.to_ascii_lowercase();
                length = lower.strip_prefix("content-length: ").map_or(length, |value| value.parse().unwrap());
                request.push_str(&line);
                request.push('\n');
            }
            request.push_str(&connection.exactly(length));
            let body = if request.starts_with("HEAD") { "" } else { "tea" };
            let response = "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 3\r\nX-Kind: pot\r\n\
                Set-Cookie: id=7; Path=/\r\nConnection: close\r\n\r\n";
            connection.stream.write_all(format!("{response}{body}").as_bytes()).unwrap();
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

#[test]
fn http_module_sends_requests() {
    let script = r#"
local http, note = require("http"), require("note")
local url = "http://ADDRESS"

local requests = {
  function() return http.get(url .. "/a", { query = "x=1", headers = { ["X-Test"] = "yes" } }) end,
  function() return http.post(url .. "/b", { form = "k=v&l=w" }) end,
  function() return http.put(url .. "/c", { body = "raw", timeout = 5 }) end,
  function() return http.patch(url .. "/d", { body = "p", timeout = "5s" }) end,
  function() return http.delete(url .. "/e", { auth = { user = "ann", pass = "secret" } }) end,
  function() return http.head(url .. "/f", { cookies = { a = "1" } }) end,
  function() return http.request("options", url .. "/g") end,
}

function inbucket.after.message_stored()
  for _, request in ipairs(requests) do
    local r = assert(request())
    note(r.status_code, r.headers["X-Kind"], r.cookies.id, r.body, r.body_size, r.url:match("/%w%f[^%w].*$"))
  end
  local nothing, why = http.get("http://DEAD/")
  note(nothing, type(why))
end
"#;
    let expected = [
        ("GET /a?x=1 HTTP/1.1\n", "x-test: yes\n", "", "418 pot 7 tea 3 /a?x=1"),
        ("POST /b HTTP/1.1\n", "content-type: application/x-www-form-urlencoded\n", "k=v&l=w", "418 pot 7 tea 3 /b"),
        ("PUT /c HTTP/1.1\n", "", "raw", "418 pot 7 tea 3 /c"),
        ("PATCH /d HTTP/1.1\n", "", "p", "418 pot 7 tea 3 /d"),
        ("DELETE /e HTTP/1.1\n", "authorization: basic yw5uonnly3jlda==\n", "", "418 pot 7 tea 3 /e"),
        ("HEAD /f HTTP/1.1\n", "cookie: a=1\n", "", "418 pot 7  0 /f"),
        ("OPTIONS /g HTTP/1.1\n", "", "", "418 pot 7 tea 3 /g"),
    ];
    let (address, requests) = start_web_server();
    // Only root can listen on this port, so nothing does.
    let script = script.replace("ADDRESS", &address.to_string()).replace("DEAD", "127.0.0.1:1");
    let folder = Folder::new("http", &script);
    let server = folder.start(&["--lua-timeout", "20s"]);
    send(&server, "bob@x.org", "hi");

    let notes = folder.notes(expected.len() + 1);
    for ((first, header, body, result), note) in expected.into_iter().zip(&notes) {
        let request = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(request.starts_with(first), "{first}: {request}");
        assert!(request.to_ascii_lowercase().contains(header), "{header}: {request}");
        assert!(request.ends_with(&format!("\n{body}")), "{body}: {request}");
        assert_eq!(note, result, "{first}");
    }
    assert_eq!(notes[expected.len()], "nil string");
}

#[test]
fn require_loads_files_of_the_script() {
    let folder = Folder::new(
        "require",
        r#"
local words = require("lib.words")
assert(words == require("lib.words"))

function inbucket.before.message_stored(msg)
  msg.subject = words.tag(msg.subject) .. require("late").mark
  return msg
end
"#,
    );
    folder
        .write("lib/words.lua", "local words = {}\nfunction words.tag(text) return '[x] ' .. text end\nreturn words\n");
    folder.write("late.lua", "return { mark = '!' }");
    let server = folder.start(&[]);
    send(&server, "bob@x.org", "hi");
    assert_eq!(subjects(&server, "bob"), ["[x] hi!"]);
}

#[test]
fn store_is_available_in_after_events() {
    let folder = Folder::new(
        "store",
        r#"
local note = require("note")

function restante.before.message_stored(msg)
  note(pcall(restante.store.list, "bob"))
end

function restante.after.message_stored(meta)
  local all = restante.store.list(meta.mailbox)
  note(#all, all[#all].subject, restante.store.get("Bob@x.org", meta.id).subject, restante.store.get("bob", "nothing"))
  if #all == 2 then note(restante.store.delete("bob", all[1].id), restante.store.delete("bob", all[1].id)) end
end

function restante.after.message_deleted(meta)
  note("deleted", meta.subject)
end
"#,
    );
    let server = folder.start(&["--lua-states", "1"]);
    send(&server, "bob@x.org", "one");
    folder.notes(2);
    send(&server, "bob@x.org", "two");
    let notes = folder.notes(6);
    assert!(notes[0].starts_with("false "), "{notes:?}");
    assert_eq!(notes[1], "1 one one nil");
    assert_eq!(notes[3..], ["2 two two nil", "true false", "deleted one"]);
    assert_eq!(subjects(&server, "bob"), ["two"]);
}

#[test]
fn http_timeout_of_the_script_is_enforced() {
    // The system accepts connections, but the test never reads them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = r#"
local http, note = require("http"), require("note")

function inbucket.before.mail_from_accepted()
  local response, why = http.get("http://ADDRESS/", { timeout = "50ms" })
  note(response, type(why))
end

function inbucket.before.rcpt_to_accepted()
  http.get("http://ADDRESS/", { timeout = "1h" })
end
"#;
    let folder = Folder::new("silent", &script.replace("ADDRESS", &silent.local_addr().unwrap().to_string()));
    let server = folder.start(&["--lua-timeout", "3s"]);
    server.connect_smtp().start_message("bob@x.org");
    assert_eq!(folder.notes(1), ["nil string"]);
}
