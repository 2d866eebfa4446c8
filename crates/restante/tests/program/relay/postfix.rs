//! A Postfix with its own configuration, queue and port. It accepts mail for all domains and stores it in one maildir. Nothing of the
//! Postfix of this machine is used or changed.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use restante_testdir::TestDir;
use restante_testpg::ReservedPort;

use super::process::{Process, find_program, is_root};
use crate::support::durability::eventually;

/// The owner of the mail, `nobody` on most systems. Postfix needs a number, and the user need not exist.
const MAIL_OWNER: u32 = 65534;

/// A running or stopped Postfix.
pub(crate) struct Postfix {
    /// Dropped first.
    master: Option<Process>,
    master_program: PathBuf,
    directory: TestDir,
    smtp: ReservedPort,
    smtps: ReservedPort,
    rules: Arc<Mutex<HashMap<String, String>>>,
}

/// The paths of a certificate and its key, as PEM files.
pub(crate) struct Certificate<'a> {
    pub(crate) chain: &'a Path,
    pub(crate) key: &'a Path,
}

impl Postfix {
    /// Starts a Postfix without TLS. Returns `None` if it is not installed, or if the user is not root.
    pub(crate) fn start() -> Option<Self> {
        Self::launch(None)
    }

    /// Starts a Postfix that requires STARTTLS on one port, and TLS from the first byte on another one.
    pub(crate) fn start_with_tls(certificate: &Certificate<'_>) -> Option<Self> {
        Self::launch(Some(certificate))
    }

    fn launch(certificate: Option<&Certificate<'_>>) -> Option<Self> {
        let program = find_program("postfix")?;
        if !is_root() {
            return None;
        }
        let directory = TestDir::kept_on_failure("postfix");
        let path = |name: &str| directory.path().join(name);
        for name in ["config", "queue", "data", "mail"] {
            fs::create_dir(path(name)).unwrap();
        }
        chown(path("mail"), Some(MAIL_OWNER), Some(MAIL_OWNER)).unwrap();
        let rules = Arc::default();
        let (smtp, smtps) = (ReservedPort::new(), ReservedPort::new());
        let main = main_settings(directory.path(), serve_rules(&rules), certificate);
        fs::write(path("config").join("main.cf"), main).unwrap();
        fs::write(path("config").join("master.cf"), services(&smtp, &smtps, certificate.is_some())).unwrap();
        let config = path("config");
        // Its owner may write there. Postfix checks it.
        let owner = run(Command::new("id").arg("-u").arg(setting(&program, &config, "mail_owner")));
        chown(path("data"), Some(owner.parse().unwrap()), None).unwrap();
        // Creates the directories of the queue.
        run(Command::new(&program).arg("-c").arg(&config).arg("check"));
        let master_program = Path::new(&setting(&program, &config, "daemon_directory")).join("master");
        let mut postfix = Self { master: None, master_program, directory, smtp, smtps, rules };
        postfix.start_again();
        Some(postfix)
    }

    /// Starts Postfix after [`Self::stop`].
    pub(crate) fn start_again(&mut self) {
        let config = self.path("config");
        let mut master = Process::start(&self.master_program, &["-c", config.to_str().unwrap()]);
        let address = self.smtp.address();
        eventually("Postfix does not listen", || {
            assert!(master.is_running(), "Postfix has ended: {}", self.log());
            TcpStream::connect(address).is_ok()
        });
        self.master = Some(master);
    }

    /// Stops all processes of Postfix. Then connections are refused.
    pub(crate) fn stop(&mut self) {
        self.master = None;
        let address = self.smtp.address();
        // The processes end shortly after the first one.
        eventually("Postfix does not stop", || TcpStream::connect(address).is_err());
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u16 {
        self.smtp.get()
    }

    /// Returns the port of TLS from the first byte.
    pub(crate) fn tls_port(&self) -> u16 {
        self.smtps.get()
    }

    /// Returns an entry of `relay.targets` for a Postfix without TLS: its name is `postfix`, and all recipients are allowed.
    pub(crate) fn target(&self) -> String {
        format!("postfix smtp://127.0.0.1:{} starttls=never allow=*", self.port())
    }

    /// Sets the reply to RCPT with this address, such as `450 4.2.0 later`. It is valid at once.
    pub(crate) fn reply_to(&self, recipient: &str, reply: &str) {
        self.rules.lock().unwrap().insert(recipient.to_owned(), reply.to_owned());
    }

    /// Removes all replies. All recipients are accepted then.
    pub(crate) fn accept_all(&self) {
        self.rules.lock().unwrap().clear();
    }

    /// Returns the stored messages, sorted by recipient. There is one for each recipient.
    pub(crate) fn mails(&self) -> Vec<Mail> {
        let files = fs::read_dir(self.path("mail").join("all/new")).into_iter().flatten();
        let mut mails: Vec<Mail> = files.map(|file| Mail::parse(&fs::read(file.unwrap().path()).unwrap())).collect();
        mails.sort_by(|one, other| one.recipient.cmp(&other.recipient));
        mails
    }

    /// Waits for this number of messages, and returns all of them.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Mail> {
        eventually("a message does not arrive", || self.mails().len() >= count);
        self.mails()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

/// A message that Postfix has stored.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) recipient: String,
    pub(crate) sender: String,
    /// With the header fields that Postfix has added, and with line ends of LF.
    pub(crate) text: String,
}

impl Mail {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut mail = Self { recipient: String::new(), sender: String::new(), text };
        let without_brackets = |value: &str| value.trim_matches(['<', '>']).to_owned();
        mail.sender = without_brackets(mail.field("Return-Path").expect("Return-Path is added"));
        mail.recipient = without_brackets(mail.field("Delivered-To").expect("Delivered-To is added"));
        mail
    }

    /// Returns the first line of a header field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let header = self.text.split("\n\n").next().unwrap_or_default();
        let mut fields = header.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn subject(&self) -> &str {
        self.field("Subject").unwrap_or_default()
    }

    /// Returns the content after the header.
    pub(crate) fn body(&self) -> &str {
        self.text.split_once("\n\n").map_or("", |(_, body)| body)
    }
}

fn main_settings(directory: &Path, rules: SocketAddr, certificate: Option<&Certificate<'_>>) -> String {
    let path = |name: &str| directory.join(name).display().to_string();
    let mut settings = vec![
        "compatibility_level = 3.6".to_owned(),
        format!("queue_directory = {}", path("queue")),
        format!("data_directory = {}", path("data")),
        format!("maillog_file = {}", path("log")),
        format!("maillog_file_prefixes = {}", directory.display()),
        "inet_interfaces = 127.0.0.1".to_owned(),
        "inet_protocols = ipv4".to_owned(),
        "myhostname = postfix.test".to_owned(),
        "mydestination =".to_owned(),
        "alias_maps =".to_owned(),
        "virtual_mailbox_domains = static:all".to_owned(),
        "virtual_mailbox_maps = static:all/".to_owned(),
        format!("virtual_mailbox_base = {}", path("mail")),
        format!("virtual_uid_maps = static:{MAIL_OWNER}"),
        format!("virtual_gid_maps = static:{MAIL_OWNER}"),
        "virtual_mailbox_limit = 0".to_owned(),
        "message_size_limit = 0".to_owned(),
        // By default Postfix removes Bcc, which the relay has to do itself.
        "message_drop_headers =".to_owned(),
        "mynetworks = 127.0.0.0/8".to_owned(),
        "smtpd_relay_restrictions = permit_mynetworks, reject".to_owned(),
        format!("smtpd_recipient_restrictions = check_recipient_access tcp:{rules}, permit"),
        // No DNS.
        "smtpd_peername_lookup = no".to_owned(),
        "disable_dns_lookups = yes".to_owned(),
    ];
    if let Some(Certificate { chain, key }) = certificate {
        settings.push(format!("smtpd_tls_cert_file = {}", chain.display()));
        settings.push(format!("smtpd_tls_key_file = {}", key.display()));
        settings.push("smtpd_tls_security_level = encrypt".to_owned());
    }
    settings.join("\n") + "\n"
}

fn services(smtp: &ReservedPort, smtps: &ReservedPort, has_tls: bool) -> String {
    let mut services = vec![format!("127.0.0.1:{} inet n - n - - smtpd", smtp.get())];
    if has_tls {
        services.push(format!("127.0.0.1:{} inet n - n - - smtpd -o smtpd_tls_wrappermode=yes", smtps.get()));
        services.push("tlsmgr unix - - n 1000? 1 tlsmgr".to_owned());
    }
    let common = [
        "postlog unix-dgram n - n - 1 postlogd",
        "cleanup unix n - n - 0 cleanup",
        "qmgr unix n - n 300 1 qmgr",
        "rewrite unix - - n - - trivial-rewrite",
        "bounce unix - - n - 0 bounce",
        "defer unix - - n - 0 bounce",
        "trace unix - - n - 0 bounce",
        "virtual unix - n n - - virtual",
        "error unix - - n - - error",
        "retry unix - - n - - error",
        "proxymap unix - - n - - proxymap",
        "anvil unix - - n - 1 anvil",
    ];
    services.extend(common.map(str::to_owned));
    services.join("\n") + "\n"
}

/// Returns a setting of Postfix.
fn setting(program: &Path, config: &Path, name: &str) -> String {
    run(Command::new(program.with_file_name("postconf")).arg("-c").arg(config).args(["-h", name]))
}

/// Runs a command, which must succeed, and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Serves the rules as a table that Postfix looks up for each recipient (`tcp_table(5)`). A file would be read once per process of
/// Postfix, so a change would have no effect on a connection. Returns the address.
fn serve_rules(rules: &Arc<Mutex<HashMap<String, String>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, rules) = (listener.local_addr().unwrap(), rules.clone());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let rules = rules.clone();
            thread::spawn(move || {
                let mut output = stream.try_clone().unwrap();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let rule = line.strip_prefix("get ").and_then(|key| rules.lock().unwrap().get(key).cloned());
                    let reply =
                        rule.map_or("500 none\n".to_owned(), |rule| format!("200 {}\n", rule.replace(' ', "%20")));
                    if output.write_all(reply.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}
