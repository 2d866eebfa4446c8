//! The configuration as an operator meets it: command line, environment and file in, a configuration or a text out.

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use restante::config::{
    Certificate, Command, Config, Exit, Hosts, Level, ListenAddr, Loaded, LogOutput, SETTINGS, Status, StoreKind, docs,
    parse,
};
use restante_mail::naming::Naming;

/// What the process would see: arguments, environment, files.
#[derive(Default)]
struct World<'a> {
    args: &'a [&'a str],
    env: &'a [(&'a str, &'a str)],
    files: &'a [(&'a str, &'a str)],
}

impl World<'_> {
    fn parse(&self) -> Command {
        let read_file = |path: &Path| {
            let file = self.files.iter().find(|(name, _)| Path::new(name) == path);
            file.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        let args = ["restante"].iter().chain(self.args).map(OsString::from);
        let env = self.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        parse(args, env, &read_file)
    }

    #[track_caller]
    fn serve(&self) -> Loaded {
        match self.parse() {
            Command::Serve(loaded) => *loaded,
            other => panic!("does not start: {other:?}"),
        }
    }

    #[track_caller]
    fn config(&self) -> Config {
        self.serve().config
    }

    #[track_caller]
    fn exit(&self) -> Exit {
        match self.parse() {
            Command::Exit(exit) => exit,
            other => panic!("starts: {other:?}"),
        }
    }

    /// The text of a start that fails for its configuration.
    #[track_caller]
    fn refused(&self) -> String {
        let exit = self.exit();
        assert_eq!(exit.code, 2, "{}", exit.text);
        exit.text
    }
}

fn flags<'a>(args: &'a [&'a str]) -> World<'a> {
    World { args, ..World::default() }
}

fn env<'a>(env: &'a [(&'a str, &'a str)]) -> World<'a> {
    World { env, ..World::default() }
}

fn file<'a>(files: &'a [(&'a str, &'a str)]) -> World<'a> {
    World { args: &["--config", "r.toml"], files, ..World::default() }
}

#[test]
fn defaults() {
    let config = World::default().config();
    assert_eq!(config.log.level, Level::Info);
    assert_eq!(config.log.output, LogOutput::Stderr);
    assert_eq!(config.mailbox_naming, Naming::Local);
    assert_eq!(config.smtp.addr, [ListenAddr::Localhost(2500)]);
    assert_eq!(config.smtp.tls_addr, []);
    assert_eq!(config.smtp.max_recipients, 200);
    assert_eq!(config.smtp.max_message_bytes, 10_240_000);
    assert_eq!(config.smtp.timeout, Duration::from_mins(5));
    assert!(config.smtp.policy.default_accept && config.smtp.policy.default_store);
    assert_eq!(config.smtp.tls.certificate(), None);
    assert_eq!(config.smtp.max_connections_per_ip, None);
    assert_eq!(config.smtp.max_inflight_bytes, 256 << 20);
    assert_eq!(config.web.addr, [ListenAddr::Localhost(9000)]);
    assert_eq!(config.web.hosts, Hosts::Only(Vec::new()));
    assert_eq!(config.storage.max_bytes, 1 << 30);
    assert_eq!(config.storage.retention_period, Some(Duration::from_hours(24)));
    assert_eq!(config.storage.mailbox_msg_cap, Some(500));
    assert!(World::default().serve().warnings.is_empty());
}

#[test]
fn flag_wins_over_variable_over_file_over_default() {
    let mut world = World { files: &[("r.toml", "[smtp]\nmaxrecipients = 3")], ..World::default() };
    assert_eq!(world.config().smtp.max_recipients, 200);
    world.args = &["--config", "r.toml"];
    assert_eq!(world.config().smtp.max_recipients, 3);
    world.args = &[];
    world.env = &[("RESTANTE_CONFIG", "r.toml")];
    assert_eq!(world.config().smtp.max_recipients, 3);
    world.env = &[("RESTANTE_CONFIG", "r.toml"), ("INBUCKET_SMTP_MAXRECIPIENTS", "4")];
    assert_eq!(world.config().smtp.max_recipients, 4);
    world.env =
        &[("RESTANTE_SMTP_MAXRECIPIENTS", "5"), ("INBUCKET_SMTP_MAXRECIPIENTS", "4"), ("RESTANTE_CONFIG", "r.toml")];
    assert_eq!(world.config().smtp.max_recipients, 5);
    world.args = &["--smtp-maxrecipients", "6"];
    assert_eq!(world.config().smtp.max_recipients, 6);
    world.args = &["--smtp-maxrecipients", "6", "--smtp-maxrecipients=7"];
    assert_eq!(world.config().smtp.max_recipients, 7);
}

#[test]
fn an_environment_written_for_inbucket_works_unchanged() {
    let loaded = env(&[
        ("INBUCKET_LOGLEVEL", "debug"),
        ("INBUCKET_LUA_PATH", "/con/inbucket.lua"),
        ("INBUCKET_MAILBOXNAMING", "full"),
        ("INBUCKET_SMTP_ADDR", "0.0.0.0:2500"),
        ("INBUCKET_SMTP_DOMAIN", "inbucket"),
        ("INBUCKET_SMTP_MAXRECIPIENTS", "50"),
        ("INBUCKET_SMTP_MAXMESSAGEBYTES", "500000000"),
        ("INBUCKET_SMTP_DEFAULTACCEPT", "false"),
        ("INBUCKET_SMTP_ACCEPTDOMAINS", "Example.org, example.com"),
        ("INBUCKET_SMTP_REJECTDOMAINS", ""),
        ("INBUCKET_SMTP_REJECTORIGINDOMAINS", "*.spam.example"),
        ("INBUCKET_SMTP_DEFAULTSTORE", "true"),
        ("INBUCKET_SMTP_STOREDOMAINS", ""),
        ("INBUCKET_SMTP_DISCARDDOMAINS", "bitbucket.local"),
        ("INBUCKET_SMTP_TIMEOUT", "30s"),
        ("INBUCKET_SMTP_TLSENABLED", "false"),
        ("INBUCKET_POP3_ADDR", "0.0.0.0:1100"),
        ("INBUCKET_POP3_DOMAIN", "inbucket"),
        ("INBUCKET_POP3_TIMEOUT", "30s"),
        ("INBUCKET_WEB_ADDR", "0.0.0.0:9000"),
        ("INBUCKET_WEB_BASEPATH", "mail/"),
        ("INBUCKET_WEB_UIDIR", "/opt/inbucket/ui"),
        ("INBUCKET_WEB_GREETINGFILE", "/con/greeting.html"),
        ("INBUCKET_WEB_MONITORVISIBLE", "T"),
        ("INBUCKET_WEB_MONITORHISTORY", "30"),
        ("INBUCKET_WEB_PPROF", "false"),
        ("INBUCKET_WEB_COOKIEAUTHKEY", "of another version"),
        ("INBUCKET_STORAGE_TYPE", "memory"),
        ("INBUCKET_STORAGE_PARAMS", "maxkb:10240"),
        ("INBUCKET_STORAGE_RETENTIONPERIOD", "72h"),
        ("INBUCKET_STORAGE_RETENTIONSLEEP", "50ms"),
        ("INBUCKET_STORAGE_MAILBOXMSGCAP", "0"),
    ])
    .serve();
    let config = loaded.config;
    assert_eq!(config.mailbox_naming, Naming::Full);
    assert_eq!(config.smtp.domain, "inbucket");
    assert_eq!(config.smtp.policy.accept_domains, ["example.org", "example.com"].into_iter().collect());
    assert_eq!(config.smtp.max_inflight_bytes, 500_000_000, "room for at least one message");
    assert_eq!(config.web.base_path, "/mail");
    assert_eq!(config.storage.max_bytes, 10_240 << 10);
    assert_eq!(config.storage.mailbox_msg_cap, None);
    assert_eq!(config.storage.retention_period, Some(Duration::from_hours(72)));

    let warnings = loaded.warnings;
    let about = |text: &str| warnings.iter().filter(|warning| warning.contains(text)).count();
    assert_eq!(about("INBUCKET_WEB_COOKIEAUTHKEY"), 1);
    assert_eq!(about("without effect: web.uidir"), 1);
    assert_eq!(about("storage.retentionsleep"), 1);
    assert_eq!(about("later version only: web.monitorvisible"), 1);
    assert_eq!(about("web.monitorhistory"), 0, "it says what is the default anyway");
    assert_eq!(about("web.greetingfile") + about("lua.path"), 0, "there are no such files");
    assert_eq!(about("without credentials: smtp.addr 0.0.0.0:2500, pop3.addr 0.0.0.0:1100, web.addr 0.0.0.0:9000"), 1);
    assert_eq!(about("less than one message"), 1);
    assert_eq!(warnings.len(), 5, "{warnings:#?}");
}

#[test]
fn lists_of_proxies_that_leave_nobody_out() {
    for (argument, warned) in [
        ("--web-trustedproxies=10.0.0.0/8,::/0", true),
        ("--web-proxyprotocol=0.0.0.0/0", true),
        ("--smtp-proxyprotocol=::ffff:0.0.0.0/96", true),
        ("--pop3-proxyprotocol=0.0.0.0/0", true),
        ("--pop3-proxyprotocol=10.0.0.0/8,fd00::/8", false),
    ] {
        let warnings = flags(&[argument]).serve().warnings;
        assert_eq!(warnings.len(), usize::from(warned), "{argument} {warnings:?}");
        let (name, _) = argument.trim_start_matches('-').split_once('=').unwrap();
        assert!(warnings.iter().all(|warning| warning.ends_with(&name.replace('-', "."))), "{warnings:?}");
    }
}

#[test]
fn both_prefixes_know_every_setting() {
    for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
        for prefix in ["RESTANTE_", "INBUCKET_"] {
            let name = format!("{prefix}{}", setting.variable());
            let loaded = env(&[(&name, setting.default)]).serve();
            let shown = loaded.effective.iter().find(|line| line.setting.key == setting.key).expect("it is listed");
            assert_eq!(shown.origin.to_string(), format!("variable {name}"));
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        }
    }
}

#[test]
fn variables_that_are_none_of_ours() {
    env(&[
        ("PATH", "/bin"),
        // What Kubernetes sets beside a service called `restante`.
        ("RESTANTE_SERVICE_HOST", "10.0.0.1"),
        ("RESTANTE_PORT", "tcp://10.0.0.1:2500"),
        ("RESTANTE_PORT_2500_TCP_ADDR", "10.0.0.1"),
    ])
    .serve();
    let text = env(&[("RESTANTE_SMTP_PORT", "2500"), ("RESTANTE_SMTP_ADRR", "hunter2")]).refused();
    assert!(text.contains("variable RESTANTE_SMTP_PORT: no such setting"), "{text}");
    assert!(text.contains("variable RESTANTE_SMTP_ADRR: no such setting; did you mean RESTANTE_SMTP_ADDR?"), "{text}");
    assert!(!text.contains("hunter2"), "an unknown variable may be a secret: {text}");
}

#[test]
fn files() {
    let text = r#"
        loglevel = "warn"
        smtp.domain = "mail.example.org"
        [web]
        addr = ["localhost:0", "unix:/run/web.sock"]
        trustedproxies = "10.0.0.0/8, ::1"
        [lmtp]
        addr = []
        [storage]
        params = { maxkb = 0x800 }
        retentionperiod = 0
        [smtp]
        defaultaccept = false
        "#;
    // `[smtp]` after `smtp.domain` would define the table twice.
    assert!(file(&[("r.toml", text)]).refused().contains("file r.toml:"));

    let config = file(&[("r.toml", &text.replace("[smtp]", ""))]).refused();
    assert!(config.contains("storage.defaultaccept (file r.toml:13): no such setting"), "{config}");

    let text = text.replace("smtp.domain", "logjson = true\n mailboxnaming = \"domain\" #");
    let config = file(&[("r.toml", &text)]).config();
    assert_eq!(config.log.level, Level::Warn);
    assert!(config.log.json);
    assert_eq!(config.mailbox_naming, Naming::Domain);
    assert_eq!(config.web.addr, [ListenAddr::Localhost(0), ListenAddr::Unix("/run/web.sock".into())]);
    let proxy: IpAddr = "10.1.2.3".parse().expect("an address");
    assert!(config.web.trusted_proxies[0].contains(proxy) && !config.web.trusted_proxies[1].contains(proxy));
    assert_eq!(config.storage.max_bytes, 2048 << 10);
    assert_eq!(config.storage.retention_period, None);
    assert!(!config.smtp.policy.default_accept);
}

#[test]
fn bad_files() {
    let cases = [
        (
            "[smtp]\nmaxrecipient = 1",
            "smtp.maxrecipient (file r.toml:2): no such setting; did you mean smtp.maxrecipients?",
        ),
        ("[smpt]\naddr = ''", "smpt.addr (file r.toml:2): no such setting; did you mean smtp.addr?"),
        ("a.b.c.d = 1", "a.b.c.d (file r.toml:1): no such setting"),
        ("[smtp]\n\nmaxrecipients = [1]", "smtp.maxrecipients (file r.toml:3): takes one value, not an array"),
        ("[smtp.addr]\nx = 1", "smtp.addr (file r.toml:1): takes a value, it is no section"),
        ("smtp.timeout = 1.5", "smtp.timeout (file r.toml:1): must be a string, a whole number or true or false"),
        ("smtp.addr = ['a,b']", "smtp.addr (file r.toml:1): takes no commas inside an entry"),
        ("smtp.maxrecipients = -1", "smtp.maxrecipients = \"-1\" (file r.toml:1): must be a whole number"),
        ("smtp.maxrecipients = 0xffffffffffffffffff", "too large"),
        ("x = \n", "file r.toml:1: "),
    ];
    for (text, expected) in cases {
        let told = file(&[("r.toml", text)]).refused();
        assert!(told.contains(expected), "{text}\n{told}");
    }
    assert!(file(&[]).refused().contains("file r.toml: cannot be read: "));
}

#[test]
fn all_errors_at_once() {
    let text = World {
        args: &["--config", "r.toml", "--smtp-addr", "example.org:25", "--storage-type=file"],
        env: &[
            ("RESTANTE_LOGLEVEL", "trace"),
            ("INBUCKET_SMTP_TIMEOUT", "300"),
            ("RESTANTE_NONSENSE", "1"),
            ("RESTANTE_SMTP_REQUIREAUTH", "true"),
        ],
        files: &[("r.toml", "[web]\nbasepath = '/a b'\ntypo = 1")],
    }
    .refused();
    let expected = [
        "restante: the configuration has 8 errors:",
        "variable RESTANTE_NONSENSE: no such setting",
        "web.typo (file r.toml:3): no such setting",
        "loglevel = \"trace\" (variable RESTANTE_LOGLEVEL): must be debug, info, warn or error",
        "smtp.addr = \"example.org:25\" (flag --smtp-addr): \"example.org:25\" is no address: IP:PORT",
        "smtp.timeout = \"300\" (variable INBUCKET_SMTP_TIMEOUT): must be a length of time such as 300s",
        "smtp.requireauth = \"true\" (variable RESTANTE_SMTP_REQUIREAUTH): needs smtp.credentials",
        "web.basepath = \"/a b\" (file r.toml:2): must be a path",
        "storage.type = \"file\" (flag --storage-type): needs a data directory: --data DIR, storage.path or path:DIR",
    ];
    for line in expected {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn values_that_are_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["--smtp-maxrecipients", "0"], "from 1 to 1000000"),
        (&["--smtp-maxmessagebytes", "10MB"], "a whole number from 1 to 2147483648"),
        (&["--smtp-timeout", "0"], "from 1s to 86400s"),
        (&["--smtp-domain", "a b"], "must be a host name"),
        (&["--smtp-domain", ""], "must be a host name"),
        (&["--mailboxnaming", "none"], "must be one of local, full, domain"),
        (&["--smtp-defaultaccept=maybe"], "must be true or false"),
        (&["--smtp-acceptdomains", "a,b@c"], "\"b@c\" is no domain"),
        (&["--logfile", ""], "must name a file"),
        (&["--web-publicurl", "https://x/?a=b"], "without user, query or fragment"),
        (&["--web-hosts", "example.org:80"], "without port"),
        (&["--web-trustedproxies", "10.0.0.0/33"], "is no network"),
        (&["--web-monitorhistory", "10001"], "from 0 to 10000"),
        (&["--storage-type", "disk"], "must be memory, file or postgres"),
        (&["--storage-type", "postgres"], "(flag --storage-type): this version has no PostgreSQL store"),
        (&["--data", "/proc/version"], "storage.path = \"/proc/version\" (flag --storage-path): cannot be used: "),
        (&["--data", "/proc/version/x"], "storage.path = \"/proc/version/x\" (flag --storage-path): cannot be used: "),
        (&["--storage-durability", "none"], "must be full or relaxed"),
        (&["--storage-cachekb", "0"], "a whole number from 1024 to"),
        (&["--storage-url", "postgres://u:hunter2@h/d"], "storage.url = \"***\" (flag --storage-url): this version"),
        (&["--storage-params", "maxkb:many"], "maxkb must be a whole number"),
        (&["--storage-params", "quota:1"], "\"quota\" is unknown"),
        (&["--storage-retentionperiod", "1ms"], "or 0 for no limit"),
        (&["--smtp-forcetls"], "smtp.forcetls = \"true\" (flag --smtp-forcetls): needs smtp.tlsenabled"),
        (&["--smtp-tlsaddr", ":465"], "needs smtp.tlsenabled"),
        (&["--smtp-tlsenabled"], "smtp.tlscert = \"cert.crt\" (default): cannot be read"),
        (&["--pop3-tlsaddr", ":995"], "needs pop3.tlsenabled"),
        (&["--pop3-tlsenabled"], "pop3.tlscert = \"cert.crt\" (default): cannot be read"),
        (&["--pop3-credentials", "james"], "pop3.credentials = \"***\" (flag --pop3-credentials): entry 1"),
        (&["--pop3-proxyprotocol", "10.0.0.0/x"], "is no network"),
        (&["--pop3-forcetls"], "pop3.forcetls = \"true\" (flag --pop3-forcetls): needs pop3.tlsenabled"),
        (&["--smtp-addr", ":25", "--web-addr", ":80,:25"], ":25 is taken by smtp.addr already"),
        (&["--smtp-addr", "localhost:25,127.0.0.1:25"], "127.0.0.1:25 is taken by smtp.addr already"),
        (&["--logfile", "/"], "logfile = \"/\" (flag --logfile): cannot be written: is a directory"),
        (&["--logfile", "/no/such/dir/x.log"], "logfile = \"/no/such/dir/x.log\" (flag --logfile): cannot be written"),
        (&["--pidfile", "/proc/version/x"], "pidfile = \"/proc/version/x\" (flag --pidfile): cannot be written"),
        (&["--smtp-defaultaccept", "false"], "Write --smtp-defaultaccept=false, with an equals sign."),
        (&["config", "check", "-logjson", "off"], "Write --logjson=off, with an equals sign."),
        (&["--smtp-addr=", "--pop3-addr=", "--web-addr="], "nothing to serve"),
        (&["--pidfile"], "a value is required"),
        (&["--smtp-adr", ":25"], "--smtp-addr"),
        (&["serve"], "unrecognized subcommand"),
    ];
    for (args, expected) in cases {
        let text = flags(args).refused();
        assert!(text.contains(expected), "{args:?}\n{text}");
    }
}

#[test]
fn every_bad_entry_of_a_value_is_told() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--smtp-addr", "a:1,:25,b:2"], &["\"a:1\" is no address", "\"b:2\" is no address"]),
        (&["--smtp-storedomains", "a@b,c,d e"], &["\"a@b\" is no domain", "\"d e\" is no domain"]),
        (&["--web-hosts", "a:1,b/2"], &["\"a:1\" is no host name", "\"b/2\" is no host name"]),
        (&["--web-trustedproxies", "x,::1/129"], &["\"x\" is no network", "\"::1/129\" is no network"]),
        (&["--smtp-credentials", "a,b:c,b:d"], &["entry 1 is no USER:PASSWORD", "entry 3 repeats a user"]),
        (&["--storage-params", "maxkb:big,foo:1,x"], &["maxkb must be", "\"foo\" is unknown", "\"x\" is no KEY:VALUE"]),
    ];
    for (args, expected) in cases {
        let text = flags(args).refused();
        assert!(expected.iter().all(|part| text.contains(part)), "{args:?}\n{text}");
    }
    let text = file(&[("r.toml", "[smtp]\naddr = [1.5, 'a,b']")]).refused();
    assert!(text.contains("must be a string") && text.contains("takes no commas"), "{text}");
    let text = file(&[("r.toml", "[storage]\nparams = { maxkb = 'big', foo = 1 }")]).refused();
    assert!(text.contains("maxkb must be") && text.contains("\"foo\" is unknown"), "{text}");
}

#[test]
fn no_errors_that_only_follow_from_others() {
    let cases: &[&[&str]] = &[
        &["--smtp-addr", "nope", "--web-addr", "localhost:2500"],
        &["--smtp-addr", "nope", "--web-addr="],
        &["--smtp-tlsenabled=maybe", "--smtp-forcetls", "--smtp-tlsaddr=:465"],
        &["--smtp-tlsenabled", "--smtp-tlscert="],
        &["--smtp-tlsenabled", "--smtp-tlsprivkey="],
        &["--smtp-requireauth", "--smtp-credentials", "joe"],
        &["--logfile", "/no/such/dir/x.log", "--logfile="],
        &["--storage-type=disk", "--data=/proc/version"],
        &["--storage-type=file", "--storage-params=path"],
    ];
    for args in cases {
        let text = flags(args).refused();
        assert!(text.starts_with("restante: the configuration has an error:"), "{args:?}\n{text}");
    }
    let world = World { args: &["--config=r.toml", "--smtp-forcetls"], ..file(&[("r.toml", "smtp.tlsenabled = 1.5")]) };
    assert!(world.refused().starts_with("restante: the configuration has an error:"), "{}", world.refused());
}

#[test]
fn values_that_others_win_over_are_checked_too() {
    let world = World {
        args: &["--config=r.toml", "--loglevel=loud", "--loglevel=debug"],
        env: &[("INBUCKET_LOGLEVEL", "trace"), ("RESTANTE_LOGLEVEL", "all")],
        files: &[("r.toml", "loglevel = 'none'")],
    };
    let text = world.refused();
    for value in ["none", "trace", "all", "loud"] {
        assert!(text.contains(&format!("loglevel = \"{value}\" ")), "{value}\n{text}");
    }
    // But only the value that counts has to go together with the others.
    let config = env(&[("INBUCKET_STORAGE_TYPE", "file"), ("RESTANTE_STORAGE_TYPE", "memory")]).config();
    assert_eq!(config.storage.kind, StoreKind::Memory);
}

#[test]
fn checking_leaves_no_files_behind() {
    let dir = std::env::temp_dir().join(format!("restante-config-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a directory of our own");
    let (log, pid, data) = (dir.join("x.log"), dir.join("x.pid"), dir.join("not/yet/there"));
    std::fs::write(&log, "old lines").expect("a log of before");
    let (log_file, pid_file, data_dir) = (log.to_string_lossy(), pid.to_string_lossy(), data.to_string_lossy());
    flags(&["--logfile", &log_file, "--pidfile", &pid_file, "--data", &data_dir]).config();
    assert_eq!(std::fs::read_to_string(&log).expect("the log is there"), "old lines");
    assert!(!pid.exists() && !dir.join("not").exists());
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}

#[test]
fn tls() {
    let make = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (ours, other) = (make(), make());
    let (cert, key, other_key) = (ours.cert.pem(), ours.signing_key.serialize_pem(), other.signing_key.serialize_pem());
    let args = &["--smtp-tlsenabled", "--smtp-tlscert=c.pem", "--smtp-tlsprivkey=k.pem", "--smtp-tlsaddr=:465"];
    let with =
        |cert: &str, key: &str| World { args, files: &[("c.pem", cert), ("k.pem", key)], ..World::default() }.parse();

    let Command::Serve(loaded) = with(&cert, &key) else { panic!("a good certificate is refused") };
    let paths = ("c.pem".into(), "k.pem".into());
    let expected = Certificate::Files { cert: &paths.0, key: &paths.1 };
    assert_eq!(loaded.config.smtp.tls.certificate(), Some(expected));

    let junk = "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n";
    let bad: [(&str, &str, &[&str]); 5] = [
        ("", "", &["smtp.tlscert = \"c.pem\" (flag --smtp-tlscert): holds no", "(flag --smtp-tlsprivkey): holds no"]),
        (&key, &key, &["(flag --smtp-tlscert): holds no certificate"]),
        (&cert, &cert, &["(flag --smtp-tlsprivkey): holds no private key"]),
        (junk, &key, &["(flag --smtp-tlscert): cannot be used with smtp.tlsprivkey: "]),
        (&cert, &other_key, &["(flag --smtp-tlscert): cannot be used with smtp.tlsprivkey: "]),
    ];
    for (cert, key, expected) in bad {
        let Command::Exit(exit) = with(cert, key) else { panic!("starts with\n{cert}{key}") };
        assert_eq!(exit.code, 2);
        assert!(expected.iter().all(|part| exit.text.contains(part)), "{expected:?}\n{}", exit.text);
    }

    let config = flags(&["--smtp-tlsenabled", "--smtp-tlscert=self-signed"]).config();
    assert_eq!(config.smtp.tls.certificate(), Some(Certificate::SelfSigned));

    let loaded = flags(&["--smtp-tlscert=self-signed"]).serve();
    assert!(loaded.warnings[0].contains("TLS is off although"), "{:?}", loaded.warnings);
}

#[test]
fn what_follows_from_other_settings() {
    let config = flags(&["--web-publicurl", "https://Mail.example.org:8443/x/", "--web-hosts", "intern"]).config();
    assert_eq!(config.web.public_url.as_deref(), Some("https://mail.example.org:8443/x"));
    assert!(config.web.hosts.allows("mail.example.org") && config.web.hosts.allows("INTERN"));
    assert!(!config.web.hosts.allows("evil.example"));
    assert!(flags(&["--web-hosts", "a,*"]).config().web.hosts.allows("evil.example"));

    let names: &[(&str, &str)] = &[("/proc/sys/kernel/hostname", "Node7\n")];
    assert_eq!(World { files: names, ..World::default() }.config().smtp.domain, "node7");
    let names: &[(&str, &str)] = &[("/proc/sys/kernel/hostname", "(none)\n"), ("/etc/hostname", "box.lan\n")];
    assert_eq!(World { files: names, ..World::default() }.config().pop3.domain, "box.lan");
    assert_eq!(World::default().config().smtp.domain, "localhost");

    let open = flags(&["--smtp-addr", ":25", "--smtp-credentials", "a:b", "--smtp-requireauth"]).serve();
    assert_eq!(open.warnings, Vec::<String>::new());
}

#[test]
fn secrets_are_masked_everywhere() {
    let good: &[_] = &[("RESTANTE_SMTP_CREDENTIALS", "joe:hunter2,ann:hunter2")];
    let loaded = env(good).serve();
    let first = &loaded.config.smtp.credentials[0];
    assert_eq!((first.user.as_str(), first.password.expose()), ("joe", "hunter2"));
    assert!(!format!("{loaded:?}").contains("hunter2"));
    let check = World { args: &["config", "check"], env: good, ..World::default() }.exit();
    assert!(check.text.contains("smtp.credentials = \"***\""), "{}", check.text);
    assert!(!check.text.contains("hunter2"), "{}", check.text);

    for bad in ["hunter2", "joe:hunter2,:hunter2", "joe:hunter2,joe:hunter2", "joe:"] {
        let text = env(&[("RESTANTE_SMTP_CREDENTIALS", bad)]).refused();
        assert!(text.contains("smtp.credentials = \"***\" (variable RESTANTE_SMTP_CREDENTIALS): entry "), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    for bad in ["[smtp]\ncredentials = 'joe:hunter2", "[smtp]\ncredentials = ['joe:hunter2,']"] {
        assert!(!file(&[("r.toml", bad)]).refused().contains("hunter2"), "{bad}");
    }
}

#[test]
fn config_check() {
    let good = flags(&["config", "check", "--loglevel", "warn", "--smtp-addr", ":0"]).exit();
    assert_eq!(good.code, 0);
    let line = |key: &str| good.text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("loglevel = ").starts_with("loglevel = \"warn\" ") && line("loglevel").ends_with("# flag --loglevel"));
    assert!(line("web.addr = ").ends_with("# default"));
    assert!(good.text.contains("# warning: other machines reach this server"), "{}", good.text);
    for setting in SETTINGS {
        assert!(!line(&format!("{} = ", setting.key)).is_empty(), "{}", setting.key);
    }
    // What it prints is a configuration file that gives the same configuration.
    let again = file(&[("r.toml", &good.text)]).config();
    assert_eq!((again.log.level, &again.smtp.addr[0]), (Level::Warn, &ListenAddr::Any(0)));

    let bad = flags(&["--loglevel", "loud", "config", "check"]).exit();
    assert_eq!(bad.code, 2);
    assert!(bad.text.contains("flag --loglevel"), "{}", bad.text);
}

#[test]
fn long_and_odd_values_are_shown_safely() {
    let many = vec!["a.example"; 40].join(",");
    let check = flags(&["config", "check", "--smtp-acceptdomains", &many]).exit();
    assert!(check.text.contains(&format!("smtp.acceptdomains = \"{many}\"")), "{}", check.text);

    let text = flags(&["--smtp-domain", &"\u{1b}\"".repeat(1000)]).refused();
    assert!(text.len() < 1500 && text.contains("smtp.domain = \"\\u001b\\\"\\u001b"), "{text}");
}

/// Names and what they stand for: variables and their values, files and their texts.
type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Where mail is kept: a data directory, or memory.
fn place(world: &World<'_>) -> Option<String> {
    let storage = world.config().storage;
    assert_eq!(storage.kind, if storage.path.is_some() { StoreKind::File } else { StoreKind::Memory });
    storage.path.map(|path| path.to_string_lossy().into_owned())
}

#[test]
fn where_mail_is_kept() {
    let (a, b) = ("/tmp/restante-a", "/tmp/restante-b");
    let file_says: &[(&str, &str)] = &[("r.toml", "storage.path = '/tmp/restante-a'")];
    let image_says: &[(&str, &str)] =
        &[("r.toml", "storage = { type = 'file', params = { path = '/tmp/restante-a' } }")];
    let cases: &[(&[&str], Pairs<'_>, Pairs<'_>, Option<&str>)] = &[
        (&[], &[], &[], None),
        (&["--storage-type", "memory"], &[], &[], None),
        // A directory alone says it all.
        (&["--data", a], &[], &[], Some(a)),
        (&["--storage-path", a], &[], &[], Some(a)),
        (&[], &[("RESTANTE_STORAGE_PATH", a)], &[], Some(a)),
        (&["--config=r.toml"], &[], file_says, Some(a)),
        (&["--data", a, "--storage-type", "file"], &[], &[], Some(a)),
        // A path in the parameters counts for the type it is a parameter of.
        (&[], &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-a")], &[], Some(a)),
        (&[], &[("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-a")], &[], None),
        (&["--data", a, "--storage-params", "path:/tmp/restante-a"], &[], &[], Some(a)),
        (&["--data", b], &[("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-a")], &[], Some(b)),
        // Stronger sources overrule what an image or a file says.
        (&["--config=r.toml"], &[], image_says, Some(a)),
        (&["--config=r.toml"], &[("INBUCKET_STORAGE_TYPE", "memory")], image_says, None),
        (&["--config=r.toml"], &[("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-b")], image_says, Some(b)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_PATH", b)], image_says, Some(b)),
        (&["--config=r.toml", "--data", b], &[], image_says, Some(b)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_TYPE", "memory")], file_says, None),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_PATH", "")], file_says, None),
        (&["--data", a], &[("RESTANTE_STORAGE_TYPE", "memory")], &[], Some(a)),
        (&[], &[("INBUCKET_STORAGE_TYPE", "memory"), ("RESTANTE_STORAGE_PATH", a)], &[], Some(a)),
        (&[], &[("RESTANTE_STORAGE_TYPE", "memory"), ("INBUCKET_STORAGE_PATH", a)], &[], None),
    ];
    for &(args, env, files, expected) in cases {
        assert_eq!(place(&World { args, env, files }).as_deref(), expected, "{args:?} {env:?} {files:?}");
        // The effective settings are a configuration file that says the same.
        let check = World { args: &[&["config", "check"], args].concat(), env, files }.exit();
        assert_eq!(place(&file(&[("r.toml", &check.text)])).as_deref(), expected, "{}", check.text);
    }
}

#[test]
fn settings_that_disagree_on_where_mail_is_kept() {
    let cases: &[(&[&str], Pairs<'_>, &str)] = &[
        (
            &["--data", "/tmp/a", "--storage-type", "memory"],
            &[],
            "storage.path = \"/tmp/a\" (flag --storage-path): contradicts storage.type = \"memory\" (flag --storage-type)",
        ),
        (
            &[],
            &[("RESTANTE_STORAGE_PATH", "/tmp/a"), ("RESTANTE_STORAGE_TYPE", "memory")],
            "(variable RESTANTE_STORAGE_PATH): contradicts storage.type = \"memory\" (variable RESTANTE_STORAGE_TYPE)",
        ),
        (
            &["--data", "/tmp/a", "--storage-params", "path:/tmp/b"],
            &[],
            "storage.path = \"/tmp/a\" (flag --storage-path): storage.params (flag --storage-params) names another \
             directory, /tmp/b",
        ),
        (&[], &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "maxkb:1")], "needs a data directory"),
        (
            &[],
            &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "path:/proc/version")],
            "storage.params = \"path:/proc/version\" (variable INBUCKET_STORAGE_PARAMS): cannot be used: ",
        ),
    ];
    for &(args, env, expected) in cases {
        let text = World { args, env, ..World::default() }.refused();
        assert!(text.starts_with("restante: the configuration has an error:"), "{text}");
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

/// Who only moves mail needs nothing of what a server needs, and who only reads it may not be allowed to write it.
#[test]
fn a_transfer_asks_for_no_more_than_it_needs() {
    let server_only: Pairs<'_> = &[
        ("RESTANTE_LOGFILE", "/proc/nothing/log"),
        ("RESTANTE_PIDFILE", "/proc/nothing/pid"),
        ("RESTANTE_SMTP_TLSENABLED", "true"),
        ("RESTANTE_SMTP_TLSCERT", "/no/such/cert"),
        ("RESTANTE_SMTP_TLSPRIVKEY", "/no/such/key"),
        ("RESTANTE_SMTP_REQUIREAUTH", "true"),
        ("RESTANTE_SMTP_ADDR", "127.0.0.1:9000"),
    ];
    let (good, bad) = ("--data=/tmp/a", "--data=/proc/version");
    let table: &[(&[&str], bool)] = &[
        (&[good], false),
        (&["import", good, "in"], true),
        (&["import", bad, "in"], false),
        (&["export", good, "out"], true),
        (&["export", bad, "out"], true),
    ];
    for &(args, expected) in table {
        let command = World { args, env: server_only, ..World::default() }.parse();
        assert_eq!(!matches!(command, Command::Exit(_)), expected, "{args:?}");
    }
}

#[test]
fn the_bound_of_a_store() {
    let cases: &[(&[&str], u64)] = &[
        (&[], 1 << 30),
        (&["--storage-params", "maxkb:0"], 1 << 30),
        (&["--storage-params", "maxkb:20480"], 20 << 20),
        (&["--data", "/tmp/a"], 0),
        (&["--data", "/tmp/a", "--storage-params", "maxkb:0"], 0),
        (&["--data", "/tmp/a", "--storage-params", "maxkb:20480"], 20 << 20),
    ];
    for (args, expected) in cases {
        let loaded = flags(args).serve();
        assert_eq!(loaded.config.storage.max_bytes, *expected, "{args:?}");
        assert_eq!(loaded.warnings, Vec::<String>::new(), "{args:?}");
    }
}

#[test]
fn warnings_about_where_mail_is_kept() {
    let params = ("INBUCKET_STORAGE_PARAMS", "path:/tmp/a");
    assert!(env(&[params]).serve().warnings[0].contains("has no effect on the memory store"));
    let loaded = World { args: &["--storage-type=memory"], ..env(&[params]) }.serve();
    assert_eq!(loaded.warnings, Vec::<String>::new(), "it was overruled on purpose");
}

#[test]
fn files_that_a_later_version_reads_are_told_of_when_they_are_there() {
    assert_eq!(flags(&["--lua-path=/no/such/file"]).serve().warnings, Vec::<String>::new());
    let loaded = flags(&["--lua-path=/proc/version"]).serve();
    assert!(loaded.warnings[0].ends_with("a later version only: lua.path (flag --lua-path)"), "{:?}", loaded.warnings);
}

#[test]
fn the_settings_of_the_container_image_are_understood() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/container.toml"));
    // Not everybody who runs this test may write to the root directory.
    let text = text.replace("\"/storage\"", "\"/tmp/storage\"");
    let files = [("r.toml", text.as_str())];
    let mut world = file(&files);
    let config = world.config();
    assert_eq!(config.smtp.addr, [ListenAddr::Any(2500)]);
    assert_eq!(config.smtp.timeout, Duration::from_secs(30));
    assert!(config.smtp.policy.discard_domains.contains("bitbucket.local"));
    assert_eq!(config.web.hosts, Hosts::Any);
    assert!(config.log.json);
    assert_eq!(config.storage.retention_period, Some(Duration::from_hours(72)));
    assert_eq!(config.storage.mailbox_msg_cap, Some(300));
    assert_eq!(place(&world).as_deref(), Some("/tmp/storage"));
    let warnings = world.serve().warnings;
    assert!(warnings.len() == 1 && warnings[0].starts_with("other machines reach"), "{warnings:?}");

    // An environment written for Inbucket's image wins over what ours brings along.
    world.env = &[("INBUCKET_SMTP_ADDR", "0.0.0.0:3025"), ("INBUCKET_STORAGE_TYPE", "memory")];
    assert_eq!(world.config().smtp.addr[0].to_string(), "0.0.0.0:3025");
    assert_eq!(place(&world), None);
    assert_eq!(world.serve().warnings.len(), 1);
    world.env = &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "path:/tmp/elsewhere")];
    assert_eq!(place(&world).as_deref(), Some("/tmp/elsewhere"));
}

#[test]
fn help_and_version() {
    for args in [&["--help"], &["-help"], &["-h"]] {
        let help = flags(args).exit();
        assert_eq!(help.code, 0);
        for setting in SETTINGS {
            assert!(help.text.contains(&format!("--{}", setting.flag())), "{args:?} {}", setting.key);
        }
    }
    let help = flags(&["--help"]).exit().text;
    for setting in SETTINGS {
        assert!(help.contains(&format!("RESTANTE_{}.", setting.variable())), "{}", setting.key);
    }
    let version = flags(&["--version"]).exit();
    assert_eq!((version.code, version.text.trim_end()), (0, concat!("restante ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn flags_written_for_inbucket_take_one_dash() {
    let config = flags(&["-logjson", "-netdebug", "-logfile", "stdout", "-pidfile=/dev/null"]).config();
    assert!(config.log.json && config.log.netdebug);
    assert_eq!(config.log.output, LogOutput::Stdout);
    assert_eq!(config.pidfile.as_deref(), Some(Path::new("/dev/null")));
}

#[test]
fn the_reference_page_is_fresh() {
    let stored = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md"));
    assert!(stored == docs(), "docs/config.md is old: write the output of `restante config docs` into it");
    let printed = flags(&["config", "docs"]).exit();
    assert_eq!((printed.code, printed.text.as_str()), (0, stored));
}

#[test]
fn the_table_is_consistent() {
    for (index, setting) in SETTINGS.iter().enumerate() {
        let key = setting.key;
        assert!(SETTINGS[..index].iter().all(|other| other.flag() != setting.flag()), "{key} twice");
        assert!(setting.help.ends_with('.'), "{key}: help is made of sentences");
        assert!(key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.'), "{key}");
        let described = docs().contains(&format!("### {key}\n"));
        assert!(described, "{key} is on the reference page");
        if setting.status == Status::Ignored {
            assert_eq!(setting.default, "", "{key} has no effect, so it has no default");
        }
    }
}
