//! Output: help, the effective configuration and the reference page. Secrets are masked.

use restante_net::ListenAddr;
use restante_settings::{Level, SETTINGS, Status, render_docs};

use super::{ProcessInput, env, file, flags};

#[test]
fn secrets_are_masked_everywhere() {
    let good: &[_] = &[("RESTANTE_SMTP_CREDENTIALS", "joe:hunter2,ann:hunter2")];
    let loaded = env(good).serve();
    let first = &loaded.config.smtp.credentials[0];
    assert_eq!((first.user.as_str(), first.password.expose()), ("joe", "hunter2"));
    assert!(!format!("{loaded:?}").contains("hunter2"));
    let check = ProcessInput { args: &["config", "check"], env: good, ..ProcessInput::default() }.exit();
    assert!(check.text.contains("smtp.credentials = \"***\""), "{}", check.text);
    assert!(!check.text.contains("hunter2"), "{}", check.text);

    for bad in ["hunter2", "joe:hunter2,:hunter2", "joe:hunter2,joe:hunter2", "joe:"] {
        let text = env(&[("RESTANTE_SMTP_CREDENTIALS", bad)]).error_text();
        assert!(text.contains("smtp.credentials = \"***\" (variable RESTANTE_SMTP_CREDENTIALS): entry "), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    for bad in ["[smtp]\ncredentials = 'joe:hunter2", "[smtp]\ncredentials = ['joe:hunter2,']"] {
        assert!(!file(&[("r.toml", bad)]).error_text().contains("hunter2"), "{bad}");
    }
}

#[test]
fn webhooks_are_masked_like_passwords() {
    let good: &[_] =
        &[("RESTANTE_WEBHOOK_URLS", "https://h.example/hunter2"), ("RESTANTE_WEBHOOK_SECRET", "hunter2 and hunter2")];
    assert!(!format!("{:?}", env(good).serve()).contains("hunter2"));
    let check = ProcessInput { args: &["config", "check"], env: good, ..ProcessInput::default() }.exit();
    assert!(check.text.contains("webhook.urls = \"***\"") && check.text.contains("webhook.secret = \"***\""));
    assert!(!check.text.contains("hunter2"), "{}", check.text);
    let text = env(&[("RESTANTE_WEBHOOK_URLS", "https://h.example hunter2,hunter2")]).error_text();
    assert!(text.contains("entry 1 ") && text.contains("entry 2 ") && !text.contains("hunter2"), "{text}");
}

#[test]
fn relay_targets_are_masked_like_passwords() {
    let good: &[_] = &[("RESTANTE_RELAY_TARGETS", "a smtp://hunter2:hunter2@mx.example.org allow=*")];
    assert!(!format!("{:?}", env(good).serve()).contains("hunter2"));
    let check = ProcessInput { args: &["config", "check"], env: good, ..ProcessInput::default() }.exit();
    assert!(check.text.contains("relay.targets = \"***\"") && !check.text.contains("hunter2"), "{}", check.text);
    let text = env(&[("RESTANTE_RELAY_TARGETS", "a smtp://u:hunter2%@h,hunter2")]).error_text();
    assert!(text.contains("entry 1 ") && text.contains("entry 2 ") && !text.contains("hunter2"), "{text}");
}

#[test]
fn config_check_prints_the_effective_configuration() {
    let good = flags(&["config", "check", "--loglevel", "warn", "--smtp-addr", ":0"]).exit();
    assert_eq!(good.code, 0);
    let line = |key: &str| good.text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("loglevel = ").starts_with("loglevel = \"warn\" ") && line("loglevel").ends_with("# flag --loglevel"));
    assert!(line("web.addr = ").ends_with("# default"));
    assert!(good.text.contains("# warning: other machines reach this server"), "{}", good.text);
    for setting in SETTINGS {
        assert!(!line(&format!("{} = ", setting.key)).is_empty(), "{}", setting.key);
    }
    // The output is a configuration file with the same effect.
    let again = file(&[("r.toml", &good.text)]).config();
    assert_eq!((again.log.level, &again.smtp.addr[0]), (Level::Warn, &ListenAddr::Any(0)));

    let bad = flags(&["--loglevel", "loud", "config", "check"]).exit();
    assert_eq!(bad.code, 2);
    assert!(bad.text.contains("flag --loglevel"), "{}", bad.text);
}

#[test]
fn long_and_unusual_values_are_escaped() {
    let many = vec!["a.example"; 40].join(",");
    let check = flags(&["config", "check", "--smtp-acceptdomains", &many]).exit();
    assert!(check.text.contains(&format!("smtp.acceptdomains = \"{many}\"")), "{}", check.text);

    let text = flags(&["--smtp-domain", &"\u{1b}\"".repeat(1000)]).error_text();
    assert!(text.len() < 1500 && text.contains("smtp.domain = \"\\u001b\\\"\\u001b"), "{text}");
}

#[test]
fn help_and_version_are_complete() {
    for args in [&["--help"], &["-help"]] {
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
    let short = flags(&["-h"]).exit().text;
    assert!(short.contains("--smtp-addr") && short.contains("--data") && short.contains("restante --help"), "{short}");
    assert!(!short.contains("--smtp-maxrecipients") && short.lines().count() < 95, "{short}");
    let version = flags(&["--version"]).exit();
    assert_eq!((version.code, version.text.trim_end()), (0, concat!("restante ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn help_of_commands_shows_only_the_settings_that_they_use() {
    let table = [
        (&["token", "create"][..], "--auth-tokens", "see restante --help"),
        (&["user", "add"], "--auth-users", "see restante --help"),
        (&["export"], "--data", "see restante --help"),
        (&["import"], "--data", "see restante --help"),
        (&["script", "test"], "--lua-timeout", "see restante --help"),
        (&["health"], "--web-addr", "All settings can be given as flags"),
        (&["config", "check"], "--config", "All settings can be given as flags"),
    ];
    for (command, own, note) in table {
        let help = flags(&[command, &["--help"]].concat()).exit();
        assert!(help.text.contains(own) && help.text.contains(note), "{command:?}: {}", help.text);
        assert!(!help.text.contains("--smtp-maxrecipients"), "{command:?}: {}", help.text);
        assert!(help.text.lines().count() < 90, "{command:?}: {}", help.text);
    }
    // The flags that are not shown are accepted.
    assert_eq!(flags(&["config", "check", "--smtp-maxrecipients", "7"]).exit().code, 0);
}

#[test]
fn invalid_command_lines_get_hints() {
    let table = [
        (&["serve"][..], "The server starts without a command: leave out serve."),
        (&["--port", "2525"], "Use --smtp-addr localhost:2525 for SMTP, or --web-addr localhost:2525"),
        (&["--listen", "0.0.0.0:8025"], "Use --web-addr 0.0.0.0:8025 for the web interface."),
        (&["--smtp", "1025"], "Use --smtp-addr localhost:1025 for SMTP. To use the flags of Mailpit"),
        (&["--open", "health"], "--open cannot be used with the command health"),
    ];
    for (args, hint) in table {
        let exit = flags(args).exit();
        assert_eq!(exit.code, 2, "{args:?}");
        assert!(exit.text.contains(hint), "{args:?}: {}", exit.text);
    }
}

#[test]
fn reference_page_is_up_to_date() {
    let stored = include_str!("../../../../../../docs/config.md");
    assert!(stored == render_docs(), "docs/config.md is outdated: replace it by the output of `restante config docs`");
    let printed = flags(&["config", "docs"]).exit();
    assert_eq!((printed.code, printed.text.as_str()), (0, stored));
}

#[test]
fn example_contains_every_setting_with_its_default() {
    let example = flags(&["config", "example"]).exit();
    assert_eq!(example.code, 0);
    let enabled: Vec<_> = example
        .text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .collect();
    let enabled = file(&[("r.toml", &enabled.join("\n"))]).serve();
    for line in &enabled.effective {
        let is_in_file = line.origin.to_string().starts_with("file ");
        assert_eq!(is_in_file, line.setting.status == Status::Active, "{}", line.setting.key);
    }
    let defaults = file(&[("r.toml", &example.text)]).serve();
    assert!(defaults.effective.iter().all(|line| !line.origin.to_string().starts_with("file ")));
    assert!(example.text.lines().all(|line| line.len() <= 120));
}

#[test]
fn example_sets_the_given_settings() {
    let args = ["config", "example", "--data", "/var/mail \"x\"", "--smtp-maxrecipients", "7", "--logjson"];
    let example = flags(&args).exit();
    let set: Vec<_> = example.text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '['])).collect();
    assert_eq!(set, ["logjson = true", "maxrecipients = 7", r#"path = '/var/mail "x"'"#]);
    let bad = flags(&["config", "example", "--loglevel", "loud"]).exit();
    assert_eq!(bad.code, 2);
    assert!(bad.text.contains("flag --loglevel"), "{}", bad.text);
}

#[test]
fn configuration_file_of_the_packages_is_up_to_date() {
    let args = ["config", "example", "--data", "/var/lib/restante"];
    let stored = include_str!("../../../../../../packaging/restante.toml");
    let command = format!("restante {} > packaging/restante.toml", args.join(" "));
    assert!(stored == flags(&args).exit().text, "packaging/restante.toml is outdated: run `{command}`");
}

#[test]
fn settings_table_is_consistent() {
    for (index, setting) in SETTINGS.iter().enumerate() {
        let key = setting.key;
        assert!(SETTINGS[..index].iter().all(|other| other.flag() != setting.flag()), "{key} is duplicated");
        assert!(setting.help.ends_with('.'), "{key}: the help is not a sentence");
        assert!(key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.'), "{key}");
        let described = render_docs().contains(&format!("### {key}\n"));
        assert!(described, "{key} is not on the reference page");
        if setting.status == Status::Ignored {
            assert_eq!(setting.default, "", "{key} has no effect but a default");
        }
    }
}

#[test]
fn check_shows_the_apis_of_each_listener() {
    let listeners = "localhost:8025 mailpit,/pit mailpit,localhost:9443 tls /x rest";
    let args = &["config", "check", "--web-listeners", listeners, "--web-tlscert=self-signed"];
    let check = ProcessInput { args, ..ProcessInput::default() }.exit();
    assert_eq!(check.code, 0, "{}", check.text);
    let table = "# The APIs of each listener:\n\
                 #   localhost:9000 / rest web operations mailpit providers\n\
                 #   localhost:8025 / mailpit\n\
                 #   localhost:9000 /pit/ mailpit\n\
                 #   localhost:9443 tls /x/ rest\n";
    assert!(check.text.ends_with(table), "{}", check.text);
}

#[test]
fn check_shows_the_limits_of_mailboxes() {
    let policies = "shop:Keep retention=0 cap=0; shop:* cap=50; run-*:* retention=1h maxkb=10240";
    let args = &["config", "check", "--storage-policies", policies];
    let check = ProcessInput { args, ..ProcessInput::default() }.exit();
    assert_eq!(check.code, 0, "{}", check.text);
    let table = "# The limits of mailboxes by pattern; the first match decides:\n\
                 #   1 shop:keep retention=0s cap=0 maxkb=0\n\
                 #   2 shop:* retention=24h0m0s cap=50 maxkb=0\n\
                 #   3 run-*:* retention=1h0m0s cap=500 maxkb=10240\n";
    assert!(check.text.contains(table), "{}", check.text);
}
