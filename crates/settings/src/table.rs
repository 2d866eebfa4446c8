//! The table of settings, in the order of the reference page. One row per setting.

use std::path::PathBuf;

use restante_auth::oidc::parse_issuer;
use restante_logging::{Level, Output as LogOutput};
use restante_proto::smtp::OptionalCommand;
use restante_store::disk::Durability;
use restante_store::postgres::Url;

use super::credential::{Credential, SigningKey, parse_users};
use super::policies::parse_policies;
use super::projects::parse_project_rules;
use super::relay;
use super::setting::{Setting, Value};

use super::types::{AllowList, CertSource, Config, StoreKind, Tls};
use super::values::{
    base_path, chaos_triggers, choice, collect_all, domain_patterns, duration_between, host_name, kibibytes, number,
    optional_limit, optional_path, origin, parse_boolean, parsed_list, public_url, regular_expression,
    retention_period, split_list, split_params, tag_rules,
};
use super::webhook;

/// 4 TiB. It keeps arithmetic on bytes far from overflow.
pub(super) const MAX_KIB: u64 = 1 << 32;
/// The upper limit of counts of messages.
pub(super) const MAX_MAILBOX_MESSAGES: u64 = 1_000_000_000;
/// With less, every read goes to the disk.
const MIN_CACHE_KIB: u64 = 1024;
/// With less, a script of moderate size cannot be loaded.
const MIN_LUA_KIB: u64 = 1024;
/// Every running call has a thread.
const MAX_LUA_CALLS: u64 = 4096;
/// Two for changes, one to follow the changes of other servers, one for transcripts, and one for queries.
const MIN_CONNECTIONS: u64 = 5;
/// More than any database accepts.
const MAX_CONNECTIONS: u64 = 1000;
/// The upper limit of counts that use memory only when they are reached.
const MAX_COUNT: u64 = 1_000_000;
/// The minimum length of the key that signs login sessions. Whoever has it can impersonate any user.
const MIN_KEY_BYTES: usize = 32;
/// The maximum length of the name of a header field in bytes.
const MAX_HEADER_BYTES: usize = 100;

const ADDRESSES: Value = Value::List("ADDRESS");
const DOMAINS: Value = Value::List("DOMAIN");
const NETWORKS: Value = Value::List("NETWORK");
/// Users with their passwords.
pub(super) const CREDENTIALS: Value = Value::List("USER:PASSWORD");
const FILE: Value = Value::Text("FILE");

/// The help texts of settings that several protocols have.
const CERTIFICATE_HELP: &str = "The PEM file with the certificate chain, or the word self-signed. With self-signed, a \
    certificate for development is created at each start. The file is read again on SIGHUP.";
const PRIVATE_KEY_HELP: &str = "The PEM file with the private key of the certificate. It is not used with a self-signed \
    certificate. The file is read again on SIGHUP.";

/// All settings.
#[rustfmt::skip] // A row starts with key, default and kind on one line, so that the table is easy to scan.
pub const SETTINGS: &[Setting] = &[
    // General
    Setting::new(
        "loglevel", "info", Value::Text("LEVEL"),
        "The lowest level that is logged: debug, info, warn or error.",
        |c, v| set(
            &mut c.log.level,
            choice(v, &[("debug", Level::Debug), ("info", Level::Info), ("warn", Level::Warn), ("error", Level::Error)]),
        ),
    ),
    Setting::new(
        "logjson", "false", Value::Bool,
        "Logs one JSON object per line instead of text.",
        |c, v| set(&mut c.log.json, parse_boolean(v)),
    ),
    Setting::new(
        "logfile", "stderr", FILE,
        "Where the log is written: stderr, stdout or a file. The server appends to the file and reopens it on SIGHUP.",
        |c, v| set(&mut c.log.output, log_output(v)),
    ),
    Setting::new(
        "netdebug", "false", Value::Bool,
        "Logs the commands and replies of all SMTP, LMTP, POP3 and IMAP sessions. Passwords are omitted.",
        |c, v| set(&mut c.log.netdebug, parse_boolean(v)),
    ),
    Setting::new(
        "pidfile", "", FILE,
        "A file that contains the process id while the server runs.",
        |c, v| set(&mut c.pidfile, Ok(optional_path(v))),
    ),
    Setting::new(
        "stopwithstdin", "false", Value::Bool,
        "Stops the server when its standard input is closed. A program that starts the server for a test and keeps the \
         other end of a pipe open can use it: the server ends with this program, even if it is killed.",
        |c, v| set(&mut c.stop_with_stdin, parse_boolean(v)),
    ),
    Setting::new(
        "mailboxnaming", "local", Value::Text("NAMING"),
        "How a recipient address becomes a mailbox name: local, full or domain. The mailbox of James+Spam@x.org is james \
         (local), james@x.org (full) or x.org (domain).",
        |c, v| set(&mut c.mailbox_naming, v.parse().map_err(|allowed| format!("must be {allowed}"))),
    ),
    // SMTP
    Setting::new(
        "smtp.addr", "localhost:2500", ADDRESSES,
        "The addresses where SMTP is served. STARTTLS is offered if smtp.tlsenabled is true. If empty, there is no such \
         listener.",
        |c, v| set(&mut c.smtp.addr, parsed_list(v)),
    ),
    Setting::new(
        "smtp.tlsaddr", "", ADDRESSES,
        "The addresses where SMTP is served with TLS from the first byte. Requires smtp.tlsenabled.",
        |c, v| set(&mut c.smtp.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "smtp.domain", "localhost", Value::Text("DOMAIN"),
        "The host name of the server in its greeting and in Received header fields. If the machine has no usable host name, \
         it is localhost.",
        |c, v| set(&mut c.smtp.domain, host_name(v)),
    ).default_to_host_name(),
    Setting::new(
        "smtp.maxrecipients", "200", Value::Number,
        "The maximum number of recipients of one message, from 1 to 1000000. Further recipients are refused temporarily, with \
         452.",
        |c, v| set(&mut c.smtp.max_recipients, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxmessagebytes", "10240000", Value::Number,
        "The maximum size of one message in bytes, from 1 to 2147483648. A larger message is refused with 552.",
        |c, v| set(&mut c.smtp.max_message_bytes, number(v, 1..=1 << 31)),
    ),
    Setting::new(
        "smtp.timeout", "300s", Value::Duration,
        "How long a client may be idle before its connection is closed, from 1s to 24h.",
        |c, v| set(&mut c.smtp.timeout, duration_between(v, "1s", "24h")),
    ),
    Setting::new(
        "smtp.defaultaccept", "true", Value::Bool,
        "Whether messages to all domains are accepted, except those in smtp.rejectdomains. If false, only messages to the \
         domains in smtp.acceptdomains are accepted.",
        |c, v| set(&mut c.smtp.policy.default_accept, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.acceptdomains", "", DOMAINS,
        "Recipient domains that are accepted if smtp.defaultaccept is false. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.accept_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.rejectdomains", "", DOMAINS,
        "Recipient domains that are refused if smtp.defaultaccept is true. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.reject_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.rejectorigindomains", "", DOMAINS,
        "Sender domains that are refused. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.reject_origin_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.defaultstore", "true", Value::Bool,
        "Whether accepted messages to all domains are stored, except those in smtp.discarddomains. If false, only messages to \
         the domains in smtp.storedomains are stored.",
        |c, v| set(&mut c.smtp.policy.default_store, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.storedomains", "", DOMAINS,
        "Recipient domains whose messages are stored if smtp.defaultstore is false. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.store_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.discarddomains", "", DOMAINS,
        "Recipient domains whose messages are accepted and discarded if smtp.defaultstore is true. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.discard_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.allowedrecipients", "", Value::Text("REGEX"),
        "A regular expression. Recipients whose address does not match are refused with 550. It need not match the whole \
         address: use ^ and $ for that.",
        |c, v| set(&mut c.smtp.policy.allowed_recipients, regular_expression(v)),
    ),
    Setting::new(
        "smtp.discardrejected", "false", Value::Bool,
        "Accepts and discards messages to the recipients that smtp.allowedrecipients would refuse.",
        |c, v| set(&mut c.smtp.policy.discard_rejected, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.tlsenabled", "false", Value::Bool,
        "Enables TLS for SMTP and LMTP. STARTTLS is then offered.",
        |c, v| set(&mut c.smtp.tls.enabled, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.tlscert", "cert.crt", FILE,
        CERTIFICATE_HELP,
        |c, v| certificate(&mut c.smtp.tls, v),
    ),
    Setting::new(
        "smtp.tlsprivkey", "cert.key", FILE,
        PRIVATE_KEY_HELP,
        |c, v| set(&mut c.smtp.tls.key, private_key_file(v)),
    ),
    Setting::new(
        "smtp.forcetls", "false", Value::Bool,
        "Serves smtp.addr with TLS from the first byte. Requires smtp.tlsenabled.",
        |c, v| set(&mut c.smtp.tls.force, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.requirestarttls", "false", Value::Bool,
        "Refuses messages and logins on connections without TLS with 530, on listeners that offer STARTTLS. Requires \
         smtp.tlsenabled.",
        |c, v| set(&mut c.smtp.require_starttls, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.credentials", "", CREDENTIALS,
        "The users and passwords for AUTH, in addition to auth.users and auth.tokens. If none of these, nor auth.oidcissuer or \
         auth.userheader, is set, AUTH accepts every name and password. A password can be given as an Argon2 or bcrypt hash; \
         CRAM-MD5 is then not offered. A comma in a password is written as %2C. Prefer the environment variable or the file: \
         command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.smtp.credentials, Credential::parse_list(v)),
    ).secret(),
    Setting::new(
        "smtp.acceptanylogin", "false", Value::Bool,
        "AUTH accepts every name and password, even if a setting of auth requires logins. Cannot be combined with \
         smtp.credentials.",
        |c, v| set(&mut c.smtp.accept_any_login, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.requireauth", "false", Value::Bool,
        "Accepts messages only from clients that have authenticated. Requires smtp.credentials, auth.users or auth.tokens.",
        |c, v| set(&mut c.smtp.require_auth, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.strict", "false", Value::Bool,
        "Refuses commands with syntax that is otherwise ignored. Unknown parameters of MAIL and RCPT are refused with 555. \
         Arguments of RSET and QUIT and a second word after EHLO are refused with 501.",
        |c, v| set(&mut c.smtp.strict, parse_boolean(v)),
    ),
    Setting::new(
        "smtp.disabledcommands", "", Value::List("COMMAND"),
        "Commands that are refused with 502: HELP, VRFY or both.",
        |c, v| set(&mut c.smtp.disabled_commands, optional_commands(v)),
    ),
    Setting::new(
        "smtp.maxconnections", "1000", Value::Number,
        "The maximum number of concurrent SMTP and LMTP connections, from 1 to 1000000.",
        |c, v| set(&mut c.smtp.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxconnectionsperip", "0", Value::Number,
        "The maximum number of concurrent SMTP and LMTP connections of one client; 0 means no limit. A client is one IPv4 \
         address or one IPv6 /64 network.",
        |c, v| set(&mut c.smtp.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxbadcommands", "20", Value::Number,
        "The maximum number of bad commands in a session, from 1 to 1000000. Then the session is closed with 421.",
        |c, v| set(&mut c.smtp.max_bad_commands, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxinflightkb", "262144", Value::Number,
        "The maximum size of all messages that are being received at the same time, in KiB. Above it, the server stops \
         reading until other messages are complete. A value below smtp.maxmessagebytes is raised to the size of one message.",
        |c, v| set(&mut c.smtp.max_inflight_bytes, kibibytes(v, 1..=MAX_KIB)),
    ),
    Setting::new(
        "smtp.transcriptkb", "8192", Value::Number,
        "The maximum size of the stored transcripts of SMTP and LMTP sessions, in KiB; 0 turns recording off. A transcript \
         contains commands and replies, without passwords and message contents. The oldest transcripts are deleted first. \
         Transcripts older than storage.retentionperiod are deleted too.",
        |c, v| set(&mut c.smtp.transcript_bytes, kibibytes(v, 0..=MAX_KIB)),
    ),
    Setting::new(
        "smtp.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose SMTP and LMTP connections begin with a PROXY protocol header, version 1 or 2. \
         The header contains the address of the client. Connections from other addresses must not send one.",
        |c, v| set(&mut c.smtp.proxies, parsed_list(v)),
    ),
    // LMTP
    Setting::new(
        "lmtp.addr", "", ADDRESSES,
        "The addresses where LMTP is served. Domain, limits, policy and TLS are those of SMTP.",
        |c, v| set(&mut c.lmtp.addr, parsed_list(v)),
    ),
    // POP3
    Setting::new(
        "pop3.addr", "localhost:1100", ADDRESSES,
        "The addresses where POP3 is served. STLS is offered if pop3.tlsenabled is true. If empty, there is no such listener.",
        |c, v| set(&mut c.pop3.addr, parsed_list(v)),
    ),
    Setting::new(
        "pop3.tlsaddr", "", ADDRESSES,
        "The addresses where POP3 is served with TLS from the first byte. Requires pop3.tlsenabled.",
        |c, v| set(&mut c.pop3.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "pop3.domain", "localhost", Value::Text("DOMAIN"),
        "The host name of the server in its POP3 greeting. If the machine has no usable host name, it is localhost.",
        |c, v| set(&mut c.pop3.domain, host_name(v)),
    ).default_to_host_name(),
    Setting::new(
        "pop3.timeout", "600s", Value::Duration,
        "How long a client may be idle before its connection is closed, from 1s to 24h.",
        |c, v| set(&mut c.pop3.timeout, duration_between(v, "1s", "24h")),
    ),
    Setting::new(
        "pop3.tlsenabled", "false", Value::Bool,
        "Enables TLS for POP3. STLS is then offered.",
        |c, v| set(&mut c.pop3.tls.enabled, parse_boolean(v)),
    ),
    Setting::new(
        "pop3.tlscert", "cert.crt", FILE,
        CERTIFICATE_HELP,
        |c, v| certificate(&mut c.pop3.tls, v),
    ),
    Setting::new(
        "pop3.tlsprivkey", "cert.key", FILE,
        PRIVATE_KEY_HELP,
        |c, v| set(&mut c.pop3.tls.key, private_key_file(v)),
    ),
    Setting::new(
        "pop3.forcetls", "false", Value::Bool,
        "Serves pop3.addr with TLS from the first byte. Requires pop3.tlsenabled.",
        |c, v| set(&mut c.pop3.tls.force, parse_boolean(v)),
    ),
    Setting::new(
        "pop3.credentials", "", CREDENTIALS,
        "The passwords of mailboxes. The user is the name or an address of the mailbox; the user `*` can open all mailboxes. \
         If neither this nor auth.users, auth.tokens, auth.oidcissuer or auth.userheader is set, every password opens every \
         mailbox. A password can be given as an Argon2 or bcrypt hash. A comma in a password is written as %2C. Prefer the \
         environment variable or the file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.pop3.credentials, Credential::parse_list(v)),
    ).secret(),
    Setting::new(
        "pop3.maxconnections", "1000", Value::Number,
        "The maximum number of concurrent POP3 connections, from 1 to 1000000.",
        |c, v| set(&mut c.pop3.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "pop3.maxconnectionsperip", "0", Value::Number,
        "The maximum number of concurrent POP3 connections of one client; 0 means no limit. A client is one IPv4 address or \
         one IPv6 /64 network.",
        |c, v| set(&mut c.pop3.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "pop3.maxbadcommands", "20", Value::Number,
        "The maximum number of bad commands and failed logins in a session, from 1 to 1000000. Then the session is closed.",
        |c, v| set(&mut c.pop3.max_bad_commands, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "pop3.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose POP3 connections begin with a PROXY protocol header, version 1 or 2. The \
         header contains the address of the client. Connections from other addresses must not send one.",
        |c, v| set(&mut c.pop3.proxies, parsed_list(v)),
    ),
    // IMAP
    Setting::new(
        "imap.addr", "localhost:1143", ADDRESSES,
        "The addresses where IMAP is served. STARTTLS is offered if imap.tlsenabled is true. If empty, there is no such \
         listener.",
        |c, v| set(&mut c.imap.addr, parsed_list(v)),
    ),
    Setting::new(
        "imap.tlsaddr", "", ADDRESSES,
        "The addresses where IMAP is served with TLS from the first byte. Requires imap.tlsenabled.",
        |c, v| set(&mut c.imap.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "imap.domain", "localhost", Value::Text("DOMAIN"),
        "The host name of the server in its IMAP greeting. If the machine has no usable host name, it is localhost.",
        |c, v| set(&mut c.imap.domain, host_name(v)),
    ).default_to_host_name(),
    Setting::new(
        "imap.timeout", "1800s", Value::Duration,
        "How long a client may be idle before its connection is closed, from 1s to 24h. RFC 3501 requires at least 30 \
         minutes.",
        |c, v| set(&mut c.imap.timeout, duration_between(v, "1s", "24h")),
    ),
    Setting::new(
        "imap.tlsenabled", "false", Value::Bool,
        "Enables TLS for IMAP. STARTTLS is then offered.",
        |c, v| set(&mut c.imap.tls.enabled, parse_boolean(v)),
    ),
    Setting::new(
        "imap.tlscert", "cert.crt", FILE,
        CERTIFICATE_HELP,
        |c, v| certificate(&mut c.imap.tls, v),
    ),
    Setting::new(
        "imap.tlsprivkey", "cert.key", FILE,
        PRIVATE_KEY_HELP,
        |c, v| set(&mut c.imap.tls.key, private_key_file(v)),
    ),
    Setting::new(
        "imap.forcetls", "false", Value::Bool,
        "Serves imap.addr with TLS from the first byte. Requires imap.tlsenabled.",
        |c, v| set(&mut c.imap.tls.force, parse_boolean(v)),
    ),
    Setting::new(
        "imap.credentials", "", CREDENTIALS,
        "The passwords of mailboxes. The user is the name or an address of the mailbox; the user `*` can open all mailboxes. \
         If neither this nor auth.users, auth.tokens, auth.oidcissuer or auth.userheader is set, every password opens every \
         mailbox. A password can be given as an Argon2 or bcrypt hash. A comma in a password is written as %2C. Prefer the \
         environment variable or the file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.imap.credentials, Credential::parse_list(v)),
    ).secret(),
    Setting::new(
        "imap.maxconnections", "1000", Value::Number,
        "The maximum number of concurrent IMAP connections, from 1 to 1000000.",
        |c, v| set(&mut c.imap.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "imap.maxconnectionsperip", "0", Value::Number,
        "The maximum number of concurrent IMAP connections of one client; 0 means no limit. A client is one IPv4 address or \
         one IPv6 /64 network.",
        |c, v| set(&mut c.imap.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "imap.maxbadcommands", "20", Value::Number,
        "The maximum number of bad commands and failed logins in a session, from 1 to 1000000. Then the session is closed.",
        |c, v| set(&mut c.imap.max_bad_commands, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "imap.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose IMAP connections begin with a PROXY protocol header, version 1 or 2. The \
         header contains the address of the client. Connections from other addresses must not send one.",
        |c, v| set(&mut c.imap.proxies, parsed_list(v)),
    ),
    // Web
    Setting::new(
        "web.addr", "localhost:9000", ADDRESSES,
        "The addresses where HTTP is served, or HTTPS if web.tlsenabled is true. If empty, there is no such listener.",
        |c, v| set(&mut c.web.addr, parsed_list(v)),
    ),
    Setting::new(
        "web.tlsaddr", "", ADDRESSES,
        "The addresses where HTTPS is served in addition to web.addr. Requires a certificate, but not web.tlsenabled.",
        |c, v| set(&mut c.web.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "web.listeners", "", Value::List("MOUNT"),
        "Where APIs are served in addition to web.addr and web.tlsaddr: at an address of their own, below a path, or both. The \
         APIs are rest, operations, mailpit and providers. Examples: localhost:8025 mailpit, localhost:9443 tls providers, \
         /mailpit mailpit. A listener of its own uses HTTPS if the word tls follows its address, or if web.tlsenabled is true. \
         Two APIs with the same path on one listener are an error.",
        |c, v| set(&mut c.web.listeners, parsed_list(v)),
    ),
    Setting::new(
        "web.tlsenabled", "false", Value::Bool,
        "Serves HTTPS instead of HTTP on web.addr.",
        |c, v| set(&mut c.web.tls.force, parse_boolean(v)),
    ),
    Setting::new(
        "web.tlscert", "cert.crt", FILE,
        CERTIFICATE_HELP,
        |c, v| certificate(&mut c.web.tls, v),
    ),
    Setting::new(
        "web.tlsprivkey", "cert.key", FILE,
        PRIVATE_KEY_HELP,
        |c, v| set(&mut c.web.tls.key, private_key_file(v)),
    ),
    Setting::new(
        "web.basepath", "", Value::Text("PATH"),
        "A prefix of all paths, such as /mail, for a server behind a reverse proxy.",
        |c, v| set(&mut c.web.base_path, base_path(v)),
    ),
    Setting::new(
        "web.publicurl", "", Value::Text("URL"),
        "The URL of the server as clients see it. It is used for links in responses. Without it, links are derived from the \
         request.",
        |c, v| set(&mut c.web.public_url, public_url(v)),
    ),
    Setting::new(
        "web.hosts", "", Value::List("HOST"),
        "Public host names of the server. Requests are always accepted for IP addresses, names without a dot, names under \
         .localhost, .local, .internal and .svc, the host name of this machine, and the host of web.publicurl. Requests for \
         other names are refused with 421, because a web page can point its own name at this server (DNS rebinding). `*` \
         accepts every name and turns this protection off.",
        |c, v| set(&mut c.web.hosts, allow_list(v, allowed_host)),
    ),
    Setting::new(
        "web.corsorigins", "", Value::List("ORIGIN"),
        "Origins whose web pages may use the REST API and the live feeds, such as https://app.example:8443. `*` allows every \
         page that is open in a browser that can reach the server. If empty, only the pages of this server are allowed.",
        |c, v| set(&mut c.web.cors, allowed_origins(v)),
    ),
    Setting::new(
        "web.trustedproxies", "", NETWORKS,
        "Addresses or networks of proxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host header fields are \
         trusted.",
        |c, v| set(&mut c.web.trusted_proxies, parsed_list(v)),
    ),
    Setting::new(
        "web.maxconnections", "4000", Value::Number,
        "The maximum number of concurrent HTTP connections, including those of the live monitor, from 1 to 1000000. An idle \
         connection takes about 16 KiB of memory and one file descriptor.",
        |c, v| set(&mut c.web.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "web.maxconnectionsperip", "0", Value::Number,
        "The maximum number of concurrent HTTP connections of one client; 0 means no limit. A client is one IPv4 address or \
         one IPv6 /64 network. Connections of web.trustedproxies are not counted; requests of the clients behind them are.",
        |c, v| set(&mut c.web.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "web.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose HTTP connections begin with a PROXY protocol header, version 1 or 2. The \
         header contains the address of the client. Connections from other addresses must not send one.",
        |c, v| set(&mut c.web.proxies, parsed_list(v)),
    ),
    Setting::new(
        "web.cachekb", "16384", Value::Number,
        "The maximum size of the cache of rendered responses, in KiB; 0 turns the cache off. Up to half of it is for the texts \
         of the newest messages, if they are searched with the API of Mailpit.",
        |c, v| set(&mut c.web.cache_bytes, kibibytes(v, 0..=MAX_KIB)),
    ),
    Setting::new(
        "web.greetingfile", "", FILE,
        "An HTML file that the empty inbox and the page /send show instead of the built-in greeting. It is read for every \
         request, up to 1 MiB. While it cannot be read, the built-in greeting is shown.",
        |c, v| set(&mut c.web.greeting_file, Ok(optional_path(v))),
    ),
    Setting::new(
        "web.monitorvisible", "true", Value::Bool,
        "Shows the inbox and the list of mailboxes in the web interface. If false, they are hidden there, but not \
         protected: the live feeds and the REST API are not affected.",
        |c, v| set(&mut c.web.monitor_visible, parse_boolean(v)),
    ),
    Setting::new(
        "web.maxmonitors", "2000", Value::Number,
        "The maximum number of concurrent clients of the live monitor; 0 means no limit except web.maxconnections.",
        |c, v| set(&mut c.web.max_monitors, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "web.monitorhistory", "30", Value::Number,
        "The number of recent messages that a new client of the live monitor receives first, from 0 to 10000.",
        |c, v| set(&mut c.web.monitor_history, number(v, 0..=10_000)),
    ),
    Setting::new(
        "web.uidir", "", Value::Text("DIR"),
        "The directory of the web interface in Inbucket. In Restante, the web interface is part of the program.",
        |_, _| Ok(()),
    ).ignored(),
    Setting::new(
        "web.pprof", "", Value::Text("BOOL"),
        "Enables Go's profiler in Inbucket.",
        |_, _| Ok(()),
    ).ignored(),
    // Providers
    Setting::new(
        "providers.signingkeys", "", Value::List("ID:SECRET"),
        "The keys with which clients sign requests to the APIs of mail providers: for Amazon SES an access key id and its secret \
         access key, for Azure any id and an access key. Without this setting, signatures are not verified. With it, a request to \
         these providers must be signed by one of the keys, at a time that differs by at most 15m from that of this server, and a \
         proxy must not change the header field Host. A request to Azure may have a Bearer token instead. A token with the text of \
         an id is accepted with a signature only. A comma in a secret is written as %2C. Prefer the environment variable or the \
         file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.signing_keys, SigningKey::parse_list(v)),
    ).secret(),
    // Access
    Setting::new(
        "auth.users", "", FILE,
        "The user file. Its lines have the form name:hash, as written by htpasswd and restante user, with Argon2 or bcrypt \
         hashes. Users have full access, unless a line of the file limits their rights. The file is reloaded when it changes. Once \
         users or tokens are configured, anonymous requests are refused.",
        |c, v| set(&mut c.auth.users, Ok(optional_path(v))),
    ),
    Setting::new(
        "auth.credentials", "", CREDENTIALS,
        "Users and passwords, in addition to auth.users. They have full access, unless a line of that file limits their rights. A \
         password can be given as an Argon2 or bcrypt hash. A comma in a password is written as %2C. Prefer the environment variable or the file: command-line flags are \
         visible to all users of the machine.",
        |c, v| set(&mut c.auth.credentials, parse_users(v)),
    ).secret(),
    Setting::new(
        "auth.tokens", "", FILE,
        "The token file, as written by restante token. It is reloaded when it changes. Without this setting, tokens.toml in \
         the data directory is used if it exists when the server starts.",
        |c, v| set(&mut c.auth.tokens, Ok(optional_path(v))),
    ),
    Setting::new(
        "auth.sessiontime", "12h", Value::Duration,
        "How long a login to the web interface is valid, from 1m to 8760h.",
        |c, v| set(&mut c.auth.session_time, duration_between(v, "1m", "8760h")),
    ),
    Setting::new(
        "auth.secret", "", Value::Text("KEY"),
        "The key that signs logins to the web interface and leased runs, with at least 32 bytes. Servers with the same users \
         share one key, so that a login or run is valid on all of them. Without it, both end with the process. Prefer the environment variable or \
         the file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.auth.secret, session_key(v)),
    ).secret(),
    Setting::new(
        "auth.oidcissuer", "", Value::Text("URL"),
        "The identity provider (OpenID Connect) whose accounts can log in to the web interface: its URL, exactly as it names \
         itself, such as https://login.example.org/realms/acme. Requires auth.oidcclientid. auth.grants decides what an account \
         may do. Once it is set, anonymous requests are refused.",
        |c, v| set(&mut c.auth.oidc.issuer, parse_issuer(v)),
    ),
    Setting::new(
        "auth.oidcclientid", "", Value::Text("ID"),
        "The id of this server at the identity provider. Register the path /login/oidc/callback of this server there as the \
         redirect URI, and /login as the redirect URI after a logout.",
        |c, v| set(&mut c.auth.oidc.client_id, Ok(v.to_owned())),
    ),
    Setting::new(
        "auth.oidcsecret", "", Value::Text("SECRET"),
        "The secret of this server at the identity provider. Public clients have none. Prefer the environment variable or the \
         file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.auth.oidc.client_secret, Ok((!v.is_empty()).then(|| v.to_owned()))),
    ).secret(),
    Setting::new(
        "auth.oidcscopes", "openid profile email", Value::Text("SCOPES"),
        "The scopes that are requested from the identity provider, separated by spaces. They determine which claims it returns.",
        |c, v| set(&mut c.auth.oidc.scopes, oidc_scopes(v)),
    ),
    Setting::new(
        "auth.userheader", "", Value::Text("HEADER"),
        "The header field in which an authenticating proxy sends the name of the user, such as X-Forwarded-User. It is accepted \
         from web.trustedproxies only. The proxy must remove it from the requests of clients. Once it is set, anonymous requests \
         are refused.",
        |c, v| set(&mut c.auth.headers.user, header_name(v)),
    ),
    Setting::new(
        "auth.groupsheader", "", Value::Text("HEADER"),
        "The header field in which an authenticating proxy sends the groups of the user, separated by commas, such as \
         X-Forwarded-Groups. Requires auth.userheader.",
        |c, v| set(&mut c.auth.headers.groups, header_name(v)),
    ),
    Setting::new(
        "auth.grants", "", Value::Text("RULES"),
        "What accounts of the identity provider and users of an authenticating proxy may do, as rules of the form \
         CLAIM=PATTERN -> RIGHTS with semicolons between them: groups=qa -> read,write shop:*; groups=admin -> all. The first rule \
         that matches an account decides. Without one, the account has no access. A proxy provides the claims user and groups. A \
         dot leads into a nested claim: realm_access.roles=ops.",
        |c, v| set(&mut c.auth.grants, v.parse()),
    ),
    // Storage
    Setting::new(
        "storage.type", "memory", Value::Text("TYPE"),
        "The kind of store: memory, file or postgres. A memory store loses all messages when the process ends. A file store \
         keeps them in a data directory. A postgres store keeps them in a database that several servers can share. Setting \
         only storage.path implies file; setting only storage.url implies postgres.",
        |c, v| set(
            &mut c.storage.kind,
            choice(v, &StoreKind::ALL.map(|kind| (kind.name(), kind))),
        ),
    ),
    Setting::new(
        "storage.params", "", Value::Params,
        "Parameters of the store. path:/dir is the data directory for storage.type file. maxkb:10240 limits the size of the \
         store in KiB; the oldest messages are deleted first. If maxkb is 0 or absent, the limit is 1048576 (1 GiB) in \
         memory, and there is no limit otherwise.",
        storage_params,
    ),
    Setting::new(
        "storage.path", "", Value::Text("DIR"),
        "The data directory for messages. It is created if it does not exist, and implies storage.type file. If storage.type \
         has another value, the source with higher precedence wins, such as a flag over a variable. A conflict within one \
         source is an error.",
        |c, v| set(&mut c.storage.path, Ok(optional_path(v))),
    ).alias("data"),
    Setting::new(
        "storage.durability", "full", Value::Text("DURABILITY"),
        "When a message in the data directory is acknowledged: full or relaxed. With full, it is acknowledged after it is on \
         the disk, so that no acknowledged message is ever lost. With relaxed, it is acknowledged earlier, which is faster. \
         Then a crash of the process loses nothing, but a power failure or a crash of the machine can lose the last \
         acknowledged messages.",
        |c, v| set(
            &mut c.storage.durability,
            choice(v, &[("full", Durability::Full), ("relaxed", Durability::Relaxed)]),
        ),
    ),
    Setting::new(
        "storage.cachekb", "16384", Value::Number,
        "The size of the cache for data read from the data directory or the database, in KiB, at least 1024.",
        |c, v| set(&mut c.storage.cache_bytes, kibibytes(v, MIN_CACHE_KIB..=MAX_KIB)),
    ),
    Setting::new(
        "storage.url", "", Value::Text("URL"),
        "The URL of a PostgreSQL database for messages, which several servers can share. An example is \
         postgres://user:password@host:5432/database?sslmode=verify-full; separate several hosts by commas. It implies \
         storage.type postgres. If storage.type or storage.path has another value, the source with higher precedence wins. A \
         conflict within one source is an error. Prefer the environment variable or the file: command-line flags are visible \
         to all users of the machine.",
        |c, v| set(&mut c.storage.url, database_url(v)),
    ).secret(),
    Setting::new(
        "storage.connections", "10", Value::Number,
        "The maximum number of connections to the database of storage.url, from 5 to 1000.",
        |c, v| set(&mut c.storage.connections, number(v, MIN_CONNECTIONS..=MAX_CONNECTIONS)),
    ),
    Setting::new(
        "storage.retentionperiod", "24h", Value::Duration,
        "How long a message is kept, from 1s to 876000h; 0 means forever.",
        |c, v| set(&mut c.storage.retention_period, retention_period(v)),
    ),
    Setting::new(
        "storage.mailboxmsgcap", "500", Value::Number,
        "The maximum number of messages in one mailbox; 0 means no limit. The oldest message is deleted first.",
        |c, v| set(&mut c.storage.mailbox_msg_cap, optional_limit(v, MAX_MAILBOX_MESSAGES)),
    ),
    Setting::new(
        "storage.maxmessages", "0", Value::Number,
        "The maximum number of messages in all mailboxes together; 0 means no limit. A message in several mailboxes counts once. \
         The messages that were received first are deleted, about a second after the limit is exceeded.",
        |c, v| set(&mut c.storage.max_messages, optional_limit(v, MAX_MAILBOX_MESSAGES)),
    ),
    Setting::new(
        "storage.policies", "", Value::Text("POLICIES"),
        "Limits for some mailboxes, separated by semicolons: a pattern of mailboxes and options. The first entry whose pattern \
         matches a mailbox decides. In a pattern, `*` and `?` are wildcards; shop:* are the mailboxes of the project shop. The \
         options are `retention=24h`, how long a message is kept; `cap=500`, the maximum number of messages in each mailbox; and \
         `maxkb=10240`, the maximum size of each mailbox in KiB, in which a message counts fully even if it is also in other \
         mailboxes. 0 means no limit. Without retention or cap, storage.retentionperiod or storage.mailboxmsgcap applies. Above \
         cap and maxkb, the oldest message of the mailbox is deleted first. At most 100 entries. Example: shop:* retention=7d \
         cap=5000; run-*:* retention=1h maxkb=10240.",
        |c, v| set(&mut c.storage.policies, parse_policies(v)),
    ),
    Setting::new(
        "storage.retentionsleep", "", Value::Duration,
        "The pause between two mailboxes of Inbucket's retention scan. Restante has no such scan.",
        |_, _| Ok(()),
    ).ignored(),
    // Scripting
    Setting::new(
        "lua.path", "restante.lua,inbucket.lua", Value::List("FILE"),
        "The Lua script: the first of these files that exists. If the list is empty, or none of the default files exists, there \
         is no script. If the setting is given and none exists, the server does not start; with INBUCKET_LUA_PATH, it starts \
         without a script. If the setting is not given, the file is loaded only if no other user can write it or its \
         directory. The script is reloaded on SIGHUP.",
        |c, v| set(&mut c.scripting.paths, Ok(split_list(v).into_iter().map(PathBuf::from).collect())),
    ),
    Setting::new(
        "lua.sandbox", "false", Value::Bool,
        "Denies the script access to files, programs and the environment. It has no io module, and no dangerous functions in \
         os.",
        |c, v| set(&mut c.scripting.sandbox, parse_boolean(v)),
    ),
    Setting::new(
        "lua.timeout", "10s", Value::Duration,
        "The time limit of one call of the script, from 100ms to 1h. A longer call is stopped, and the message is processed \
         as if there were no script.",
        |c, v| set(&mut c.scripting.timeout, duration_between(v, "100ms", "1h")),
    ),
    Setting::new(
        "lua.memorykb", "65536", Value::Number,
        "The memory limit of each Lua state, in KiB, at least 1024. A call that needs more is stopped like one that takes too \
         long.",
        |c, v| set(&mut c.scripting.memory_bytes, kibibytes(v, MIN_LUA_KIB..=MAX_KIB)),
    ),
    Setting::new(
        "lua.states", "0", Value::Number,
        "The number of Lua states that are kept ready for `before` functions, and the number for `after` functions; 0 chooses \
         by the number of cores. At most this number of `after` functions run at the same time. With 0, there is one state \
         for every two cores for `before` functions, and one for each core for `after` functions.",
        |c, v| set(&mut c.scripting.states, optional_limit(v, 1024)),
    ),
    Setting::new(
        "lua.maxcalls", "256", Value::Number,
        "The maximum number of concurrent calls of `before` functions, from 1 to 4096. Each call has its own Lua state; more \
         states than lua.states are created only while calls are slow. Further calls wait. After lua.timeout the message is \
         processed as if there were no script. In the worst case these states take about 2 * lua.maxcalls * \
         lua.memorykb KiB of memory.",
        |c, v| set(&mut c.scripting.max_calls, number(v, 1..=MAX_LUA_CALLS)),
    ),
    Setting::new(
        "lua.queue", "10000", Value::Number,
        "The maximum number of events that wait for `after` functions, from 1 to 1000000. Further events are dropped and \
         counted.",
        |c, v| set(&mut c.scripting.queue, number(v, 1..=MAX_COUNT)),
    ),
    // Webhooks
    Setting::new(
        "webhook.urls", "", Value::List("WEBHOOK"),
        "The webhooks that receive an HTTP POST when a message is stored or deleted. An entry is a URL, optionally followed \
         by blanks and filters: `https://ci.example.org/hook events=stored mailboxes=ci-*|qa`. The events are stored and \
         deleted; `*` and `?` are wildcards in mailbox names. Write a comma in a URL as %2C. This setting is secret because \
         such URLs often contain a token.",
        |c, v| set(&mut c.webhooks.targets, webhook::parse_targets(v)),
    ).secret(),
    Setting::new(
        "webhook.secret", "", Value::Text("KEY"),
        "The key that signs requests to webhooks with HMAC-SHA256: any text, or whsec_ and base64. Without it, requests are \
         not signed. Prefer the environment variable or the file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.webhooks.secret, webhook::parse_key(v)),
    ).secret(),
    Setting::new(
        "webhook.private", "false", Value::Bool,
        "Allows webhooks at loopback, private and link-local addresses, that is, on this machine and in its local network.",
        |c, v| set(&mut c.webhooks.private_addresses, parse_boolean(v)),
    ),
    Setting::new(
        "webhook.timeout", "10s", Value::Duration,
        "The time limit for the response of a webhook, from 100ms to 10m. After it, the delivery has failed and is retried \
         later.",
        |c, v| set(&mut c.webhooks.timeout, duration_between(v, "100ms", "10m")),
    ),
    Setting::new(
        "webhook.giveup", "24h", Value::Duration,
        "How long the delivery of an event to a webhook is retried, at growing intervals, from 1s to 720h.",
        |c, v| set(&mut c.webhooks.give_up_after, duration_between(v, "1s", "720h")),
    ),
    Setting::new(
        "webhook.queue", "10000", Value::Number,
        "The maximum number of events that wait for each webhook, from 1 to 1000000. Further events are dropped and counted. \
         With a data directory, waiting events survive a restart.",
        |c, v| set(&mut c.webhooks.max_queued, number(v, 1..=MAX_COUNT)),
    ),
    // Relay
    Setting::new(
        "relay.targets", "", Value::List("TARGET"),
        "The SMTP servers that stored messages can be sent to. An entry is a name, a URL and options, separated by blanks: \
         `staging smtp://user:password@smtp.example.org:587 allow=*@example.org|qa@x.org`. The URL begins with smtp:// \
         (default port 25) or smtps:// (TLS from the first byte, default port 465). The options are: \
         `allow=PATTERN|...`, the recipients that messages may be sent to (without it, nothing is sent); \
         `block=PATTERN|...`, exceptions; \
         `starttls=required`, `optional` or `never` (default: required); \
         `verify=false`, to accept any certificate; `ca=FILE`, a PEM file with the accepted authorities; \
         `auth=plain`, `login`, `cram-md5` or `xoauth2`; `user=NAME`; `passwordfile=FILE`; \
         `unencryptedlogin=true`, to log in without TLS; `timeout=30s` (1s to 10m); `connections=4` (1 to 64); \
         `returnpath=ADDRESS`, to replace the sender of the envelope; `from=ADDRESS`, to replace the address in From. \
         In patterns, `*` and `?` are wildcards; a pattern between slashes is a regular expression. In user, password and \
         values of options, %XX is decoded: write a comma as %2C, a blank as %20, | as %7C and % as %25. Prefer the \
         environment variable or the file: command-line flags are visible to all users of the machine.",
        |c, v| set(&mut c.relay.targets, relay::parse_targets(v)),
    ).secret(),
    Setting::new(
        "relay.forward", "", Value::List("RULE"),
        "Rules that send new messages to a target. An entry is the name of a target and conditions, all of which must \
         match: `staging mailboxes=qa-*|ci tags=error search=\"subject:error from:ci\" to=qa@example.org`. The name alone \
         forwards all messages. `mailboxes=` and `recipients=` have patterns, `tags=` has tags, separated by |; \
         `search=` has an expression of the search. A message is sent to its recipients, or with `recipients=` to those \
         that match, or to the addresses after `to=`. Only recipients that the target allows get it. A value with blanks is \
         written in double quotes; %XX is decoded as in relay.targets. Imported messages are not forwarded.",
        |c, v| set(&mut c.relay.rules, relay::parse_rules(v)),
    ),
    Setting::new(
        "relay.private", "false", Value::Bool,
        "Allows targets at loopback, private and link-local addresses, that is, on this machine and in its local network.",
        |c, v| set(&mut c.relay.allow_private_addresses, parse_boolean(v)),
    ),
    Setting::new(
        "relay.giveup", "24h", Value::Duration,
        "How long sending a message to a target is retried, at growing intervals, from 1m to 720h.",
        |c, v| set(&mut c.relay.give_up_after, duration_between(v, "1m", "720h")),
    ),
    Setting::new(
        "relay.queue", "10000", Value::Number,
        "The maximum number of messages that wait to be sent, from 1 to 1000000. Above it, releases are refused, and \
         forwarding waits. With a data directory or a database, waiting messages survive a restart.",
        |c, v| set(&mut c.relay.max_queued, number(v, 1..=MAX_COUNT)),
    ),
    // Projects
    Setting::new(
        "projects.rules", "", Value::Text("RULES"),
        "Rules that choose the project of a message, separated by semicolons. A rule is the name of a project and conditions. \
         The first rule whose conditions are all met decides; without one, the message is in no project. The conditions are \
         login, key, listener, client, helo, sender, recipient, domain and header; key is the API key of a request to the API \
         of a provider. A value is a pattern with the wildcards `*` and `?`, or several separated by `|`. That of client is a \
         network, and that of header is NAME:PATTERN. In a name, {login} stands for the text of a field, and {1} for what the \
         first wildcard matches. At most 100 rules with 10 conditions each. Example: `shop login=shop-*; \
         acme domain=*.acme.test; srs header=X-Application:srs; {1} login=*-ci`.",
        |c, v| set(&mut c.projects, parse_project_rules(v)),
    ),
    // Tags
    Setting::new(
        "tags.header", "true", Value::Bool,
        "Gives a message the tags in its header field X-Tags, which are separated by commas.",
        |c, v| set(&mut c.tagging.header, parse_boolean(v)),
    ),
    Setting::new(
        "tags.plusaddresses", "true", Value::Bool,
        "Gives a message the tags in its recipient addresses after a plus sign: the tag of james+run7@x.org is run7.",
        |c, v| set(&mut c.tagging.plus_addresses, parse_boolean(v)),
    ),
    Setting::new(
        "tags.plusheader", "false", Value::Bool,
        "Gives a message the tags in the addresses of its header fields From, To, Cc and Bcc after a plus sign.",
        |c, v| set(&mut c.tagging.plus_header, parse_boolean(v)),
    ),
    Setting::new(
        "tags.rules", "", Value::List("RULE"),
        "Rules of the form TAG=FIELD:PATTERN, which give a tag to every message that matches. FIELD is from, to, subject or \
         mailbox. PATTERN is compared with the whole address, subject or name; `*` and `?` are wildcards. Example: \
         billing=from:*@billing.example.org,errors=subject:*error*.",
        |c, v| set(&mut c.tagging.rules, tag_rules(v)),
    ),
    // Chaos
    Setting::new(
        "chaos.enabled", "false", Value::Bool,
        "Lets PUT /api/v2/chaos set simulated failures of SMTP and LMTP: senders, recipients and logins are refused at random, \
         so that the errors of a client can be tested.",
        |c, v| set(&mut c.chaos.enabled, parse_boolean(v)),
    ),
    Setting::new(
        "chaos.triggers", "", Value::List("TRIGGER"),
        "The simulated failures from the start on, each of the form NAME:CODE:PROBABILITY. NAME is Sender, Recipient or \
         Authentication, CODE is the reply code (400 to 599), and PROBABILITY is a percentage. A trigger, with any probability, \
         also sets chaos.enabled. Example: Sender:451:5,Authentication:535:100.",
        |c, v| set(&mut c.chaos.triggers, chaos_triggers(v)),
    ),
    // Search
    Setting::new(
        "search.enabled", "true", Value::Bool,
        "Maintains a search index of all messages. With a data directory, the index is the file search.db there, filled at \
         low priority. Otherwise it is in memory and is built at the first search. If false, an existing index file is \
         deleted.",
        |c, v| set(&mut c.search.enabled, parse_boolean(v)),
    ),
];

impl Default for Config {
    /// Returns the defaults of the table, parsed like values given by a user.
    fn default() -> Self {
        let mut config = Self::empty();
        for setting in SETTINGS {
            (setting.apply)(&mut config, setting.default)
                .unwrap_or_else(|error| panic!("default of {}: {error}", setting.key));
        }
        config
    }
}

/// Returns the setting with this key. In a constant, a misspelled key does not compile.
pub(super) const fn row(key: &str) -> &'static Setting {
    let mut index = 0;
    while index < SETTINGS.len() {
        if bytes_equal(SETTINGS[index].key.as_bytes(), key.as_bytes()) {
            return &SETTINGS[index];
        }
        index += 1;
    }
    panic!("no such setting")
}

/// `==`, which constants cannot use yet.
const fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// Finds a setting by its key.
pub(super) fn find_setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

fn set<T>(target: &mut T, parsed: Result<T, String>) -> Result<(), String> {
    *target = parsed?;
    Ok(())
}

fn log_output(text: &str) -> Result<LogOutput, String> {
    Ok(match text {
        "stderr" => LogOutput::Stderr,
        "stdout" => LogOutput::Stdout,
        path => {
            LogOutput::File(required_path(path, "stderr, stdout or the path of a file, such as /var/log/restante.log")?)
        }
    })
}

/// Parses a path, which must not be empty. `accepted` describes the accepted values for the error.
fn required_path(text: &str, accepted: &str) -> Result<PathBuf, String> {
    optional_path(text).ok_or_else(|| format!("must be {accepted}"))
}

fn private_key_file(text: &str) -> Result<PathBuf, String> {
    required_path(text, "the path of a PEM file, such as cert.key")
}

fn certificate(tls: &mut Tls, text: &str) -> Result<(), String> {
    tls.cert = match text {
        "self-signed" => CertSource::SelfSigned,
        path => CertSource::File(required_path(path, "self-signed or the path of a PEM file, such as cert.crt")?),
    };
    Ok(())
}

fn optional_commands(text: &str) -> Result<Vec<OptionalCommand>, String> {
    let command = |item: &String| match item.to_ascii_uppercase().as_str() {
        "HELP" => Ok(OptionalCommand::Help),
        "VRFY" => Ok(OptionalCommand::Vrfy),
        _ => Err(format!("{item:?} cannot be disabled: must be HELP or VRFY")),
    };
    collect_all(split_list(text).iter().map(command))
}

/// Parses a list of values; `*` allows any.
fn allow_list(text: &str, parse: fn(&str) -> Result<String, String>) -> Result<AllowList, String> {
    let items = split_list(text);
    if items.iter().any(|item| item == "*") {
        return Ok(AllowList::Any);
    }
    collect_all(items.iter().map(|item| parse(item))).map(AllowList::Only)
}

fn allowed_origins(text: &str) -> Result<Option<AllowList>, String> {
    if split_list(text).is_empty() { Ok(None) } else { allow_list(text, origin).map(Some) }
}

fn allowed_host(text: &str) -> Result<String, String> {
    host_name(text)
        .map_err(|_| format!("{text:?} is neither a host name such as mail.example.org, without a port, nor *"))
}

fn storage_params(config: &mut Config, text: &str) -> Result<(), String> {
    let (mut max_bytes, mut path) = (0, None);
    collect_all(split_params(text).map(|pair| {
        let (key, value) = pair?;
        match key.as_str() {
            "maxkb" => set(&mut max_bytes, kibibytes(&value, 0..=MAX_KIB).map_err(|e| format!("maxkb {e}"))),
            "path" => set(&mut path, Ok(optional_path(&value))),
            _ => Err(format!("unknown parameter {key:?}: must be maxkb:NUMBER or path:DIR")),
        }
    }))?;
    config.storage.max_bytes = max_bytes;
    config.storage.params_path = path;
    Ok(())
}

/// Parses a signing key; empty means none. The error does not contain it.
fn session_key(text: &str) -> Result<Option<Vec<u8>>, String> {
    match text.len() {
        0 => Ok(None),
        1..MIN_KEY_BYTES => {
            Err(format!("must be a key of at least {MIN_KEY_BYTES} bytes, such as the output of openssl rand -hex 32"))
        }
        _ => Ok(Some(text.into())),
    }
}

fn oidc_scopes(text: &str) -> Result<String, String> {
    let has_openid = text.split_whitespace().any(|scope| scope == "openid");
    if has_openid { Ok(text.to_owned()) } else { Err("must contain openid, such as openid profile email".to_owned()) }
}

/// Parses the name of a header field (RFC 9110 section 5.1) and converts it to lower case; empty means none.
fn header_name(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = text.len() <= MAX_HEADER_BYTES && text.bytes().all(allowed);
    if is_name {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("must be a header field such as X-Forwarded-User".to_owned())
    }
}

fn database_url(text: &str) -> Result<Option<Url>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}
