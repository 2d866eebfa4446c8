//! Conversations with the APIs of mail providers. Each file in `conversations/` is for one of them.
//!
//! A conversation starts with `==== ` and a title, and has a request. `---- ` and a status starts the expected response,
//! `---- mailbox NAME` what the newest message of a mailbox contains, `---- empty NAME` requires that a mailbox is empty, and
//! `---- request` starts another request. `$name` matches an id, and is replaced by this id afterwards; `*` matches any text.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use restante_mail::mime::Mime;
use restante_mailroom::tagging::Tagging;

use crate::support::*;

const MAX_MESSAGE_BYTES: usize = 1_000_000;

pub(crate) fn server() -> TestServer {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let tagging = Tagging { header: true, ..Tagging::default() };
    let mailroom_settings =
        restante_mailroom::Settings { domain: "localhost".to_owned(), tagging, ..Default::default() };
    let mailroom = Mailroom::new(mailroom_settings, store.clone(), Extensions::default());
    let settings = Settings { max_message_bytes: MAX_MESSAGE_BYTES, ..Settings::default() };
    TestServer { store, router: router(Arc::new(mailroom), settings) }
}

#[tokio::test]
async fn conversations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers/conversations");
    let only = std::env::var("ONLY").ok();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut count, mut problems) = (0, String::new());
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for conversation in text.split("==== ").skip(1) {
            let (title, steps) = conversation.split_once('\n').unwrap();
            count += 1;
            if let Err(problem) = Conversation::new().run(steps).await {
                let _ = writeln!(problems, "\n{name}: {title}: {problem}");
            }
        }
    }
    assert!(count > 0, "no conversations");
    assert!(problems.is_empty(), "{problems}");
}

/// A conversation with a server.
struct Conversation {
    server: TestServer,
    /// The texts that patterns with names have matched.
    values: HashMap<String, String>,
    response: Option<TestResponse>,
}

impl Conversation {
    fn new() -> Self {
        Self { server: server(), values: HashMap::new(), response: None }
    }

    async fn run(&mut self, steps: &str) -> Result<(), String> {
        let steps = format!("request\n{}", steps.trim_end());
        for step in steps.split("\n---- ") {
            let (head, rest) = step.split_once('\n').unwrap_or((step, ""));
            let (kind, argument) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
            match kind {
                "request" => self.request(rest).await,
                "mailbox" => self.check_mailbox(argument, rest).await?,
                "empty" => {
                    let list = self.server.request(&format!("GET /api/v1/mailbox/{argument}")).await;
                    if !list.numbers_are_empty() {
                        return Err(format!("mailbox {argument} is not empty"));
                    }
                }
                status => self.check_response(status, rest)?,
            }
        }
        Ok(())
    }

    async fn request(&mut self, text: &str) {
        let text = self.fill(text);
        let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
        // A body ends before the line end in front of the next step.
        let body = body.strip_suffix('\n').unwrap_or(body).replace("\\r\\n\n", "\r\n");
        let peer = Peer::from(Some([192, 0, 2, 7].into()));
        self.response = Some(self.server.request_with(head.trim(), body, peer).await);
    }

    fn check_response(&mut self, status: &str, expected: &str) -> Result<(), String> {
        let response = self.response.take().ok_or("a response is expected twice")?;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        if response.status.as_str() != status {
            return Err(format!("{} instead of {status}: {text}", response.status));
        }
        let (headers, body) = match expected.split_once("\n\n") {
            Some((headers, body)) => (headers, Some(body)),
            None => match expected.strip_prefix('\n') {
                Some(body) => ("", Some(body)),
                None => (expected, None),
            },
        };
        for line in headers.lines().filter(|line| !line.is_empty()) {
            let (name, pattern) = line.split_once(": ").ok_or_else(|| format!("not a header: {line}"))?;
            let value = response.header(&name.to_lowercase()).to_owned();
            self.check(pattern, &value).map_err(|problem| format!("{name}: {problem}"))?;
        }
        match body.map(str::trim_end).filter(|body| !body.is_empty()) {
            Some(pattern) => self.check(pattern, text.trim_end()),
            None => Ok(()),
        }
    }

    async fn check_mailbox(&mut self, mailbox: &str, expected: &str) -> Result<(), String> {
        let list = self.server.request(&format!("GET /api/v1/mailbox/{mailbox}")).await.json();
        let count = list.as_array().map_or(0, Vec::len);
        let source = self.server.request(&format!("GET /api/v1/mailbox/{mailbox}/latest/source")).await;
        if source.status != 200 {
            return Err(format!("mailbox {mailbox} is empty"));
        }
        let all = self.server.request("GET /api/v2/messages").await.json();
        let is_here = |entry: &&serde_json::Value| entry["mailboxes"].as_array().unwrap().contains(&mailbox.into());
        let ids = all["messages"].as_array().unwrap().iter().filter(is_here).map(|entry| entry["id"].as_str().unwrap());
        let newest = ids.max().ok_or("the message is not in the list")?;
        let entry = self.server.request(&format!("GET /api/v2/messages/{newest}")).await.json();
        let mime = Mime::parse(source.body.clone());
        let header: Vec<String> =
            mime.header().iter().map(|field| format!("{}: {}", field.raw_name(), field.decoded_value())).collect();
        let describe = |file: restante_mail::mime::Attachment<'_>| {
            format!("{} {} {}", file.filename, file.content_type, mime.content(file.part).len())
        };
        let attachments: Vec<String> = mime.attachments().into_iter().map(describe).collect();
        for line in expected.lines().filter(|line| !line.is_empty()) {
            let (name, pattern) = line.split_once(": ").ok_or_else(|| format!("not a check: {line}"))?;
            let texts = match name {
                "text" => vec![mime.text_body().unwrap_or_default().replace("\r\n", "\\n").replace('\n', "\\n")],
                "html" => vec![mime.html().replace("\r\n", "\\n").replace('\n', "\\n")],
                "attachment" => attachments.clone(),
                "count" => vec![count.to_string()],
                "login" => vec![entry["client"]["login"].as_str().unwrap_or_default().to_owned()],
                "tags" => {
                    let tags = entry["tags"].as_array().into_iter().flatten().filter_map(|tag| tag.as_str());
                    vec![tags.collect::<Vec<_>>().join(" ")]
                }
                _ => header.clone(),
            };
            let pattern = if header == texts { line } else { pattern };
            if !texts.iter().any(|text| self.check(pattern, text).is_ok()) {
                return Err(format!("mailbox {mailbox}: no {line:?} in {texts:#?}"));
            }
        }
        Ok(())
    }

    /// Replaces names by the texts that they have matched.
    fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.values {
            filled = filled.replace(&format!("${name}"), value);
        }
        filled
    }

    /// Compares a text with a pattern, and keeps what names in it match.
    fn check(&mut self, pattern: &str, text: &str) -> Result<(), String> {
        let pattern = self.fill(pattern);
        let name = regex::Regex::new(r"\\\$([a-z_]+)").unwrap();
        let escaped = regex::escape(&pattern).replace(r"\*", "(?s:.*)");
        // A name that occurs twice is compared when its value is known.
        let mut names = HashSet::new();
        let regex = name.replace_all(&escaped, |found: &regex::Captures<'_>| {
            let group = if names.insert(found[1].to_owned()) { format!("?<{}>", &found[1]) } else { "?:".to_owned() };
            format!("({group}[-A-Za-z0-9_.@<>=]+)")
        });
        let regex = regex::Regex::new(&format!("^{regex}$")).map_err(|error| error.to_string())?;
        let captures = regex.captures(text).ok_or_else(|| format!("expected\n{pattern}\ngot\n{text}"))?;
        for name in regex.capture_names().flatten() {
            self.values.insert(name.to_owned(), captures[name].to_owned());
        }
        if name.find_iter(&escaped).count() > names.len() { self.check(&pattern, text) } else { Ok(()) }
    }
}

impl TestResponse {
    /// Returns whether this is an empty listing.
    fn numbers_are_empty(&self) -> bool {
        self.json().as_array().is_some_and(Vec::is_empty)
    }
}
