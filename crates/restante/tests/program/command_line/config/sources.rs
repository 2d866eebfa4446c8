//! The sources of values: flags, variables of both prefixes and files, and their precedence.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use restante_mail::naming::Naming;
use restante_net::ListenAddr;
use restante_settings::{AllowList, Level, LogOutput, SETTINGS, Scripting};
use restante_webhook::{EventKind, Target};

use super::{ProcessInput, env, file, flags, storage_location};

#[test]
fn default_values() {
    let config = ProcessInput::default().config();
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
    assert_eq!(config.smtp.transcript_bytes, 8 << 20);
    assert_eq!(config.web.addr, [ListenAddr::Localhost(9000)]);
    assert_eq!(config.web.hosts, AllowList::Only(Vec::new()));
    assert_eq!(config.storage.max_bytes, 1 << 30);
    assert_eq!(config.storage.retention_period, Some(Duration::from_hours(24)));
    assert_eq!((config.storage.mailbox_msg_cap, config.storage.max_messages), (Some(500), None));
    assert_eq!(config.scripting.paths, [Path::new("restante.lua"), Path::new("inbucket.lua")]);
    assert!(config.scripting.trusted_files_only);
    assert_eq!((config.scripting.sandbox, config.scripting.states), (false, None));
    assert_eq!((config.scripting.timeout, config.scripting.memory_bytes), (Duration::from_secs(10), 64 << 20));
    assert!(config.webhooks.targets.is_empty() && config.webhooks.secret.is_none());
    assert!(!config.webhooks.private_addresses);
    assert_eq!(config.webhooks.give_up_after, Duration::from_hours(24));
    assert!(config.relay.targets.is_empty() && config.relay.rules.is_empty() && !config.relay.allow_private_addresses);
    assert_eq!((config.relay.give_up_after, config.relay.max_queued), (Duration::from_hours(24), 10_000));
    assert!(ProcessInput::default().serve().warnings.is_empty());
}

#[test]
fn precedence_is_flag_variable_file_default() {
    let mut input = ProcessInput { files: &[("r.toml", "[smtp]\nmaxrecipients = 3")], ..ProcessInput::default() };
    assert_eq!(input.config().smtp.max_recipients, 200);
    input.args = &["--config", "r.toml"];
    assert_eq!(input.config().smtp.max_recipients, 3);
    input.args = &[];
    input.env = &[("RESTANTE_CONFIG", "r.toml")];
    assert_eq!(input.config().smtp.max_recipients, 3);
    input.env = &[("RESTANTE_CONFIG", "r.toml"), ("INBUCKET_SMTP_MAXRECIPIENTS", "4")];
    assert_eq!(input.config().smtp.max_recipients, 4);
    input.env =
        &[("RESTANTE_SMTP_MAXRECIPIENTS", "5"), ("INBUCKET_SMTP_MAXRECIPIENTS", "4"), ("RESTANTE_CONFIG", "r.toml")];
    assert_eq!(input.config().smtp.max_recipients, 5);
    input.args = &["--smtp-maxrecipients", "6"];
    assert_eq!(input.config().smtp.max_recipients, 6);
    input.args = &["--smtp-maxrecipients", "6", "--smtp-maxrecipients=7"];
    assert_eq!(input.config().smtp.max_recipients, 7);
}

#[test]
fn inbucket_environment_works_unchanged() {
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
        ("INBUCKET_WEB_MONITORVISIBLE", "F"),
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
    assert_eq!(config.smtp.max_inflight_bytes, 500_000_000, "too small for one message");
    assert_eq!(config.web.base_path, "/mail");
    assert!(!config.web.monitor_visible);
    assert_eq!(config.storage.max_bytes, 10_240 << 10);
    assert_eq!(config.storage.mailbox_msg_cap, None);
    assert_eq!(config.storage.retention_period, Some(Duration::from_hours(72)));

    let warnings = loaded.warnings;
    let about = |text: &str| warnings.iter().filter(|warning| warning.contains(text)).count();
    assert_eq!(about("INBUCKET_WEB_COOKIEAUTHKEY"), 1);
    assert_eq!(about("without effect: web.uidir"), 1);
    assert_eq!(about("storage.retentionsleep"), 1);
    assert_eq!(about("web.monitorhistory"), 0, "a default value caused a warning");
    assert_eq!(
        about("greeting is shown: /con/greeting.html (web.greetingfile, variable INBUCKET_WEB_GREETINGFILE)"),
        1
    );
    assert_eq!(config.scripting.paths, [Path::new("/con/inbucket.lua")]);
    assert_eq!(about("lua.path"), 0, "the script file was checked too early");
    assert_eq!(about("without credentials: smtp.addr 0.0.0.0:2500, pop3.addr 0.0.0.0:1100, web.addr 0.0.0.0:9000"), 1);
    assert_eq!(about("is smaller than smtp.maxmessagebytes"), 1);
    assert_eq!(warnings.len(), 5, "{warnings:#?}");
}

#[test]
fn both_prefixes_work_for_every_setting() {
    for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
        for prefix in ["RESTANTE_", "INBUCKET_"] {
            let name = format!("{prefix}{}", setting.variable());
            let loaded = env(&[(&name, setting.default)]).serve();
            let shown =
                loaded.effective.iter().find(|line| line.setting.key == setting.key).expect("the setting is listed");
            assert_eq!(shown.origin.to_string(), format!("variable {name}"));
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        }
    }
}

#[test]
fn foreign_variables_are_ignored_and_unknown_ones_rejected() {
    env(&[
        ("PATH", "/bin"),
        // Kubernetes sets these for a service called `restante`.
        ("RESTANTE_SERVICE_HOST", "10.0.0.1"),
        ("RESTANTE_PORT", "tcp://10.0.0.1:2500"),
        ("RESTANTE_PORT_2500_TCP_ADDR", "10.0.0.1"),
    ])
    .serve();
    let text = env(&[("RESTANTE_SMTP_PORT", "2500"), ("RESTANTE_SMTP_ADRR", "hunter2")]).error_text();
    assert!(text.contains("variable RESTANTE_SMTP_PORT: no such setting"), "{text}");
    assert!(text.contains("variable RESTANTE_SMTP_ADRR: no such setting; did you mean RESTANTE_SMTP_ADDR?"), "{text}");
    assert!(!text.contains("hunter2"), "the value of an unknown variable is shown: {text}");
}

#[test]
fn configuration_file() {
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
    assert!(file(&[("r.toml", text)]).error_text().contains("file r.toml:"));

    let config = file(&[("r.toml", &text.replace("[smtp]", ""))]).error_text();
    assert!(config.contains("storage.defaultaccept (file r.toml:13): no such setting"), "{config}");

    let text = text.replace("smtp.domain", "logjson = true\n mailboxnaming = \"domain\" #");
    let config = file(&[("r.toml", &text)]).config();
    assert_eq!(config.log.level, Level::Warn);
    assert!(config.log.json);
    assert_eq!(config.mailbox_naming, Naming::Domain);
    assert_eq!(
        config.web.addr,
        [ListenAddr::Localhost(0), ListenAddr::Unix { path: "/run/web.sock".into(), mode: None }]
    );
    let proxy: IpAddr = "10.1.2.3".parse().expect("an address");
    assert!(config.web.trusted_proxies[0].contains(proxy) && !config.web.trusted_proxies[1].contains(proxy));
    assert_eq!(config.storage.max_bytes, 2048 << 10);
    assert_eq!(config.storage.retention_period, None);
    assert!(!config.smtp.policy.default_accept);
}

#[test]
fn script_and_webhook_settings() {
    let text = r#"
        [lua]
        path = "/dev/null"
        sandbox = true
        timeout = "100ms"
        memorykb = 1024
        states = 3
        maxcalls = 40
        queue = 7
        [webhook]
        urls = ["https://ci.example.org/hook?t=1 events=stored mailboxes=ci-*|QA", "http://other.example.org"]
        secret = "whsec_c2VjcmV0IGtleSBvZiB0d2VudHktZm91cg=="
        private = true
        timeout = "1s"
        giveup = "1m"
        queue = 8
        "#;
    let loaded = file(&[("r.toml", text)]).serve();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let Scripting { paths, trusted_files_only, sandbox, timeout, memory_bytes, states, max_calls, queue } =
        loaded.config.scripting;
    assert_eq!(paths, [Path::new("/dev/null")]);
    assert_eq!((trusted_files_only, sandbox, timeout), (false, true, Duration::from_millis(100)));
    assert_eq!((memory_bytes, states, max_calls, queue), (1 << 20, Some(3), 40, 7));
    let webhooks = loaded.config.webhooks;
    let first = Target {
        url: "https://ci.example.org/hook?t=1".to_owned(),
        events: vec![EventKind::Stored],
        mailboxes: vec!["ci-*".to_owned(), "QA".to_owned()],
    };
    let second = Target { url: "http://other.example.org".to_owned(), events: Vec::new(), mailboxes: Vec::new() };
    assert_eq!(webhooks.targets, [first, second]);
    assert!(webhooks.secret.is_some() && webhooks.private_addresses);
    assert_eq!(
        (webhooks.timeout, webhooks.give_up_after, webhooks.max_queued),
        (Duration::from_secs(1), Duration::from_mins(1), 8)
    );
}

#[test]
fn relay_settings() {
    let text = r#"
        [smtp]
        domain = "mail.example.org"
        [relay]
        targets = [
          "staging smtp://user:p%2Cw@smtp.example.org:587 allow=*@example.org|qa@x.org",
          "local smtp://127.0.0.1:2525 starttls=never allow=*",
        ]
        forward = ["local", 'staging search="subject:error from:ci" to=qa@x.org']
        private = true
        giveup = "1m"
        queue = 8
        "#;
    let loaded = file(&[("r.toml", text)]).serve();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let settings = loaded.config.relay;
    assert_eq!(settings.max_queued, 8);
    assert_eq!(settings.domain, "mail.example.org");
    assert_eq!((settings.allow_private_addresses, settings.give_up_after), (true, Duration::from_mins(1)));
    let servers: Vec<_> = settings.targets.iter().map(|t| (t.name.as_str(), t.host.as_str(), t.port)).collect();
    assert_eq!(servers, [("staging", "smtp.example.org", 587), ("local", "127.0.0.1", 2525)]);
    let rules: Vec<_> = settings.rules.iter().map(|rule| (rule.target.as_str(), rule.search.as_deref())).collect();
    assert_eq!(rules, [("local", None), ("staging", Some("subject:error from:ci"))]);

    let variables = [
        ("RESTANTE_RELAY_TARGETS", "a smtps://mx.example.org allow=*,b smtp://mx.example.org allow=*"),
        ("RESTANTE_RELAY_FORWARD", "b tags=error"),
        ("RESTANTE_RELAY_GIVEUP", "720h"),
    ];
    let relay = env(&variables).config().relay;
    assert_eq!((relay.targets.len(), relay.rules.len()), (2, 1));
    assert_eq!((relay.targets[0].port, relay.targets[1].port), (465, 25));
    assert_eq!((relay.rules[0].target.as_str(), &relay.rules[0].tags[..]), ("b", &["error".to_owned()][..]));
}

#[test]
fn unreadable_greeting_causes_one_warning() {
    assert_eq!(flags(&["--web-greetingfile=/proc/version"]).serve().warnings, Vec::<String>::new());
    for (path, error) in [("/no/such/file", "No such file or directory (os error 2)"), ("/tmp", "not a regular file")] {
        let loaded = flags(&["--web-greetingfile", path]).serve();
        let expected = format!(
            "the built-in greeting is shown: {path} (web.greetingfile, flag --web-greetingfile) cannot be read: {error}"
        );
        assert_eq!(loaded.warnings, [expected]);
    }
}

#[test]
fn settings_of_the_container_image_are_valid() {
    let text = include_str!("../../../../../../packaging/container.toml");
    // The user of this test may not be allowed to write to the root directory.
    let text = text.replace("\"/storage\"", "\"/tmp/storage\"");
    let files = [("r.toml", text.as_str())];
    let mut input = file(&files);
    let config = input.config();
    assert_eq!(config.smtp.addr, [ListenAddr::Any(2500)]);
    assert_eq!(config.smtp.timeout, Duration::from_secs(30));
    assert!(config.smtp.policy.discard_domains.matches("bitbucket.local"));
    assert!(!config.web.hosts.allows("evil.example"));
    assert!(config.log.json);
    assert_eq!(config.storage.retention_period, Some(Duration::from_hours(72)));
    assert_eq!(config.storage.mailbox_msg_cap, Some(300));
    assert_eq!(storage_location(&input).as_deref(), Some("/tmp/storage"));
    let warnings = input.serve().warnings;
    // A missing greeting or script causes no warning.
    assert!(warnings.len() == 1 && warnings[0].starts_with("other machines reach"), "{warnings:?}");
    assert_eq!(config.web.greeting_file.as_deref(), Some(Path::new("/config/greeting.html")));

    // Environment variables for Inbucket's image override the file of our image.
    input.env = &[("INBUCKET_SMTP_ADDR", "0.0.0.0:3025"), ("INBUCKET_STORAGE_TYPE", "memory")];
    assert_eq!(input.config().smtp.addr[0].to_string(), "0.0.0.0:3025");
    assert_eq!(storage_location(&input), None);
    assert_eq!(input.serve().warnings.len(), 1);
    input.env = &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "path:/tmp/elsewhere")];
    assert_eq!(storage_location(&input).as_deref(), Some("/tmp/elsewhere"));
}

#[test]
fn inbucket_flags_with_one_dash_work() {
    let config = flags(&["-logjson", "-netdebug", "-logfile", "stdout", "-pidfile=/dev/null"]).config();
    assert!(config.log.json && config.log.netdebug);
    assert_eq!(config.log.output, LogOutput::Stdout);
    assert_eq!(config.pidfile.as_deref(), Some(Path::new("/dev/null")));
}

/// A shell that uses the client commands can start a server too. All other unknown variables are errors.
#[test]
fn variables_of_client_commands_are_not_settings() {
    let commands: Vec<(&str, &str)> = restante_cli::ENVIRONMENT_VARIABLES.iter().map(|name| (*name, "x")).collect();
    assert_eq!(env(&commands).serve().warnings, ProcessInput::default().serve().warnings);
    assert!(env(&[("RESTANTE_SERVERS", "x")]).error_text().contains("RESTANTE_SERVERS"));
}
