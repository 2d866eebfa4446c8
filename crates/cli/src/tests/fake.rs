//! A web server with one canned response for each request line, and a function to run commands against it.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use clap::Command;

use crate::interaction::Confirm;
use crate::output::OutputStyle;
use crate::{ClientCommand, CommandError};

/// A request line without its version, and the status and body of the response.
pub(super) type CannedResponse = (&'static str, u16, &'static str);

pub(super) struct FakeServer {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    added_responses: Arc<Mutex<Vec<CannedResponse>>>,
}

impl FakeServer {
    /// Serves these responses until the test ends. Any other request gets an error that contains the request line.
    pub(super) fn new(responses: &'static [CannedResponse]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        let added_responses = Arc::<Mutex<Vec<CannedResponse>>>::default();
        let added = Arc::clone(&added_responses);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let Some((head, line)) = request(&mut reader) else { continue };
                requests.lock().unwrap().push(head);
                let unknown = format!("{{\"detail\":\"{}\"}}", line.replace('"', "'"));
                let all = [responses, &added.lock().unwrap()].concat();
                let response = all.iter().find(|(wanted, ..)| *wanted == line);
                let (status, body) = response.map_or((500, unknown.as_str()), |(_, status, body)| (*status, *body));
                let length = body.len();
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = reader.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat());
            }
        });
        Self { url, requests: seen, added_responses }
    }

    /// Runs a command line without `--server`. Returns its output and its result.
    pub(super) fn run(&self, style: OutputStyle, args: &[&str]) -> (String, Result<(), CommandError>) {
        run(style, &[args, &["--server", &self.url]].concat())
    }

    /// Like `run` on a terminal, with a user who answers all questions.
    pub(super) fn run_with_answer(&self, args: &[&str], answer: Confirm) -> (String, Result<(), CommandError>) {
        execute(OutputStyle::terminal(80, false), &[args, &["--server", &self.url]].concat(), answer)
    }

    /// Adds a response while the server is running.
    pub(super) fn add_response(&self, response: CannedResponse) {
        self.added_responses.lock().unwrap().push(response);
    }

    /// Returns all requests so far, with headers and bodies.
    pub(super) fn requests(&self) -> String {
        self.requests.lock().unwrap().join("\n")
    }
}

/// Runs a command line without a terminal for questions. Returns its output and its result.
pub(super) fn run(style: OutputStyle, args: &[&str]) -> (String, Result<(), CommandError>) {
    execute(style, args, |_| None)
}

fn execute(style: OutputStyle, args: &[&str], confirm: Confirm) -> (String, Result<(), CommandError>) {
    let command = Command::new("restante").subcommands(crate::commands());
    let matches = command.try_get_matches_from(["restante"].iter().chain(args)).unwrap();
    let (name, matches) = matches.subcommand().unwrap();
    let mut out = Vec::new();
    let result = ClientCommand::parse(name, matches).unwrap().execute(&mut out, style, confirm);
    (String::from_utf8(out).unwrap(), result)
}

/// Reads a request. Returns its head and body, and its first line without the version.
fn request(reader: &mut impl BufRead) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = head.lines().next()?.rsplit_once(' ')?.0.to_owned();
    Some((head + &String::from_utf8(body).ok()?, line))
}
