//! What settings mean together.

use restante::command_line::{Command, ScriptRequest, ScriptTask};
use restante_net::Certificate;

use super::{World, flags};

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
fn logins_that_other_nodes_do_not_know() {
    let (shared, tokens) = ("--storage-url=postgres://u@db/mail", "--auth-tokens=/etc/tokens.toml");
    let secret = "--auth-secret=0123456789abcdef0123456789abcdef";
    let cases: [(&[&str], bool); 4] =
        [(&[shared, tokens], true), (&[shared, tokens, secret], false), (&[shared], false), (&[tokens], false)];
    for (args, warned) in cases {
        let warnings = flags(args).serve().warnings;
        assert_eq!(warnings.len(), usize::from(warned), "{args:?} {warnings:?}");
        assert!(
            warnings.iter().all(|warning| warning.ends_with("with the same store: see auth.secret")),
            "{warnings:?}"
        );
    }
}

#[test]
fn webhooks_that_nobody_hears_of() {
    let cases: &[(&[&str], &str)] = &[
        (&["--webhook-secret=a secret of some length"], "webhook.secret has no effect without webhook.urls"),
        (
            &["--webhook-urls=http://localhost:3000,https://ci.example.org,http://[::1]/x"],
            "webhooks at addresses that are not public are not told of anything without webhook.private: webhook.urls, \
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
fn scripts_that_are_tried() {
    let request = |args: &[&str]| match flags(args).parse() {
        Command::Script(loaded, request) => (loaded.config.scripting.sandbox, request),
        other => panic!("{args:?} is not understood: {other:?}"),
    };
    let names = |names: &[&str]| ScriptTask::Test(names.iter().map(ToString::to_string).collect());
    let table: &[(&[&str], bool, ScriptTask)] = &[
        (&["script", "check", "rules.lua"], false, ScriptTask::Check),
        (&["script", "check", "--lua-sandbox", "rules.lua"], true, ScriptTask::Check),
        (&["--lua-sandbox", "script", "test", "rules.lua"], true, names(&[])),
        (&["script", "test", "rules.lua", "test_one", "test_two"], false, names(&["test_one", "test_two"])),
        // Where mail is kept, and whether that works, does not matter.
        (&["--storage-type=file", "script", "check", "rules.lua"], false, ScriptTask::Check),
    ];
    for (args, sandbox, task) in table {
        assert_eq!(request(args), (*sandbox, ScriptRequest { file: "rules.lua".into(), task: task.clone() }));
    }
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
fn https_needs_a_certificate_where_it_is_spoken() {
    let table: [(&[&str], Option<bool>); 4] = [
        (&[], None),
        (&["--web-tlsaddr=:443"], Some(false)),
        (&["--web-tlsenabled"], Some(true)),
        (&["--web-tlsenabled", "--web-tlsaddr=:443"], Some(true)),
    ];
    for (args, expected) in table {
        let tls = flags(&[args, &["--web-tlscert=self-signed"]].concat()).config().web.tls;
        assert_eq!(tls.certificate().map(|_| tls.force), expected, "{args:?}");
        if expected.is_some() {
            let told = flags(args).refused();
            assert!(told.contains("web.tlscert = \"cert.crt\" (default): cannot be read"), "{told}");
        }
    }
    let warnings = flags(&["--web-tlscert=self-signed"]).serve().warnings;
    assert_eq!(warnings, ["TLS is off although a certificate is set: see web.tlsenabled"]);
    let open = flags(&["--web-tlsaddr=0.0.0.0:443", "--web-tlscert=self-signed"]).serve().warnings;
    assert_eq!(open, ["other machines reach this server without credentials: web.tlsaddr 0.0.0.0:443"]);
    let twice = flags(&["--web-tlsaddr=localhost:9000", "--web-tlscert=self-signed"]).refused();
    assert!(twice.contains("localhost:9000 is taken by web.addr already"), "{twice}");
}

#[test]
fn origins_of_other_pages() {
    let allowed = |text: &str| flags(&[&format!("--web-corsorigins={text}")]).config().web.cors;
    assert!(allowed("").is_none());
    let some = allowed("http://localhost:3000,HTTPS://App.Example:443").expect("some are listed");
    for (origin, expected) in [
        ("http://localhost:3000", true),
        ("https://app.example", true),
        ("https://localhost:3000", false),
        ("http://app.example", false),
        ("null", false),
    ] {
        assert_eq!(some.allow(origin), expected, "{origin}");
    }
    assert!(allowed("https://app.example,*").is_some_and(|origins| origins.allow("null")));
    let told = flags(&["--web-corsorigins=https://app.example/,app.example"]).refused();
    for bad in ["https://app.example/", "app.example"] {
        assert!(told.contains(&format!("{bad:?} is no origin such as https://app.example:8443, and not *")), "{told}");
    }
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
