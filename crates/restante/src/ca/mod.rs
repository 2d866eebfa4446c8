//! `restante ca`: creates a local certificate authority (CA) and a server certificate, for clients that insist on HTTPS or whose host
//! cannot be changed. It writes the files and prints the settings of the server and of clients. `certificates` creates the
//! certificates, `instructions` the output.

mod certificates;
mod instructions;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use jiff::Timestamp;
use restante_platform::{private_dir, private_file};

use crate::exit::print_output;
use certificates::{Authority, CertificateName, ServerCertificate, names_of};
use instructions::Instructions;

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const SERVER_CERTIFICATE: &str = "server.crt";
const SERVER_KEY: &str = "server.key";

/// The maximum number of names in a certificate.
const MAX_NAMES: usize = 100;
/// The maximum number of days that a server certificate is valid, so that Apple's clients accept it.
const MAX_DAYS: u16 = 398;
/// The maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Creates a local CA and a server certificate for HTTPS.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "ca",
    long_about = "Creates a local certificate authority (CA) and a server certificate for HTTPS, and prints the settings with which \
        the server uses it and clients trust it. If the folder has a CA, it is kept, and the server certificate is renewed. A new \
        CA can sign only for the names that it is created with, and for names below them."
)]
pub struct CaRequest {
    /// The folder of the files. It is created if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "restante-ca")]
    dir: PathBuf,
    /// How many days the server certificate is valid, at most 398.
    #[arg(long, value_name = "N", default_value_t = MAX_DAYS, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_DAYS)))]
    days: u16,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// DNS names, wildcards such as *.example.test, or IP addresses, in addition to localhost, 127.0.0.1 and ::1. Without any, those of
    /// the certificate in the folder.
    #[arg(id = "name", value_name = "NAME", num_args = 0..=MAX_NAMES)]
    names: Vec<CertificateName>,
}

/// Runs the command.
pub fn run(request: &CaRequest) -> ExitCode {
    let dir = std::path::absolute(&request.dir).map_err(|error| error.to_string());
    print_output(dir.and_then(|dir| create(&dir, request)))
}

/// Writes the files. Returns the result for programs, and a note for people.
fn create(dir: &Path, request: &CaRequest) -> Result<(String, String), String> {
    let existing = read_authority(dir)?;
    let names = match request.names.as_slice() {
        [] => read(dir, SERVER_CERTIFICATE)?.as_deref().map(names_of).unwrap_or_default(),
        given => given.to_vec(),
    };
    let names = certificates::with_local_names(names);
    let now = Timestamp::now();
    let (is_new, authority) = match existing {
        Some(authority) => (false, authority),
        None => (true, Authority::create(&names, now)?),
    };
    let lifetime = Duration::from_hours(24 * u64::from(request.days));
    let ServerCertificate { chain, key, expires } = authority.issue(&names, now, lifetime).map_err(|error| {
        let dir = dir.display();
        format!(
            "{error}: choose another folder with --dir, or delete {dir} to create a CA that clients must trust again"
        )
    })?;
    if let (false, Some(key)) = (is_new, read(dir, SERVER_KEY)?)
        && !authority.has_issued(&read(dir, SERVER_CERTIFICATE)?.unwrap_or_default(), &key)
    {
        return Err(format!(
            "{}: the CA in the folder has not issued a certificate for this key: choose another folder with --dir, or delete the file",
            dir.join(SERVER_KEY).display()
        ));
    }
    if is_new && let Some(file) = [SERVER_KEY, SERVER_CERTIFICATE].into_iter().find(|name| dir.join(name).exists()) {
        return Err(format!(
            "{}: the folder has no CA, so this file may belong to another program: choose another folder with --dir",
            dir.join(file).display()
        ));
    }
    private_dir().recursive(true).create(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    if is_new {
        write(dir, CA_KEY, &authority.key_pem(), private_file())?;
        write(dir, CA_CERTIFICATE, authority.pem(), File::options())?;
    }
    write(dir, SERVER_KEY, &key, private_file())?;
    write(dir, SERVER_CERTIFICATE, &chain, File::options())?;
    let done = if is_new { "Created a CA and a certificate" } else { "Renewed the certificate" };
    let list = names.iter().map(CertificateName::as_str).collect::<Vec<_>>().join(", ");
    let note = format!("{done} in {} for {list}. It expires at {expires}.\n", dir.display());
    let instructions = Instructions { dir, names: &names, expires };
    Ok((if request.json { instructions.json() } else { instructions.text() }, note))
}

/// Returns the CA in a folder, if there is one.
fn read_authority(dir: &Path) -> Result<Option<Authority>, String> {
    let unusable = |problem: &str| format!("the CA in {} cannot be used: {problem}", dir.display());
    match (read(dir, CA_CERTIFICATE)?, read(dir, CA_KEY)?) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(unusable("ca.key is missing")),
        (None, Some(_)) => Err(unusable("ca.crt is missing")),
        (Some(certificate), Some(key)) => {
            Authority::load(certificate, &key).map(Some).map_err(|problem| unusable(&problem))
        }
    }
}

/// Reads a file of the folder, if it exists.
fn read(dir: &Path, name: &str) -> Result<Option<String>, String> {
    let path = dir.join(name);
    let content = File::open(&path).and_then(|file| io::read_to_string(io::Read::take(file, MAX_FILE_BYTES)));
    match content {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Replaces a file of the folder. A server that reads the file gets the old content or the new one.
fn write(dir: &Path, name: &str, content: &str, mut options: OpenOptions) -> Result<(), String> {
    let (path, new) = (dir.join(name), dir.join(format!(".{name}.new")));
    let written = match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // The mode applies only to a file that is created here.
        _ => options.write(true).create_new(true).open(&new),
    };
    written
        .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, &path))
        .map_err(|error| format!("{}: {error}", path.display()))
}
