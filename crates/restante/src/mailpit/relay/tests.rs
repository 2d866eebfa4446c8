//! Tests of the mapping of relay and forwarding.

use std::io;
use std::path::Path;

use restante_relay::{TargetTls, Verification};
use restante_settings::Config;

use super::*;
use crate::mailpit::mapped::Given;
use crate::mailpit::options::SENT_LATER;

/// Names of options and their values.
type Values<'a> = &'a [(&'static str, &'a str)];

/// Maps values of options, with one configuration file at `/file`. Returns the settings.
fn map_values(values: Values<'_>, file: &str) -> (Vec<String>, Mapped) {
    let given = |(name, value): &(&'static str, &str)| {
        (*name, Given { value: (*value).to_owned(), source: format!("variable {name}") })
    };
    let given: GivenValues = values.iter().map(given).collect();
    let read_file = |path: &Path| match path.to_str() {
        Some("/file") => Ok(file.as_bytes().to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let mut mapped = Mapped::default();
    map(&given, &read_file, &mut mapped);
    let settings = mapped.presets.iter().map(|preset| format!("{}={}", preset.setting.key, preset.value)).collect();
    (settings, mapped)
}

const HOST: (&str, &str) = ("MP_SMTP_RELAY_HOST", "mx.example.org");

#[test]
fn maps_the_relay() {
    let login = [("MP_SMTP_RELAY_USERNAME", "me@x.org"), ("MP_SMTP_RELAY_PASSWORD", "p,w")];
    let table: &[(Values<'_>, &str, &str)] = &[
        (&[], "relay smtp://mx.example.org:25 starttls=never allow=*", ""),
        (&login, "relay smtp://mx.example.org:25 starttls=never allow=*", ""),
        (
            &[("MP_SMTP_RELAY_PORT", "587"), ("MP_SMTP_RELAY_STARTTLS", "true")],
            "relay smtp://mx.example.org:587 starttls=required allow=*",
            "",
        ),
        (
            &[("MP_SMTP_RELAY_PORT", "465"), ("MP_SMTP_RELAY_TLS", "1"), ("MP_SMTP_RELAY_ALLOW_INSECURE", "yes")],
            "relay smtps://mx.example.org:465 verify=false allow=*",
            "",
        ),
        (
            &[login[0], login[1], ("MP_SMTP_RELAY_AUTH", "PLAIN"), ("MP_SMTP_RELAY_TLS", "true")],
            "relay smtps://me%40x.org:p%2Cw@mx.example.org:25 auth=plain allow=*",
            "",
        ),
        (
            &[login[0], login[1], ("MP_SMTP_RELAY_AUTH", "plain")],
            "relay smtp://me%40x.org:p%2Cw@mx.example.org:25 starttls=optional auth=plain allow=*",
            "",
        ),
        (
            &[login[0], login[1], ("MP_SMTP_RELAY_AUTH", "plain"), ("MP_SMTP_RELAY_ALLOW_INSECURE", "true")],
            "relay smtp://me%40x.org:p%2Cw@mx.example.org:25 starttls=optional verify=false auth=plain allow=*",
            "",
        ),
        (
            &[login[0], ("MP_SMTP_RELAY_SECRET", "s"), ("MP_SMTP_RELAY_AUTH", "cram"), ("MP_SMTP_RELAY_STARTTLS", "1")],
            "relay smtp://me%40x.org:s@mx.example.org:25 starttls=required auth=cram-md5 allow=*",
            "",
        ),
        (
            &[
                ("MP_SMTP_RELAY_ALLOWED_RECIPIENTS", "@(a|b).org$"),
                ("MP_SMTP_RELAY_BLOCKED_RECIPIENTS", "^x{1,2}@"),
                ("MP_SMTP_RELAY_RETURN_PATH", "bounce@x.org"),
                ("MP_SMTP_RELAY_OVERRIDE_FROM", "Dev <dev@x.org>"),
            ],
            "relay smtp://mx.example.org:25 starttls=never returnpath=bounce%40x.org from=dev%40x.org \
             allow=/%40%28a%7Cb%29.org%24/ block=/%5Ex%7B1%2C2%7D%40/",
            "",
        ),
        (&[("smtp-relay-all", "true")], "relay smtp://mx.example.org:25 starttls=never allow=*", "relay"),
        (
            &[("smtp-relay-matching", "@x.org$")],
            "relay smtp://mx.example.org:25 starttls=never allow=*",
            "relay recipients=/%40x.org%24/",
        ),
    ];
    for (values, target, rule) in table {
        let values: Vec<_> = [HOST].iter().chain(*values).copied().collect();
        let (settings, mapped) = map_values(&values, "");
        assert_eq!((&mapped.problems[..], &mapped.warnings[..]), (&[][..], &[][..]), "{values:?}");
        let expected =
            [format!("relay.targets={target}"), format!("relay.forward={rule}"), "relay.private=true".to_owned()];
        assert_eq!(settings, expected, "{values:?}");
        for preset in &mapped.presets {
            let applied = (preset.setting.apply)(&mut Config::default(), &preset.value);
            assert_eq!(applied, Ok(()), "{}", preset.value);
        }
    }
}

/// Returns how the connection is encrypted, whether the certificate is verified, and whether the password may be sent
/// without TLS.
fn encryption(values: Values<'_>, file: &str) -> (TargetTls, bool, bool) {
    let (_, mapped) = map_values(values, file);
    assert_eq!(mapped.problems, Vec::<String>::new(), "{values:?}");
    let preset = mapped.presets.iter().find(|preset| preset.setting.key == "relay.targets").unwrap();
    let mut config = Config::default();
    (preset.setting.apply)(&mut config, &preset.value).unwrap();
    let target = config.relay.targets.remove(0);
    (target.tls, target.verification != Verification::None, target.login.unwrap().allow_unencrypted)
}

#[test]
fn logins_use_starttls_if_the_server_offers_it() {
    for (auth, host, is_unencrypted_allowed) in [
        ("plain", "mx.example.org", false),
        ("plain", "localhost", true),
        ("login", "mx.example.org", true),
        ("login", "localhost", true),
        ("cram-md5", "mx.example.org", true),
        ("cram-md5", "localhost", true),
    ] {
        let expected = (TargetTls::Optional, !is_unencrypted_allowed, is_unencrypted_allowed);
        let relay = [
            ("MP_SMTP_RELAY_HOST", host),
            ("MP_SMTP_RELAY_AUTH", auth),
            ("MP_SMTP_RELAY_USERNAME", "u"),
            ("MP_SMTP_RELAY_PASSWORD", "p"),
            ("MP_SMTP_RELAY_SECRET", "p"),
        ];
        let forward = [
            ("MP_SMTP_FORWARD_HOST", host),
            ("MP_SMTP_FORWARD_AUTH", auth),
            ("MP_SMTP_FORWARD_USERNAME", "u"),
            ("MP_SMTP_FORWARD_PASSWORD", "p"),
            ("MP_SMTP_FORWARD_SECRET", "p"),
            ("MP_SMTP_FORWARD_TO", "ann@x.org"),
        ];
        let file = format!("host: {host}\nauth: {auth}\nusername: u\npassword: p\nsecret: p\n");
        let forward_file = format!("{file}to: ann@x.org\n");
        assert_eq!(encryption(&relay, ""), expected, "{auth} {host}");
        assert_eq!(encryption(&forward, ""), expected, "{auth} {host}");
        assert_eq!(encryption(&[("smtp-relay-config", "/file")], &file), expected, "{file}");
        assert_eq!(encryption(&[("smtp-forward-config", "/file")], &forward_file), expected, "{forward_file}");
        let with_starttls = format!("{file}starttls: true\n");
        let required = (TargetTls::StartTls, true, false);
        assert_eq!(encryption(&[("smtp-relay-config", "/file")], &with_starttls), required, "{with_starttls}");
    }
}

#[test]
fn maps_forwarding() {
    let values = [
        HOST,
        ("MP_SMTP_FORWARD_HOST", "fw"),
        ("MP_SMTP_FORWARD_TLS", "true"),
        ("MP_SMTP_FORWARD_TO", "Ann <ann@x.org>, bob@x.org"),
    ];
    let expected = [
        "relay.targets=relay smtp://mx.example.org:25 starttls=never allow=*,\
         forward smtps://fw:25 allow=ann%40x.org|bob%40x.org",
        "relay.forward=forward to=ann%40x.org|bob%40x.org",
        "relay.private=true",
    ];
    assert_eq!(map_values(&values, "").0, expected);
}

#[test]
fn values_of_the_file_override_variables() {
    let file = "# relay\nhost: mx2 # main\nport: 2525\nstarttls: true\nauth: login\nusername: me\n\
                password: 'p: #w'\nrecipient-allowlist: '@x.org$'\nforward-smtp-errors: true\nlabel: x\n";
    let values = [
        HOST,
        ("smtp-relay-config", "/file"),
        ("MP_SMTP_RELAY_PORT", "25"),
        ("MP_SMTP_RELAY_RETURN_PATH", "bounce@x.org"),
    ];
    let (settings, mapped) = map_values(&values, file);
    assert_eq!(mapped.problems, Vec::<String>::new());
    let expected = "relay.targets=relay smtp://me:p%3A%20%23w@mx2:2525 starttls=required auth=login \
                    returnpath=bounce%40x.org allow=/%40x.org%24/";
    assert_eq!(settings[0], expected);
    let warnings = [
        format!("no effect because {SENT_LATER}: forward-smtp-errors in /file"),
        "unknown keys in /file are ignored: label".to_owned(),
    ];
    assert_eq!(mapped.warnings, warnings);
}

#[test]
fn nothing_is_mapped_without_a_host_or_in_demo_mode() {
    // The variables that Quarkus sets.
    let quarkus = [
        ("MP_SMTP_RELAY_PORT", "25"),
        ("MP_SMTP_RELAY_STARTTLS", "false"),
        ("MP_SMTP_RELAY_TLS", "false"),
        ("MP_SMTP_RELAY_ALLOW_INSECURE", "false"),
        ("MP_SMTP_RELAY_AUTH", "none"),
        ("smtp-relay-all", "false"),
    ];
    let demo = [HOST, ("smtp-relay-all", "true"), ("MP_DEMO_MODE", "true")];
    for values in [&quarkus[..], &demo[..]] {
        let (settings, mapped) = map_values(values, "");
        assert!(settings.is_empty() && mapped.problems.is_empty() && mapped.warnings.is_empty(), "{mapped:?}");
    }
}

#[test]
fn reports_problems() {
    let table: &[(Values<'_>, &str)] = &[
        (&[("smtp-relay-all", "true")], "messages can be relayed only with a relay: set MP_SMTP_RELAY_HOST"),
        (&[("smtp-relay-matching", "x")], "messages can be relayed only with a relay"),
        (
            &[("smtp-relay-config", "/none"), ("smtp-relay-all", "true")],
            "variable smtp-relay-config = \"/none\": the file cannot be read",
        ),
        (&[("smtp-relay-config", "/file")], "variable smtp-relay-config = \"/file\": line 2 is not of the form"),
        (&[HOST, ("MP_SMTP_RELAY_AUTH", "ntlm")], "variable MP_SMTP_RELAY_AUTH = \"ntlm\": must be none, plain, login"),
        (
            &[HOST, ("MP_SMTP_RELAY_AUTH", "plain"), ("MP_SMTP_RELAY_SECRET", "hunter2")],
            "the relay server needs a username and a password for the authentication plain",
        ),
        (
            &[HOST, ("MP_SMTP_RELAY_AUTH", "cram-md5"), ("MP_SMTP_RELAY_PASSWORD", "hunter2")],
            "the relay server needs a username and a secret for the authentication cram-md5",
        ),
        (
            &[HOST, ("MP_SMTP_RELAY_TLS", "true"), ("MP_SMTP_RELAY_STARTTLS", "true")],
            "TLS and STARTTLS of the relay server exclude each other",
        ),
        (&[HOST, ("MP_SMTP_RELAY_PORT", "65536")], "variable MP_SMTP_RELAY_PORT = \"65536\": must be a port"),
        (&[("MP_SMTP_RELAY_HOST", "a,b")], "variable MP_SMTP_RELAY_HOST = \"a,b\": must be a host name"),
        (
            &[HOST, ("MP_SMTP_RELAY_OVERRIDE_FROM", "dev")],
            "MP_SMTP_RELAY_OVERRIDE_FROM = \"dev\": must be a mail address",
        ),
        (&[("MP_SMTP_FORWARD_HOST", "fw")], "messages can be forwarded only to addresses: set MP_SMTP_FORWARD_TO"),
        (
            &[("MP_SMTP_FORWARD_HOST", "fw"), ("MP_SMTP_FORWARD_TO", "a@x.org,bob")],
            "variable MP_SMTP_FORWARD_TO = \"a@x.org,bob\": must be a mail address",
        ),
    ];
    for (values, expected) in table {
        let (settings, mapped) = map_values(values, "host: x\nhunter2\n");
        let [problem] = &mapped.problems[..] else { panic!("{values:?}: {:?}", mapped.problems) };
        assert!(problem.contains(expected) && !problem.contains("hunter2"), "{problem}");
        assert!(settings.is_empty(), "{settings:?}");
    }
    let (_, mapped) = map_values(&[("smtp-relay-config", "/file")], "port: 25\n");
    assert_eq!(mapped.problems, ["variable smtp-relay-config = \"/file\": the file has no host"]);
    let (_, mapped) = map_values(&[("smtp-relay-config", "/file")], "host: x\ntls: perhaps\n");
    assert!(mapped.problems[0].starts_with("tls in line 2 of /file = \"perhaps\": must be true"), "{mapped:?}");
}
