//! Configuration errors and their texts.

use restante_settings::StoreKind;
use restante_testdir::TestDir;

use super::{ProcessInput, env, file, flags};

#[test]
fn invalid_files() {
    let cases = [
        (
            "[smtp]\nmaxrecipient = 1",
            "smtp.maxrecipient (file r.toml:2): no such setting; did you mean smtp.maxrecipients?",
        ),
        ("[smpt]\naddr = ''", "smpt.addr (file r.toml:2): no such setting; did you mean smtp.addr?"),
        ("a.b.c.d = 1", "a.b.c.d (file r.toml:1): no such setting"),
        ("[smtp]\n\nmaxrecipients = [1]", "smtp.maxrecipients (file r.toml:3): takes a single value, not an array"),
        ("[smtp.addr]\nx = 1", "smtp.addr (file r.toml:1): takes a value and is not a section"),
        ("smtp.timeout = 1.5", "smtp.timeout (file r.toml:1): must be a string, a whole number, or true or false"),
        ("smtp.addr = ['a,b']", "smtp.addr (file r.toml:1): takes no commas inside an entry"),
        ("smtp.maxrecipients = -1", "smtp.maxrecipients = \"-1\" (file r.toml:1): must be a whole number"),
        ("smtp.maxrecipients = 0xffffffffffffffffff", "too large"),
        ("x = \n", "file r.toml:1: "),
    ];
    for (text, expected) in cases {
        let error = file(&[("r.toml", text)]).error_text();
        assert!(error.contains(expected), "{text}\n{error}");
    }
    assert!(file(&[]).error_text().contains("file r.toml: cannot be read: "));
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = ProcessInput {
        args: &["--config", "r.toml", "--smtp-addr", "example.org:25", "--storage-type=file"],
        env: &[
            ("RESTANTE_LOGLEVEL", "trace"),
            ("INBUCKET_SMTP_TIMEOUT", "300"),
            ("RESTANTE_NONSENSE", "1"),
            ("RESTANTE_SMTP_REQUIREAUTH", "true"),
        ],
        files: &[("r.toml", "[web]\nbasepath = '/a b'\ntypo = 1")],
    }
    .error_text();
    let expected = [
        "restante: the configuration has 8 errors:",
        "variable RESTANTE_NONSENSE: no such setting",
        "web.typo (file r.toml:3): no such setting",
        "loglevel = \"trace\" (variable RESTANTE_LOGLEVEL): must be debug, info, warn or error",
        "smtp.addr = \"example.org:25\" (flag --smtp-addr): \"example.org:25\" is not a listen address: expected IP:PORT",
        "smtp.timeout = \"300\" (variable INBUCKET_SMTP_TIMEOUT): must be a duration such as 90s",
        "smtp.requireauth = \"true\" (variable RESTANTE_SMTP_REQUIREAUTH): requires smtp.credentials, auth.users or auth.tokens",
        "web.basepath = \"/a b\" (file r.toml:2): must be a path",
        "storage.type = \"file\" (flag --storage-type): requires a data directory: set --data DIR, storage.path or path:DIR",
    ];
    for line in expected {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn invalid_values_are_rejected() {
    let cases: &[(&[&str], &str)] = &[
        (&["--smtp-maxrecipients", "0"], "from 1 to 1000000"),
        (&["--smtp-maxmessagebytes", "10MB"], "a whole number from 1 to 2147483648"),
        (&["--smtp-timeout", "0"], "must be a duration from 1s to 24h"),
        (&["--smtp-addr", "2525"], "\"2525\" is not a listen address: expected IP:PORT"),
        (&["--smtp-addr", "2525"], "for example localhost:2525 or :2525"),
        (&["--smtp-domain", "a b"], "must be a host name"),
        (&["--smtp-domain", ""], "must be a host name"),
        (&["--mailboxnaming", "none"], "must be one of local, full, domain"),
        (&["--smtp-defaultaccept=maybe"], "must be true or false"),
        (&["--smtp-acceptdomains", "a,b@c"], "\"b@c\" is not a domain"),
        (&["--logfile", ""], "must be stderr, stdout or the path of a file"),
        (&["--web-publicurl", "https://x/?a=b"], "without user, query or fragment"),
        (&["--web-hosts", "example.org:80"], "without a port"),
        (&["--web-trustedproxies", "10.0.0.0/33"], "is not a network"),
        (&["--web-monitorhistory", "10001"], "from 0 to 10000"),
        (&["--storage-type", "disk"], "must be memory, file or postgres"),
        (&["--storage-type", "postgres"], "(flag --storage-type): requires storage.url"),
        (&["--data", "/proc/version"], "storage.path = \"/proc/version\" (flag --storage-path): cannot be used: "),
        (&["--data", "/proc/version/x"], "storage.path = \"/proc/version/x\" (flag --storage-path): cannot be used: "),
        (&["--storage-durability", "none"], "must be full or relaxed"),
        (&["--storage-cachekb", "0"], "a whole number from 1024 to"),
        (
            &["--storage-url", "mysql://u:hunter2@h/d"],
            "storage.url = \"***\" (flag --storage-url): must be a URL such as",
        ),
        (&["--storage-url", "postgres://u@h/d?sslmode=on"], "(flag --storage-url): sslmode must be disable, allow"),
        (
            &["--storage-url", "postgres://u@h/d?sslrootcert=/no/ca"],
            "(flag --storage-url): sslrootcert /no/ca cannot be read",
        ),
        (
            &["--storage-url", "postgres://u@h/d", "--smtp-maxmessagebytes", "268435457"],
            "smtp.maxmessagebytes = \"268435457\" (flag --smtp-maxmessagebytes): must be at most 268435456 for a store in PostgreSQL",
        ),
        (&["--storage-connections", "4"], "a whole number from 5 to 1000"),
        (&["--storage-params", "maxkb:many"], "maxkb must be a whole number"),
        (
            &["--storage-policies", "a cap=1; shop:* cap=x"],
            "entry 2 (shop:* cap=x) has an invalid value of cap: must be",
        ),
        (&["--storage-params", "quota:1"], "unknown parameter \"quota\""),
        (&["--storage-retentionperiod", "1ms"], "or 0 for no limit"),
        (&["--lua-sandbox=perhaps"], "must be true or false"),
        (&["--lua-timeout", "99ms"], "must be a duration from 100ms to 1h"),
        (&["--lua-memorykb", "1023"], "a whole number from 1024 to"),
        (&["--lua-states", "1025"], "a whole number from 0 to 1024"),
        (&["--lua-maxcalls", "0"], "a whole number from 1 to 4096"),
        (&["--lua-maxcalls", "4097"], "a whole number from 1 to 4096"),
        (&["--lua-queue", "0"], "from 1 to 1000000"),
        (&["--webhook-urls", "ci.example.org"], "webhook.urls = \"***\" (flag --webhook-urls): entry 1 does not begin"),
        (
            &["--webhook-secret", "0123456789abcde"],
            "webhook.secret = \"***\" (flag --webhook-secret): must be a key of at least 16 bytes",
        ),
        (&["--webhook-secret", "whsec_not base64"], "whsec_ must be followed by base64"),
        (&["--webhook-private=perhaps"], "must be true or false"),
        (&["--webhook-timeout", "11m"], "must be a duration from 100ms to 10m"),
        (&["--webhook-giveup", "0"], "must be a duration from 1s to 720h"),
        (&["--webhook-queue", "0"], "from 1 to 1000000"),
        (
            &["--relay-targets", "smtp.example.org"],
            "relay.targets = \"***\" (flag --relay-targets): entry 1 is not of the form NAME URL",
        ),
        (
            &["--relay-targets=a smtp://h allow=*", "--relay-forward=a,b,c"],
            "relay.forward = \"a,b,c\" (flag --relay-forward): entry 2 names a target that is not in relay.targets",
        ),
        (&["--relay-targets=a smtp://h allow=*", "--relay-forward=A"], "entry 1 names a target that is not in"),
        (&["--relay-forward=a search=("], "entry 1 has an invalid value of search: At character"),
        (
            &["--relay-targets=a smtp://h,b smtp://h ca=/no/such/file"],
            "relay.targets = \"***\" (flag --relay-targets): the file after ca= of entry 2 cannot be read",
        ),
        (
            &["--relay-targets=a smtp://u@h passwordfile=/no/such/file"],
            "relay.targets = \"***\" (flag --relay-targets): the file after passwordfile= of entry 1 cannot be read",
        ),
        (&["--relay-private=perhaps"], "must be true or false"),
        (&["--relay-giveup", "59s"], "must be a duration from 1m to 720h"),
        (&["--relay-queue", "0"], "from 1 to 1000000"),
        (&["script"], "Usage: restante script <COMMAND>"),
        (&["script", "check"], "<FILE>"),
        (&["script", "check", "rules.lua", "more"], "unexpected argument 'more'"),
        (&["script", "test", "rules.lua", "--smtp-addr=:25"], "unexpected argument '--smtp-addr'"),
        (&["script", "test", "rules.lua", "--lua-timeout=1"], "lua.timeout = \"1\" (flag --lua-timeout): must be"),
        (&["--smtp-forcetls"], "smtp.forcetls = \"true\" (flag --smtp-forcetls): requires smtp.tlsenabled"),
        (&["--smtp-tlsaddr", ":465"], "requires smtp.tlsenabled"),
        (&["--smtp-requirestarttls"], "(flag --smtp-requirestarttls): requires smtp.tlsenabled = true"),
        (
            &["--smtp-acceptanylogin", "--smtp-credentials=a:b"],
            "smtp.acceptanylogin = \"true\" (flag --smtp-acceptanylogin): cannot be combined with smtp.credentials",
        ),
        (
            &["--smtp-allowedrecipients=(a"],
            "smtp.allowedrecipients = \"(a\" (flag --smtp-allowedrecipients): must be a regular expression such as \
             @example[.]org$: unclosed group",
        ),
        (
            &["--auth-credentials=ann"],
            "auth.credentials = \"***\" (flag --auth-credentials): entry 1 is not of the form",
        ),
        (&["--auth-credentials=ann:x,a*b:y"], "entry 2: a name must not begin with # or contain a colon"),
        (
            &["--auth-oidcissuer=http://login.example.org", "--auth-oidcclientid=a"],
            "auth.oidcissuer = \"http://login.example.org\" (flag --auth-oidcissuer): must be an https URL without user",
        ),
        (&["--auth-oidcissuer=https://login.example.org"], "(flag --auth-oidcissuer): requires auth.oidcclientid"),
        (&["--auth-oidcclientid=a"], "(flag --auth-oidcclientid): requires auth.oidcissuer"),
        (&["--auth-oidcsecret=a"], "auth.oidcsecret = \"***\" (flag --auth-oidcsecret): requires auth.oidcissuer"),
        (&["--auth-oidcscopes=email"], "(flag --auth-oidcscopes): must contain openid, such as openid profile email"),
        (&["--auth-userheader=X-User"], "(flag --auth-userheader): requires web.trustedproxies"),
        (
            &["--auth-userheader=X User", "--web-trustedproxies=::1"],
            "(flag --auth-userheader): must be a header field such as X-Forwarded-User",
        ),
        (&["--auth-groupsheader=X-Groups"], "(flag --auth-groupsheader): requires auth.userheader"),
        (&["--auth-grants=groups=qa -> all"], "(flag --auth-grants): requires auth.oidcissuer or auth.userheader"),
        (
            &["--auth-grants=groups=qa -> all; x -> all"],
            "(flag --auth-grants): entry 2 \"x -> all\" must have the form CLAIM=PATTERN -> RIGHTS; an example is groups=qa",
        ),
        (
            &["--auth-grants=groups=qa -> reed"],
            "entry 1 has invalid rights: \"reed\" must be all or scopes with commas",
        ),
        (
            &["--smtp-requireauth", "--auth-userheader=X-User", "--web-trustedproxies=::1"],
            "(flag --smtp-requireauth): requires smtp.credentials, auth.users or auth.tokens",
        ),
        (&["--smtp-credentials=ann:$apr1$x$y"], "entry 1: the password has a hash format that is not supported"),
        (&["--smtp-tlsenabled"], "smtp.tlscert = \"cert.crt\" (default): cannot be read"),
        (
            &["--web-listeners", ":1 tls rest,:2 rest,:1 /x rest", "--web-tlscert=self-signed"],
            "web.listeners = \":1 tls rest,:2 rest,:1 /x rest\" (flag --web-listeners): :1 has entries with and without tls",
        ),
        (&["--pop3-tlsaddr", ":995"], "requires pop3.tlsenabled"),
        (&["--pop3-tlsenabled"], "pop3.tlscert = \"cert.crt\" (default): cannot be read"),
        (&["--pop3-credentials", "james"], "pop3.credentials = \"***\" (flag --pop3-credentials): entry 1"),
        (&["--pop3-proxyprotocol", "10.0.0.0/x"], "is not a network"),
        (&["--pop3-forcetls"], "pop3.forcetls = \"true\" (flag --pop3-forcetls): requires pop3.tlsenabled"),
        (&["--imap-tlsaddr", ":993"], "requires imap.tlsenabled"),
        (&["--imap-tlsenabled"], "imap.tlscert = \"cert.crt\" (default): cannot be read"),
        (&["--imap-credentials", "james"], "imap.credentials = \"***\" (flag --imap-credentials): entry 1"),
        (
            &["--imap-credentials", "bob:x,Bob@x.org:y"],
            "the user of entry 2 names the same mailbox as an earlier entry",
        ),
        (&["--imap-addr", ":1100", "--pop3-addr", ":1100"], ":1100 is already used by pop3.addr"),
        (&["--smtp-addr", ":25", "--web-addr", ":80,:25"], ":25 is already used by smtp.addr"),
        (&["--smtp-addr", "localhost:25,127.0.0.1:25"], "127.0.0.1:25 is already used by smtp.addr"),
        (&["--logfile", "/"], "logfile = \"/\" (flag --logfile): cannot be written: is a directory"),
        (&["--logfile", "/no/such/dir/x.log"], "logfile = \"/no/such/dir/x.log\" (flag --logfile): cannot be written"),
        (&["--pidfile", "/proc/version/x"], "pidfile = \"/proc/version/x\" (flag --pidfile): cannot be written"),
        (&["--smtp-defaultaccept", "false"], "Write --smtp-defaultaccept=false, with an equals sign."),
        (&["config", "check", "-logjson", "off"], "Write --logjson=off, with an equals sign."),
        (&["--smtp-addr=", "--pop3-addr=", "--imap-addr=", "--web-addr="], "no address to listen on"),
        (&["--pidfile"], "a value is required"),
        (&["--smtp-adr", ":25"], "--smtp-addr"),
        (&["serve"], "unrecognized subcommand"),
    ];
    for (args, expected) in cases {
        let text = flags(args).error_text();
        assert!(text.contains(expected), "{args:?}\n{text}");
    }
}

#[test]
fn every_invalid_entry_of_a_value_is_reported() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--smtp-addr", "a:1,:25,b:2"], &["\"a:1\" is not a listen address", "\"b:2\" is not a listen address"]),
        (&["--smtp-storedomains", "a@b,c,d e"], &["\"a@b\" is not a domain", "\"d e\" is not a domain"]),
        (&["--web-hosts", "a:1,b/2"], &["\"a:1\" is neither a host name", "\"b/2\" is neither a host name"]),
        (&["--web-trustedproxies", "x,::1/129"], &["\"x\" is not a network", "\"::1/129\" is not a network"]),
        (
            &["--smtp-credentials", "a,b:c,b:d"],
            &["entry 1 is not of the form USER:PASSWORD", "entry 3 repeats a user name"],
        ),
        (
            &["--webhook-urls", "a,http://b,http://c d"],
            &["entry 1 does not begin", "entry 3 has an unknown option after"],
        ),
        (&["--relay-targets", "a,b smtp://h,c d"], &["entry 1 is not of the form", "entry 3 has no URL that begins"]),
        (
            &["--storage-params", "maxkb:big,foo:1,x"],
            &["maxkb must be", "unknown parameter \"foo\"", "\"x\" is not of the form KEY:VALUE"],
        ),
    ];
    for (args, expected) in cases {
        let text = flags(args).error_text();
        assert!(expected.iter().all(|part| text.contains(part)), "{args:?}\n{text}");
    }
    let text = file(&[("r.toml", "[smtp]\naddr = [1.5, 'a,b']")]).error_text();
    assert!(text.contains("must be a string") && text.contains("takes no commas"), "{text}");
    let text = file(&[("r.toml", "[storage]\nparams = { maxkb = 'big', foo = 1 }")]).error_text();
    assert!(text.contains("maxkb must be") && text.contains("unknown parameter \"foo\""), "{text}");
}

#[test]
fn consequential_errors_are_not_reported() {
    let cases: &[&[&str]] = &[
        &["--smtp-addr", "nope", "--web-addr", "localhost:2500"],
        &["--smtp-addr", "nope", "--web-addr="],
        &["--smtp-tlsenabled=maybe", "--smtp-forcetls", "--smtp-tlsaddr=:465"],
        &["--smtp-tlsenabled", "--smtp-tlscert="],
        &["--smtp-tlsenabled", "--smtp-tlsprivkey="],
        &["--smtp-requireauth", "--smtp-credentials", "joe"],
        &["--auth-oidcissuer=x", "--auth-oidcclientid=a", "--auth-oidcsecret=b"],
        &["--logfile", "/no/such/dir/x.log", "--logfile="],
        &["--storage-type=disk", "--data=/proc/version"],
        &["--storage-type=file", "--storage-params=path"],
    ];
    for args in cases {
        let text = flags(args).error_text();
        assert!(text.starts_with("restante: the configuration has an error:"), "{args:?}\n{text}");
    }
    let input =
        ProcessInput { args: &["--config=r.toml", "--smtp-forcetls"], ..file(&[("r.toml", "smtp.tlsenabled = 1.5")]) };
    assert!(input.error_text().starts_with("restante: the configuration has an error:"), "{}", input.error_text());
}

#[test]
fn overridden_values_are_validated_too() {
    let input = ProcessInput {
        args: &["--config=r.toml", "--loglevel=loud", "--loglevel=debug"],
        env: &[("INBUCKET_LOGLEVEL", "trace"), ("RESTANTE_LOGLEVEL", "all")],
        files: &[("r.toml", "loglevel = 'none'")],
    };
    let text = input.error_text();
    for value in ["none", "trace", "all", "loud"] {
        assert!(text.contains(&format!("loglevel = \"{value}\" ")), "{value}\n{text}");
    }
    // But only the effective value must be consistent with other settings.
    let config = env(&[("INBUCKET_STORAGE_TYPE", "file"), ("RESTANTE_STORAGE_TYPE", "memory")]).config();
    assert_eq!(config.storage.kind, StoreKind::Memory);
}

#[test]
fn config_check_creates_no_files() {
    let dir = TestDir::new();
    let (log, pid, data) = ["x.log", "x.pid", "not/yet/there"].map(|name| dir.path().join(name)).into();
    std::fs::write(&log, "old lines").expect("an old log");
    let (log_file, pid_file, data_dir) = (log.to_string_lossy(), pid.to_string_lossy(), data.to_string_lossy());
    flags(&["--logfile", &log_file, "--pidfile", &pid_file, "--data", &data_dir]).config();
    assert_eq!(std::fs::read_to_string(&log).expect("the log exists"), "old lines");
    assert!(!pid.exists() && !dir.path().join("not").exists());
}
