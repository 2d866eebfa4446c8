//! The settings that say where mail is kept, and how much of it.

use restante::config::Command;

use crate::{World, env, file, flags, place};

/// Names and what they stand for: variables and their values, files and their texts.
type Pairs<'a> = &'a [(&'a str, &'a str)];

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
