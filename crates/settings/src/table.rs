//! The table of settings. It is long because it is a table: one row per setting, in the order of the reference page.

use std::path::PathBuf;

use restante_logging::{Level, Output as LogOutput};
use restante_proto::Secret;
use restante_store::disk::Durability;
use restante_store::postgres::Url;

use super::credential::Credential;
use super::setting::{Setting, Value};

use super::types::{CertSource, Config, Hosts, Origins, StoreKind, Tls};
use super::values::{
    base_path, boolean, collect_all, domain_patterns, duration_between, duration_in_seconds, host_name, kibibytes,
    number, optional_duration, optional_limit, optional_path, origin, parsed_list, public_url, split_list,
    split_params,
};
use super::webhook;

/// 4 TiB; keeps arithmetic on bytes far from overflow.
const MAX_KIB: u64 = 1 << 32;
/// With less, every read goes to the disk.
const MIN_CACHE_KIB: u64 = 1024;
/// With less, a script of some size cannot even be loaded.
const MIN_LUA_KIB: u64 = 1024;
/// Every call that is under way has a thread.
const MAX_LUA_CALLS: u64 = 4096;
/// Two for changes, one to follow those of other servers, one for transcripts, and one that is left for questions.
const MIN_CONNECTIONS: u64 = 5;
/// More than a database of any size lets in.
const MAX_CONNECTIONS: u64 = 1000;
/// The upper bound of counts that cost memory only when they are reached.
const MAX_COUNT: u64 = 1_000_000;
/// Whoever guesses the key of logins is anybody.
const MIN_KEY_BYTES: usize = 32;
/// One day, in seconds.
const DAY_SECONDS: u64 = 86_400;

const ADDRESSES: Value = Value::List("ADDRESS");
const DOMAINS: Value = Value::List("DOMAIN");
const NETWORKS: Value = Value::List("NETWORK");
const FILE: Value = Value::Text("FILE");

/// Every setting there is.
#[rustfmt::skip] // A row starts with key, default and kind on one line, so that the eye can run down the table.
pub const SETTINGS: &[Setting] = &[
    // General
    Setting::new(
        "loglevel", "info", Value::Text("LEVEL"),
        "The least important level that is logged: debug, info, warn or error.",
        |c, v| set(&mut c.log.level, level(v)),
    ),
    Setting::new(
        "logjson", "false", Value::Bool,
        "Logs one JSON object per line instead of text.",
        |c, v| set(&mut c.log.json, boolean(v)),
    ),
    Setting::new(
        "logfile", "stderr", FILE,
        "Where the log goes: stderr, stdout or a file. A file is appended to, and opened again on SIGHUP.",
        |c, v| set(&mut c.log.output, log_output(v)),
    ),
    Setting::new(
        "netdebug", "false", Value::Bool,
        "Dumps the SMTP, LMTP and POP3 dialogue into the log. Passwords are left out.",
        |c, v| set(&mut c.log.netdebug, boolean(v)),
    ),
    Setting::new(
        "pidfile", "", FILE,
        "Writes the process id into this file while the server runs.",
        |c, v| set(&mut c.pidfile, Ok(optional_path(v))),
    ),
    Setting::new(
        "mailboxnaming", "local", Value::Text("NAMING"),
        "How a recipient address becomes a mailbox name: local (james for James+Spam@x.org), full (james@x.org) or \
         domain (x.org).",
        |c, v| set(&mut c.mailbox_naming, v.parse().map_err(|allowed| format!("must be {allowed}"))),
    ),
    // SMTP
    Setting::new(
        "smtp.addr", "localhost:2500", ADDRESSES,
        "Where SMTP is served, with STARTTLS when TLS is on. Empty means nowhere.",
        |c, v| set(&mut c.smtp.addr, parsed_list(v)),
    ),
    Setting::new(
        "smtp.tlsaddr", "", ADDRESSES,
        "Where SMTP is served with TLS from the first byte. Needs smtp.tlsenabled.",
        |c, v| set(&mut c.smtp.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "smtp.domain", "localhost", Value::Text("DOMAIN"),
        "The name the server greets with and writes into Received lines. A machine without a usable name is localhost.",
        |c, v| set(&mut c.smtp.domain, host_name(v)),
    ).default_to_host_name(),
    Setting::new(
        "smtp.maxrecipients", "200", Value::Number,
        "The most recipients of one message. Further ones are refused for now, with 452.",
        |c, v| set(&mut c.smtp.max_recipients, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxmessagebytes", "10240000", Value::Number,
        "The most bytes of one message. A larger one is refused with 552.",
        |c, v| set(&mut c.smtp.max_message_bytes, number(v, 1..=1 << 31)),
    ),
    Setting::new(
        "smtp.timeout", "300s", Value::Duration,
        "How long a client may stay silent before its connection is closed.",
        |c, v| set(&mut c.smtp.timeout, duration_in_seconds(v, 1..=DAY_SECONDS)),
    ),
    Setting::new(
        "smtp.defaultaccept", "true", Value::Bool,
        "Accepts mail for every domain except smtp.rejectdomains; when false, only for smtp.acceptdomains.",
        |c, v| set(&mut c.smtp.policy.default_accept, boolean(v)),
    ),
    Setting::new(
        "smtp.acceptdomains", "", DOMAINS,
        "Recipient domains to accept when smtp.defaultaccept is false. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.accept_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.rejectdomains", "", DOMAINS,
        "Recipient domains to refuse when smtp.defaultaccept is true. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.reject_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.rejectorigindomains", "", DOMAINS,
        "Sender domains to refuse. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.reject_origin_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.defaultstore", "true", Value::Bool,
        "Stores accepted mail for every domain except smtp.discarddomains; when false, only for smtp.storedomains.",
        |c, v| set(&mut c.smtp.policy.default_store, boolean(v)),
    ),
    Setting::new(
        "smtp.storedomains", "", DOMAINS,
        "Recipient domains to store when smtp.defaultstore is false. `*` and `?` are wildcards.",
        |c, v| set(&mut c.smtp.policy.store_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.discarddomains", "", DOMAINS,
        "Recipient domains whose mail is accepted and thrown away when smtp.defaultstore is true. `*` and `?` are \
         wildcards.",
        |c, v| set(&mut c.smtp.policy.discard_domains, domain_patterns(v)),
    ),
    Setting::new(
        "smtp.tlsenabled", "false", Value::Bool,
        "Offers STARTTLS.",
        |c, v| set(&mut c.smtp.tls.enabled, boolean(v)),
    ),
    Setting::new(
        "smtp.tlscert", "cert.crt", FILE,
        "The PEM file of the certificate chain, or the word self-signed for a certificate made at start, for \
         development. Read again on SIGHUP.",
        |c, v| certificate(&mut c.smtp.tls, v),
    ),
    Setting::new(
        "smtp.tlsprivkey", "cert.key", FILE,
        "The PEM file of the certificate's private key. Not needed for a self-signed certificate.",
        |c, v| set(&mut c.smtp.tls.key, required_path(v)),
    ),
    Setting::new(
        "smtp.forcetls", "false", Value::Bool,
        "Makes smtp.addr itself speak TLS from the first byte. Needs smtp.tlsenabled.",
        |c, v| set(&mut c.smtp.tls.force, boolean(v)),
    ),
    Setting::new(
        "smtp.credentials", "", Value::List("USER:PASSWORD"),
        "Who may authenticate, beside auth.users and auth.tokens. With none of these, AUTH accepts every name and password. \
         Everybody on the machine can read flags, so prefer the variable or the file.",
        |c, v| set(&mut c.smtp.credentials, Credential::parse_list(&split_list(v))),
    ).secret(),
    Setting::new(
        "smtp.requireauth", "false", Value::Bool,
        "Takes mail only from clients that have authenticated. Needs smtp.credentials, auth.users or auth.tokens.",
        |c, v| set(&mut c.smtp.require_auth, boolean(v)),
    ),
    Setting::new(
        "smtp.strict", "false", Value::Bool,
        "Refuses unknown parameters of MAIL and RCPT with 555, and arguments of RSET and QUIT and a second word after EHLO with \
         501. By default they are ignored.",
        |c, v| set(&mut c.smtp.strict, boolean(v)),
    ),
    Setting::new(
        "smtp.maxconnections", "1000", Value::Number,
        "The most SMTP and LMTP connections at the same time.",
        |c, v| set(&mut c.smtp.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxconnectionsperip", "0", Value::Number,
        "The most SMTP and LMTP connections at the same time from one client, that is from one IPv4 address or one IPv6 network \
         of 64 bits; 0 means no limit.",
        |c, v| set(&mut c.smtp.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxbadcommands", "20", Value::Number,
        "How many bad commands a session may send before it is closed with 421.",
        |c, v| set(&mut c.smtp.max_bad_commands, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "smtp.maxinflightkb", "262144", Value::Number,
        "The most KiB of messages that are being received at the same time; beyond it the server stops reading until \
         others are done. Raised to the size of one message where it is less.",
        |c, v| set(&mut c.smtp.max_inflight_bytes, kibibytes(v, 1..=MAX_KIB)),
    ),
    Setting::new(
        "smtp.transcriptkb", "8192", Value::Number,
        "How many KiB of transcripts of SMTP and LMTP sessions are kept: what was said, without passwords and without \
         mail. The oldest go first, and those beyond the retention period; 0 means that nothing is recorded.",
        |c, v| set(&mut c.smtp.transcript_bytes, kibibytes(v, 0..=MAX_KIB)),
    ),
    Setting::new(
        "smtp.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose SMTP and LMTP connections begin with a PROXY protocol header, version 1 or \
         2, which names the client. Connections from elsewhere must not have one.",
        |c, v| set(&mut c.smtp.proxies, parsed_list(v)),
    ),
    // LMTP
    Setting::new(
        "lmtp.addr", "", ADDRESSES,
        "Where LMTP is served. Name, limits, policy and TLS are those of SMTP.",
        |c, v| set(&mut c.lmtp.addr, parsed_list(v)),
    ),
    // POP3
    Setting::new(
        "pop3.addr", "localhost:1100", ADDRESSES,
        "Where POP3 is served, with STLS when TLS is on. Empty means nowhere.",
        |c, v| set(&mut c.pop3.addr, parsed_list(v)),
    ),
    Setting::new(
        "pop3.tlsaddr", "", ADDRESSES,
        "Where POP3 is served with TLS from the first byte. Needs pop3.tlsenabled.",
        |c, v| set(&mut c.pop3.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "pop3.domain", "localhost", Value::Text("DOMAIN"),
        "The name the POP3 server greets with. A machine without a usable name is localhost.",
        |c, v| set(&mut c.pop3.domain, host_name(v)),
    ).default_to_host_name(),
    Setting::new(
        "pop3.timeout", "600s", Value::Duration,
        "How long a client may stay silent before its connection is closed.",
        |c, v| set(&mut c.pop3.timeout, duration_in_seconds(v, 1..=DAY_SECONDS)),
    ),
    Setting::new(
        "pop3.tlsenabled", "false", Value::Bool,
        "Offers STLS.",
        |c, v| set(&mut c.pop3.tls.enabled, boolean(v)),
    ),
    Setting::new(
        "pop3.tlscert", "cert.crt", FILE,
        "The PEM file of the certificate chain, or the word self-signed for a certificate made at start, for \
         development. Read again on SIGHUP.",
        |c, v| certificate(&mut c.pop3.tls, v),
    ),
    Setting::new(
        "pop3.tlsprivkey", "cert.key", FILE,
        "The PEM file of the certificate's private key. Not needed for a self-signed certificate.",
        |c, v| set(&mut c.pop3.tls.key, required_path(v)),
    ),
    Setting::new(
        "pop3.forcetls", "false", Value::Bool,
        "Makes pop3.addr itself speak TLS from the first byte. Needs pop3.tlsenabled.",
        |c, v| set(&mut c.pop3.tls.force, boolean(v)),
    ),
    Setting::new(
        "pop3.credentials", "", Value::List("USER:PASSWORD"),
        "The passwords that open mailboxes; the user is the mailbox or an address of it, and `*` stands for all of them. \
         With none, nor auth.users or auth.tokens, every password opens every mailbox. Everybody on the machine can read \
         flags, so prefer the variable or the file.",
        |c, v| set(&mut c.pop3.credentials, Credential::parse_list(&split_list(v))),
    ).secret(),
    Setting::new(
        "pop3.maxconnections", "1000", Value::Number,
        "The most POP3 connections at the same time.",
        |c, v| set(&mut c.pop3.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "pop3.maxconnectionsperip", "0", Value::Number,
        "The most POP3 connections at the same time from one client, that is from one IPv4 address or one IPv6 network \
         of 64 bits; 0 means no limit.",
        |c, v| set(&mut c.pop3.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "pop3.maxbadcommands", "20", Value::Number,
        "How many bad commands and failed logins a session may send before it is closed.",
        |c, v| set(&mut c.pop3.max_bad_commands, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "pop3.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose POP3 connections begin with a PROXY protocol header, version 1 or 2, which \
         names the client. Connections from elsewhere must not have one.",
        |c, v| set(&mut c.pop3.proxies, parsed_list(v)),
    ),
    // Web
    Setting::new(
        "web.addr", "localhost:9000", ADDRESSES,
        "Where HTTP is served, or HTTPS when web.tlsenabled says so. Empty means nowhere.",
        |c, v| set(&mut c.web.addr, parsed_list(v)),
    ),
    Setting::new(
        "web.tlsaddr", "", ADDRESSES,
        "Where HTTPS is served beside web.addr. Needs a certificate, but not web.tlsenabled.",
        |c, v| set(&mut c.web.tls_addr, parsed_list(v)),
    ),
    Setting::new(
        "web.tlsenabled", "false", Value::Bool,
        "Makes web.addr itself speak HTTPS.",
        |c, v| set(&mut c.web.tls.force, boolean(v)),
    ),
    Setting::new(
        "web.tlscert", "cert.crt", FILE,
        "The PEM file of the certificate chain, or the word self-signed for a certificate made at start, for \
         development. Read again on SIGHUP.",
        |c, v| certificate(&mut c.web.tls, v),
    ),
    Setting::new(
        "web.tlsprivkey", "cert.key", FILE,
        "The PEM file of the certificate's private key. Not needed for a self-signed certificate.",
        |c, v| set(&mut c.web.tls.key, required_path(v)),
    ),
    Setting::new(
        "web.basepath", "", Value::Text("PATH"),
        "A path that is put before all others, such as /mail, for a server behind a reverse proxy.",
        |c, v| set(&mut c.web.base_path, base_path(v)),
    ),
    Setting::new(
        "web.publicurl", "", Value::Text("URL"),
        "The URL under which clients see the server, used for links in answers. Without it links follow the request.",
        |c, v| set(&mut c.web.public_url, public_url(v)),
    ),
    Setting::new(
        "web.hosts", "", Value::List("HOST"),
        "Public host names that requests may be addressed to. Always accepted: IP addresses, names without a dot, names under \
         .localhost, .local, .internal and .svc, the name of this machine, and the host of web.publicurl. Requests for other \
         names are refused with 421, because a web page can point its own name at this server (DNS rebinding). `*` accepts \
         every name and switches this protection off.",
        |c, v| set(&mut c.web.hosts, hosts(v)),
    ),
    Setting::new(
        "web.corsorigins", "", Value::List("ORIGIN"),
        "Origins whose web pages may use the REST API and the live feeds, such as https://app.example:8443. `*` means every \
         page that a browser which can reach the server has open. None means only our own pages.",
        |c, v| set(&mut c.web.cors, origins(v)),
    ),
    Setting::new(
        "web.trustedproxies", "", NETWORKS,
        "Addresses or networks of proxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host headers are \
         believed.",
        |c, v| set(&mut c.web.trusted_proxies, parsed_list(v)),
    ),
    Setting::new(
        "web.maxconnections", "4000", Value::Number,
        "The most HTTP connections at the same time, those of the live monitor among them. One that is idle takes some \
         16 KiB of memory, and a file descriptor.",
        |c, v| set(&mut c.web.max_connections, number(v, 1..=MAX_COUNT)),
    ),
    Setting::new(
        "web.maxconnectionsperip", "0", Value::Number,
        "The most HTTP connections at the same time from one client, that is from one IPv4 address or one IPv6 network of 64 \
         bits; 0 means no limit. Connections of web.trustedproxies are not counted; requests of clients behind them are.",
        |c, v| set(&mut c.web.max_connections_per_ip, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "web.proxyprotocol", "", NETWORKS,
        "Addresses or networks of proxies whose HTTP connections begin with a PROXY protocol header, version 1 or 2, which \
         names the client. Connections from elsewhere must not have one.",
        |c, v| set(&mut c.web.proxies, parsed_list(v)),
    ),
    Setting::new(
        "web.cachekb", "16384", Value::Number,
        "The most KiB of rendered answers to remember; 0 turns the cache off.",
        |c, v| set(&mut c.web.cache_bytes, kibibytes(v, 0..=MAX_KIB)),
    ),
    Setting::new(
        "web.greetingfile", "", FILE,
        "A file of HTML to show on the home page instead of the built-in greeting. It is read anew each time, 1 MiB of it at \
         most; as long as it cannot be read, the built-in greeting is shown.",
        |c, v| set(&mut c.web.greeting_file, Ok(optional_path(v))),
    ),
    Setting::new(
        "web.monitorvisible", "true", Value::Bool,
        "Offers the live monitor and the list of mailboxes in the web interface. When false they are hidden there, not \
         protected: the live feeds and the REST API stay as they are.",
        |c, v| set(&mut c.web.monitor_visible, boolean(v)),
    ),
    Setting::new(
        "web.maxmonitors", "2000", Value::Number,
        "The most readers of the live monitor at the same time; 0 means no limit but web.maxconnections.",
        |c, v| set(&mut c.web.max_monitors, optional_limit(v, MAX_COUNT)),
    ),
    Setting::new(
        "web.monitorhistory", "30", Value::Number,
        "How many of the last messages a new reader of the live monitor is told of.",
        |c, v| set(&mut c.web.monitor_history, number(v, 0..=10_000)),
    ),
    Setting::new(
        "web.uidir", "", Value::Text("DIR"),
        "The directory of the web interface in Inbucket; here it is part of the program.",
        |_, _| Ok(()),
    ).ignored(),
    Setting::new(
        "web.pprof", "", Value::Text("BOOL"),
        "Go's profiler in Inbucket.",
        |_, _| Ok(()),
    ).ignored(),
    // Access
    Setting::new(
        "auth.users", "", FILE,
        "The users who may do everything: a file of name:hash lines, as htpasswd and restante user write it, with hashes by \
         Argon2 or bcrypt. It is read again when it changes. With users or tokens nobody is let in without.",
        |c, v| set(&mut c.auth.users, Ok(optional_path(v))),
    ),
    Setting::new(
        "auth.tokens", "", FILE,
        "The tokens of programs, as restante token writes them; read again when it changes. Without it, tokens.toml in the data \
         directory counts if it is there when the server starts.",
        |c, v| set(&mut c.auth.tokens, Ok(optional_path(v))),
    ),
    Setting::new(
        "auth.sessiontime", "12h", Value::Duration,
        "How long a login on the web page lasts.",
        |c, v| set(&mut c.auth.session_time, duration_between(v, "1m", "8760h")),
    ),
    Setting::new(
        "auth.secret", "", Value::Text("KEY"),
        "The key that logins on the web page are signed with, of at least 32 bytes; several servers with the same users share \
         one. Without it, logins end with the process. Everybody on the machine can read flags, so prefer the variable or the \
         file.",
        |c, v| set(&mut c.auth.secret, session_key(v)),
    ).secret(),
    // Storage
    Setting::new(
        "storage.type", "memory", Value::Text("TYPE"),
        "The kind of store: memory, which forgets everything when the process ends; file, which keeps mail in a data \
         directory; or postgres, a database that many servers share. A directory in storage.path alone means file, a URL in \
         storage.url alone means postgres.",
        |c, v| set(&mut c.storage.kind, store_kind(v)),
    ),
    Setting::new(
        "storage.params", "", Value::Params,
        "Details of the store. path:/dir is the data directory for storage.type file. maxkb:10240 bounds what the store \
         holds, in KiB: the oldest message goes first; 0 or absent means 1048576 (1 GiB) in memory and no bound elsewhere.",
        storage_params,
    ),
    Setting::new(
        "storage.path", "", Value::Text("DIR"),
        "Keeps mail in this data directory, which is made if need be: storage.type is file then. Where storage.type says \
         something else, the stronger source wins, such as a flag over a variable; both from the same one are an error.",
        |c, v| set(&mut c.storage.path, Ok(optional_path(v))),
    ).alias("data"),
    Setting::new(
        "storage.durability", "full", Value::Text("DURABILITY"),
        "When a message in the data directory is acknowledged. full: when it is on the disk, so that nothing \
         acknowledged is ever lost. relaxed: before that, which is faster; a crash of the process loses nothing, but a \
         power failure or a crash of the machine can lose the last acknowledged messages.",
        |c, v| set(&mut c.storage.durability, durability(v)),
    ),
    Setting::new(
        "storage.cachekb", "16384", Value::Number,
        "KiB of memory for what was last read from the data directory or the database.",
        |c, v| set(&mut c.storage.cache_bytes, kibibytes(v, MIN_CACHE_KIB..=MAX_KIB)),
    ),
    Setting::new(
        "storage.url", "", Value::Text("URL"),
        "Keeps mail in this PostgreSQL database, which other servers may use too: storage.type is postgres then. Such as \
         postgres://user:password@host:5432/database?sslmode=verify-full; several hosts are separated by commas. Where \
         storage.type or storage.path say something else, the stronger source wins; both from the same one are an error. \
         Everybody on the machine can read flags, so prefer the variable or the file.",
        |c, v| set(&mut c.storage.url, database_url(v)),
    ).secret(),
    Setting::new(
        "storage.connections", "10", Value::Number,
        "How many connections to the database of storage.url this server makes at most.",
        |c, v| set(&mut c.storage.connections, number(v, MIN_CONNECTIONS..=MAX_CONNECTIONS)),
    ),
    Setting::new(
        "storage.retentionperiod", "24h", Value::Duration,
        "How long a message is kept; 0 means for ever.",
        |c, v| set(&mut c.storage.retention_period, optional_duration(v, 1..=36_500 * DAY_SECONDS)),
    ),
    Setting::new(
        "storage.mailboxmsgcap", "500", Value::Number,
        "The most messages in one mailbox, the oldest goes first; 0 means no limit.",
        |c, v| set(&mut c.storage.mailbox_msg_cap, optional_limit(v, 1_000_000_000)),
    ),
    Setting::new(
        "storage.retentionsleep", "", Value::Duration,
        "The pause between two mailboxes of Inbucket's retention scan; here nothing is scanned.",
        |_, _| Ok(()),
    ).ignored(),
    // Scripting
    Setting::new(
        "lua.path", "restante.lua,inbucket.lua", Value::List("FILE"),
        "The Lua script to run: the first of these files that exists. When none does, or the list is empty, there is no \
         script. Read again on SIGHUP.",
        |c, v| set(&mut c.scripting.paths, Ok(split_list(v).into_iter().map(PathBuf::from).collect())),
    ),
    Setting::new(
        "lua.sandbox", "false", Value::Bool,
        "Keeps the script away from files, programs and the environment: it has neither io nor what is dangerous of os.",
        |c, v| set(&mut c.scripting.sandbox, boolean(v)),
    ),
    Setting::new(
        "lua.timeout", "10s", Value::Duration,
        "How long one call of the script may take. What takes longer is stopped, and the mail goes on as if there were no \
         script.",
        |c, v| set(&mut c.scripting.timeout, duration_between(v, "100ms", "1h")),
    ),
    Setting::new(
        "lua.memorykb", "65536", Value::Number,
        "The most KiB of memory for each state of the script. A call that needs more is stopped like one that takes too \
         long.",
        |c, v| set(&mut c.scripting.memory_bytes, kibibytes(v, MIN_LUA_KIB..=MAX_KIB)),
    ),
    Setting::new(
        "lua.states", "0", Value::Number,
        "How many states of the script are kept ready for `before` functions, and as many for `after` functions, of which no \
         more run at the same time; 0 means one for every two cores, and one for each core for `after` functions.",
        |c, v| set(&mut c.scripting.states, optional_limit(v, 1024)),
    ),
    Setting::new(
        "lua.maxcalls", "256", Value::Number,
        "The most calls of the script's `before` functions at the same time, each in a state of its own; more states than \
         lua.states are made only while calls are slow. Further calls wait, and after lua.timeout the mail goes on as if \
         there were no script. In the worst case these states take about lua.maxcalls times twice lua.memorykb.",
        |c, v| set(&mut c.scripting.max_calls, number(v, 1..=MAX_LUA_CALLS)),
    ),
    Setting::new(
        "lua.queue", "10000", Value::Number,
        "The most events that wait for the script's `after` functions. Further ones are dropped and counted.",
        |c, v| set(&mut c.scripting.queue, number(v, 1..=MAX_COUNT)),
    ),
    // Webhooks
    Setting::new(
        "webhook.urls", "", Value::List("WEBHOOK"),
        "Where mail that was stored or deleted is told of, by an HTTP POST. An entry is a URL, and behind blanks what to tell of, if \
         not everything: `https://ci.example.org/hook events=stored mailboxes=ci-*|qa`. Events are stored and deleted; in names \
         of mailboxes `*` and `?` are wildcards. A comma in a URL is written %2C. Secret because such URLs often hold a token.",
        |c, v| set(&mut c.webhooks.targets, webhook::parse_targets(v)),
    ).secret(),
    Setting::new(
        "webhook.secret", "", Value::Text("KEY"),
        "The key that requests to webhooks are signed with, by HMAC-SHA256: any text, or whsec_ and base64. Without it they \
         are not signed. Everybody on the machine can read flags, so prefer the variable or the file.",
        |c, v| set(&mut c.webhooks.secret, webhook::parse_key(v)),
    ).secret(),
    Setting::new(
        "webhook.private", "false", Value::Bool,
        "Allows webhooks at loopback, private and link-local addresses: those of this machine and of the network around it.",
        |c, v| set(&mut c.webhooks.private_addresses, boolean(v)),
    ),
    Setting::new(
        "webhook.timeout", "10s", Value::Duration,
        "How long a webhook may take to answer. Then it has failed, and is tried again later.",
        |c, v| set(&mut c.webhooks.timeout, duration_between(v, "100ms", "10m")),
    ),
    Setting::new(
        "webhook.giveup", "24h", Value::Duration,
        "How long it is tried to tell a webhook of an event, at growing intervals.",
        |c, v| set(&mut c.webhooks.give_up_after, duration_between(v, "1s", "720h")),
    ),
    Setting::new(
        "webhook.queue", "10000", Value::Number,
        "The most events that wait for each webhook. Further ones are dropped and counted. With a data directory, what waits \
         outlives the server.",
        |c, v| set(&mut c.webhooks.queue, number(v, 1..=MAX_COUNT)),
    ),
    // Search
    Setting::new(
        "search.enabled", "true", Value::Bool,
        "Keeps an index of all mail, so that it can be searched. With a data directory it is the file search.db there, filled while \
         the processors have nothing better to do; without one it is in memory, made at the first search. Without an index, what is \
         left of an earlier one is removed.",
        |c, v| set(&mut c.search.enabled, boolean(v)),
    ),
];

impl Default for Config {
    /// The defaults of the table, parsed as if a user had written them.
    fn default() -> Self {
        let mut config = Self::empty();
        for setting in SETTINGS {
            (setting.apply)(&mut config, setting.default)
                .unwrap_or_else(|error| panic!("default of {}: {error}", setting.key));
        }
        config
    }
}

/// The row of a key that stands in the code. As a constant, a misspelt key does not compile.
pub(super) const fn row(key: &str) -> &'static Setting {
    let mut index = 0;
    while index < SETTINGS.len() {
        if bytes_equal(SETTINGS[index].key.as_bytes(), key.as_bytes()) {
            return &SETTINGS[index];
        }
        index += 1;
    }
    panic!("there is no such setting")
}

/// `==`, which constants cannot use yet.
const fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

/// Finds a row by the key that somebody gave.
pub(super) fn find_setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

fn set<T>(place: &mut T, parsed: Result<T, String>) -> Result<(), String> {
    *place = parsed?;
    Ok(())
}

fn level(text: &str) -> Result<Level, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok(Level::Debug),
        "info" => Ok(Level::Info),
        "warn" => Ok(Level::Warn),
        "error" => Ok(Level::Error),
        _ => Err("must be debug, info, warn or error".to_owned()),
    }
}

fn log_output(text: &str) -> Result<LogOutput, String> {
    Ok(match text {
        "stderr" => LogOutput::Stderr,
        "stdout" => LogOutput::Stdout,
        path => LogOutput::File(required_path(path)?),
    })
}

fn required_path(text: &str) -> Result<PathBuf, String> {
    optional_path(text).ok_or_else(|| "must name a file".to_owned())
}

fn certificate(tls: &mut Tls, text: &str) -> Result<(), String> {
    tls.cert = match text {
        "self-signed" => CertSource::SelfSigned,
        path => CertSource::File(required_path(path)?),
    };
    Ok(())
}

fn hosts(text: &str) -> Result<Hosts, String> {
    let items = split_list(text);
    if items.iter().any(|item| item == "*") {
        return Ok(Hosts::Any);
    }
    let name = |item: &String| host_name(item).map_err(|_| format!("{item:?} is no host name without port, and not *"));
    collect_all(items.iter().map(name)).map(Hosts::Only)
}

fn origins(text: &str) -> Result<Option<Origins>, String> {
    let items = split_list(text);
    if items.is_empty() {
        return Ok(None);
    }
    if items.iter().any(|item| item == "*") {
        return Ok(Some(Origins::Any));
    }
    collect_all(items.iter().map(|item| origin(item))).map(|origins| Some(Origins::Only(origins)))
}

fn store_kind(text: &str) -> Result<StoreKind, String> {
    match text.to_ascii_lowercase().as_str() {
        "memory" => Ok(StoreKind::Memory),
        "file" => Ok(StoreKind::File),
        "postgres" => Ok(StoreKind::Postgres),
        _ => Err("must be memory, file or postgres".to_owned()),
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    match text.to_ascii_lowercase().as_str() {
        "full" => Ok(Durability::Full),
        "relaxed" => Ok(Durability::Relaxed),
        _ => Err("must be full or relaxed".to_owned()),
    }
}

fn storage_params(config: &mut Config, text: &str) -> Result<(), String> {
    let (mut max_bytes, mut path) = (0, None);
    collect_all(split_params(text).map(|pair| {
        let (key, value) = pair?;
        match key.as_str() {
            "maxkb" => set(&mut max_bytes, kibibytes(&value, 0..=MAX_KIB).map_err(|e| format!("maxkb {e}"))),
            "path" => set(&mut path, Ok(optional_path(&value))),
            _ => Err(format!("{key:?} is unknown: there are maxkb:NUMBER and path:DIR")),
        }
    }))?;
    config.storage.max_bytes = max_bytes;
    config.storage.params_path = path;
    Ok(())
}

/// A key that nobody guesses, or none when empty; the error does not show it.
fn session_key(text: &str) -> Result<Option<Secret>, String> {
    match text.len() {
        0 => Ok(None),
        1..MIN_KEY_BYTES => Err(format!("must be a key of at least {MIN_KEY_BYTES} bytes")),
        _ => Ok(Some(Secret::new(text))),
    }
}

fn database_url(text: &str) -> Result<Option<Url>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}
