//! `restante token`: creates, lists and revokes tokens. A running server with the same file notices it within a second.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use restante_auth::tokens::{self, RequestedAccess, Token};
use restante_auth::{Scope, Scopes, patterns_in_projects};
use restante_settings::Config;
use serde_json::{Value, json};

use crate::command_line::TokenTask;
use crate::exit::print_output;

/// The maximum size of a file with the text of a token in bytes, including white space.
const MAX_KEY_FILE_BYTES: u64 = 4096;
/// The number of characters below which the text of a token causes a warning.
const MIN_STRONG_CHARS: usize = 20;

/// Runs the command.
pub fn run(config: &Config, task: &TokenTask) -> ExitCode {
    let output = match config.token_file() {
        Some(path) => run_task(&path, task),
        None => Err("there is no token file: set --auth-tokens FILE or --data DIR".to_owned()),
    };
    print_output(output)
}

/// Returns the result for programs, and a note for people.
fn run_task(path: &Path, task: &TokenTask) -> Result<(String, String), String> {
    match task {
        TokenTask::Create { name, scopes, mailboxes, projects, expires, key_file } => {
            let expiry = |time: Duration| {
                let time = SignedDuration::try_from(time).map_err(|error| error.to_string())?;
                Timestamp::now().checked_add(time).map_err(|error| error.to_string())
            };
            let expires = expires.map(expiry).transpose()?;
            let is_first = !path.exists();
            let mailboxes = patterns_in_projects(projects, mailboxes);
            let access = RequestedAccess { name: name.clone(), scopes: *scopes, mailboxes, expires };
            let (token, output, remark) = match key_file {
                None => {
                    let (token, text) = tokens::create(path, access)?;
                    (token, format!("{text}\n"), "It is not shown again.")
                }
                Some(file) => {
                    let text = read_key(file).map_err(|error| format!("{}: {error}", file.display()))?;
                    let token = tokens::create_with_text(path, access, &text)?;
                    let is_short = text.len() < MIN_STRONG_CHARS;
                    let warning = "Warning: a text of less than 20 characters may be guessed.";
                    (token, String::new(), if is_short { warning } else { "Only a hash of its text is stored." })
                }
            };
            let mut note = format!("Created token {} ({name}) in {}. {remark}\n", token.id, path.display());
            if is_first {
                note.push_str("A server that was started without a token file must be restarted to require tokens.\n");
            }
            Ok((output, note))
        }
        TokenTask::List { json: true } => {
            let tokens: Vec<Value> = tokens::list(path)?.iter().map(token_json).collect();
            let text = serde_json::to_string_pretty(&tokens).map_err(|error| error.to_string())?;
            Ok((format!("{text}\n"), String::new()))
        }
        TokenTask::List { json: false } => Ok((token_table(&tokens::list(path)?), String::new())),
        TokenTask::Revoke { name: id_or_name } => {
            let token = tokens::revoke(path, id_or_name)?;
            Ok((String::new(), format!("Revoked token {} ({}).\n", token.id, token.name)))
        }
    }
}

/// Reads the text of a token from a file, or from standard input if the file is `-`.
fn read_key(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let reader: Box<dyn Read> =
        if file == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(file)?) };
    reader.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

fn token_json(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes.iter().map(Scope::name).collect::<Vec<_>>(),
        "mailboxes": token.mailboxes,
        "created": token.created.to_string(),
        "expires": token.expires.map(|expiry| expiry.to_string()),
        "expired": token.has_expired(Timestamp::now()),
    })
}

fn token_table(tokens: &[Token]) -> String {
    let now = Timestamp::now();
    let row = |token: &Token| {
        let expires = token.expires.map_or_else(|| "never".to_owned(), |expiry| expiry.to_string());
        let expires = if token.has_expired(now) { format!("{expires} (expired)") } else { expires };
        let (scopes, mailboxes) = (scopes_text(token.scopes), mailboxes_text(&token.mailboxes));
        [token.id.clone(), token.name.clone(), scopes, mailboxes, token.created.to_string(), expires]
    };
    format_table(["ID", "NAME", "SCOPES", "MAILBOXES", "CREATED", "EXPIRES"], tokens.iter().map(row))
}

/// Returns the scopes as a cell of a table.
pub(crate) fn scopes_text(scopes: Scopes) -> String {
    scopes.iter().map(Scope::name).collect::<Vec<_>>().join(",")
}

/// Returns patterns of mailboxes as a cell of a table.
pub(crate) fn mailboxes_text(mailboxes: &[String]) -> String {
    if mailboxes.is_empty() { "all".to_owned() } else { mailboxes.join(",") }
}

/// Returns a table with a header and one line for each row; empty if there are no rows.
pub(crate) fn format_table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = [header.map(str::to_owned)].into_iter().chain(rows).collect();
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
