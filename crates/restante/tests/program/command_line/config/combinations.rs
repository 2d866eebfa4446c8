//! Combinations of settings.

use restante::command_line::{Command, ScriptTask, Task};
use restante_net::Certificate;

use super::{ProcessInput, flags};

#[test]
fn warns_about_proxy_lists_with_all_addresses() {
    for (argument, warned) in [
        ("--web-trustedproxies=10.0.0.0/8,::/0", true),
        ("--web-proxyprotocol=0.0.0.0/0", true),
        ("--smtp-proxyprotocol=::ffff:0.0.0.0/96", true),
        ("--pop3-proxyprotocol=0.0.0.0/0", true),
        ("--pop3-proxyprotocol=10.0.0.0/8,fd00::/8", false),
        ("--imap-proxyprotocol=0.0.0.0/0", true),
    ] {
        let warnings = flags(&[argument]).serve().warnings;
        assert_eq!(warnings.len(), usize::from(warned), "{argument} {warnings:?}");
        let (name, _) = argument.trim_start_matches('-').split_once('=').unwrap();
        assert!(warnings.iter().all(|warning| warning.ends_with(&name.replace('-', "."))), "{warnings:?}");
    }
}

#[test]
fn warns_about_logins_and_runs_that_other_nodes_cannot_verify() {
    let (shared, tokens) = ("--storage-url=postgres://u@db/mail", "--auth-tokens=/etc/tokens.toml");
    let secret = "--auth-secret=0123456789abcdef0123456789abcdef";
    let cases: [(&[&str], &str); 5] = [
        (&[shared, tokens], "logins to the web interface and leased runs"),
        (&[shared], "leased runs"),
        (&[shared, tokens, secret], ""),
        (&[shared, secret], ""),
        (&[tokens], ""),
    ];
    for (args, what) in cases {
        let warnings = flags(args).serve().warnings;
        let end = " are valid on this server only, not on other servers with the same store: set auth.secret";
        let expected = (!what.is_empty()).then(|| format!("{what}{end}"));
        assert_eq!(warnings, Vec::from_iter(expected), "{args:?}");
    }
}

#[test]
fn warns_if_no_account_has_access() {
    let warning =
        "no account of the identity provider or of a proxy has access: set auth.grants, for example groups=qa -> all";
    let provider = ["--auth-oidcissuer=https://login.example.org", "--auth-oidcclientid=a"];
    let proxy = ["--auth-userheader=X-User", "--web-trustedproxies=::1"];
    for args in [provider, proxy] {
        assert_eq!(flags(&args).serve().warnings, [warning]);
        let loaded = flags(&[&args[..], &["--auth-grants=user=* -> all", "--web-addr=:9000"]].concat()).serve();
        // Other machines need a login, except for sending mail.
        assert_eq!(loaded.warnings, Vec::<String>::new());
        assert!(loaded.config.auth.is_enabled() && !loaded.config.auth.has_accounts());
    }
}

#[test]
fn warns_about_ineffective_webhook_settings() {
    let cases: &[(&[&str], &str)] = &[
        (&["--webhook-secret=a secret of some length"], "webhook.secret has no effect without webhook.urls"),
        (
            &["--webhook-urls=http://localhost:3000,https://ci.example.org,http://[::1]/x"],
            "webhooks at private addresses receive no events unless webhook.private is true: webhook.urls, \
             entry 1, 3",
        ),
    ];
    for (args, expected) in cases {
        assert_eq!(flags(args).serve().warnings, [*expected]);
    }
    let private = ["--webhook-urls=http://localhost:3000", "--webhook-private"];
    assert_eq!(flags(&private).serve().warnings, Vec::<String>::new());
}

#[test]
fn warns_about_relay_targets_that_are_unused_or_unprotected() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--relay-targets=a smtp://mx.example.org allow=*"], &[]),
        (
            &["--relay-targets=a smtp://mx,b smtp://mx allow=*,c smtp://mx block=x@y"],
            &["nothing is sent to targets without the option allow: relay.targets, a, c"],
        ),
        (
            &["--relay-targets=a smtp://localhost allow=*,b smtp://[::1] allow=*,c smtp://10.0.0.1 allow=*"],
            &["nothing is sent to private addresses unless relay.private is true: relay.targets, a, b, c"],
        ),
        (&["--relay-targets=a smtp://localhost allow=*,b smtp://[::1] allow=*", "--relay-private"], &[]),
        (
            &["--relay-targets=a smtp://mx allow=*@x.org", "--relay-forward=a to=b@x.org,a to=b@x.org|c@y.org"],
            &["the target does not allow an address after to=, so nothing is sent to it: relay.forward, entry 2"],
        ),
        (
            &["--relay-targets=a smtps://mx allow=* verify=false,b smtp://u:p@mx allow=* unencryptedlogin=true"],
            &[
                "the certificates of targets are not verified: relay.targets, a",
                "passwords of targets may be sent unencrypted: relay.targets, b",
            ],
        ),
    ];
    for (args, expected) in cases {
        assert_eq!(flags(args).serve().warnings, *expected, "{args:?}");
    }
}

#[test]
fn files_of_relay_targets_are_validated() {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate").cert.pem();
    let args = ["--relay-targets=a smtp://u@mx ca=/ca.pem passwordfile=/password allow=*"];
    let start =
        |pem: &str| ProcessInput { args: &args, files: &[("/ca.pem", pem), ("/password", "x")], env: &[] }.parse();
    assert!(matches!(start(&certificate), Command::Configured(Task::Serve { .. }, _)));
    let Command::Exit(exit) = start("nothing") else { panic!("starts without a certificate") };
    let expected =
        "relay.targets = \"***\" (flag --relay-targets): the file after ca= of entry 1 contains no certificate";
    assert!(exit.text.contains(expected), "{}", exit.text);
}

#[test]
fn script_commands_parse_their_arguments() {
    let parsed = |args: &[&str]| match flags(args).parse() {
        Command::Configured(Task::Script(task), loaded) => (loaded.config.scripting.sandbox, task),
        other => panic!("{args:?}: {other:?}"),
    };
    let check = || ScriptTask::Check { file: "rules.lua".into() };
    let test = |names: &[&str]| ScriptTask::Test {
        file: "rules.lua".into(),
        names: names.iter().map(ToString::to_string).collect(),
    };
    let table: &[(&[&str], bool, ScriptTask)] = &[
        (&["script", "check", "rules.lua"], false, check()),
        (&["script", "check", "--lua-sandbox", "rules.lua"], true, check()),
        (&["--lua-sandbox", "script", "test", "rules.lua"], true, test(&[])),
        (&["script", "test", "rules.lua", "test_one", "test_two"], false, test(&["test_one", "test_two"])),
        // The storage settings are not used.
        (&["--storage-type=file", "script", "check", "rules.lua"], false, check()),
    ];
    for (args, sandbox, task) in table {
        assert_eq!(parsed(args), (*sandbox, task.clone()));
    }
}

#[test]
fn tls_certificates_are_validated() {
    let make = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (ours, other) = (make(), make());
    let (cert, key, other_key) = (ours.cert.pem(), ours.signing_key.serialize_pem(), other.signing_key.serialize_pem());
    let args = &["--smtp-tlsenabled", "--smtp-tlscert=c.pem", "--smtp-tlsprivkey=k.pem", "--smtp-tlsaddr=:465"];
    let with = |cert: &str, key: &str| {
        ProcessInput { args, files: &[("c.pem", cert), ("k.pem", key)], ..ProcessInput::default() }.parse()
    };

    let Command::Configured(Task::Serve { .. }, loaded) = with(&cert, &key) else {
        panic!("a valid certificate is rejected")
    };
    let paths = ("c.pem".into(), "k.pem".into());
    let expected = Certificate::Files { cert: &paths.0, key: &paths.1 };
    assert_eq!(loaded.config.smtp.tls.certificate(), Some(expected));

    let junk = "-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n";
    let bad: [(&str, &str, &[&str]); 5] = [
        (
            "",
            "",
            &["smtp.tlscert = \"c.pem\" (flag --smtp-tlscert): contains no", "(flag --smtp-tlsprivkey): contains no"],
        ),
        (&key, &key, &["(flag --smtp-tlscert): contains no certificate"]),
        (&cert, &cert, &["(flag --smtp-tlsprivkey): contains no private key"]),
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
fn https_requires_a_certificate() {
    let table: [(&[&str], Option<bool>); 6] = [
        (&[], None),
        (&["--web-tlsaddr=:443"], Some(false)),
        (&["--web-listeners=:443 tls rest"], Some(false)),
        (&["--web-listeners=:443 rest"], None),
        (&["--web-tlsenabled"], Some(true)),
        (&["--web-tlsenabled", "--web-tlsaddr=:443"], Some(true)),
    ];
    for (args, expected) in table {
        let tls = flags(&[args, &["--web-tlscert=self-signed"]].concat()).config().web.tls;
        assert_eq!(tls.certificate().map(|_| tls.force), expected, "{args:?}");
        if expected.is_some() {
            let text = flags(args).error_text();
            assert!(text.contains("web.tlscert = \"cert.crt\" (default): cannot be read"), "{text}");
        }
    }
    let warnings = flags(&["--web-tlscert=self-signed"]).serve().warnings;
    assert_eq!(warnings, ["TLS is off although a certificate is set: to turn it on, set web.tlsenabled"]);
    let open = flags(&["--web-tlsaddr=0.0.0.0:443", "--web-tlscert=self-signed"]).serve().warnings;
    assert_eq!(open, ["other machines reach this server without credentials: web.tlsaddr 0.0.0.0:443"]);
    let twice = flags(&["--web-tlsaddr=localhost:9000", "--web-tlscert=self-signed"]).error_text();
    assert!(twice.contains("localhost:9000 is already used by web.addr"), "{twice}");
}

#[test]
fn cors_origins() {
    let allowed = |text: &str| flags(&[&format!("--web-corsorigins={text}")]).config().web.cors;
    assert!(allowed("").is_none());
    let some = allowed("http://localhost:3000,HTTPS://App.Example:443").expect("some are listed");
    for (origin, expected) in [
        ("http://localhost:3000", true),
        ("https://app.example", true),
        ("HTTPS://App.EXAMPLE", true),
        ("https://localhost:3000", false),
        ("http://app.example", false),
        ("null", false),
    ] {
        assert_eq!(some.allows(origin), expected, "{origin}");
    }
    assert!(allowed("https://app.example,*").is_some_and(|origins| origins.allows("null")));
    let text = flags(&["--web-corsorigins=https://app.example/,app.example"]).error_text();
    for bad in ["https://app.example/", "app.example"] {
        assert!(
            text.contains(&format!("{bad:?} is neither an origin such as https://app.example:8443 nor *")),
            "{text}"
        );
    }
}

#[test]
fn values_derived_from_other_settings() {
    let config = flags(&["--web-publicurl", "https://Mail.example.org:8443/x/", "--web-hosts", "intern"]).config();
    assert_eq!(config.web.public_url.as_deref(), Some("https://mail.example.org:8443/x"));
    assert!(config.web.hosts.allows("mail.example.org") && config.web.hosts.allows("INTERN"));
    assert!(!config.web.hosts.allows("evil.example"));
    assert!(flags(&["--web-hosts", "a,*"]).config().web.hosts.allows("evil.example"));

    let names: &[(&str, &str)] = &[("/proc/sys/kernel/hostname", "Node7\n")];
    assert_eq!(ProcessInput { files: names, ..ProcessInput::default() }.config().smtp.domain, "node7");
    let names: &[(&str, &str)] = &[("/proc/sys/kernel/hostname", "(none)\n"), ("/etc/hostname", "box.lan\n")];
    assert_eq!(ProcessInput { files: names, ..ProcessInput::default() }.config().pop3.domain, "box.lan");
    assert_eq!(ProcessInput::default().config().smtp.domain, "localhost");

    let open = flags(&["--smtp-addr", ":25", "--smtp-credentials", "a:b", "--smtp-requireauth"]).serve();
    assert_eq!(open.warnings, Vec::<String>::new());
}
