//! The settings that say where mail is kept, and how much of it.

use restante::command_line::Command;

use super::{World, env, file, flags, place};

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
fn mail_that_is_kept_in_a_database() {
    let (url, db) = ("postgres://u:hunter2@db/mail", "db:5432/mail");
    let dir = "/tmp/restante-a";
    let file_says: Pairs<'_> = &[("r.toml", "storage.url = 'postgres://u:hunter2@other/mail'")];
    let image_says: Pairs<'_> =
        &[("r.toml", "storage = { type = 'file', params = { path = '/tmp/restante-a', maxkb = 20480 } }")];
    let both_say: Pairs<'_> = &[("r.toml", "storage = { url = 'postgres://u:hunter2@db/mail', type = 'postgres' }")];
    let cases: &[(&[&str], Pairs<'_>, Pairs<'_>, Option<&str>)] = &[
        // A URL alone says it all.
        (&["--storage-url", url], &[], &[], Some(db)),
        (&[], &[("RESTANTE_STORAGE_URL", url)], &[], Some(db)),
        (&["--config=r.toml"], &[], file_says, Some("other:5432/mail")),
        (&["--config=r.toml"], &[], both_say, Some(db)),
        (&[], &[("RESTANTE_STORAGE_URL", url), ("RESTANTE_STORAGE_TYPE", "postgres")], &[], Some(db)),
        (&["--storage-type", "postgres"], &[("RESTANTE_STORAGE_URL", url)], &[], Some(db)),
        (&["--storage-url", url], &[("RESTANTE_STORAGE_TYPE", "postgres")], &[], Some(db)),
        // Stronger sources overrule what an image or a file says.
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_URL", url)], image_says, Some(db)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_URL", url)], file_says, Some(db)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_URL", "")], file_says, None),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_TYPE", "memory")], file_says, None),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_PATH", dir)], file_says, Some(dir)),
        (&["--config=r.toml", "--data", dir], &[], both_say, Some(dir)),
        (&["--data", dir], &[("RESTANTE_STORAGE_URL", url)], &[], Some(dir)),
        (&["--storage-url", url], &[("RESTANTE_STORAGE_PATH", dir)], &[], Some(db)),
        // What two weaker ones disagree on does not matter.
        (
            &["--storage-url", url],
            &[("RESTANTE_STORAGE_PATH", dir), ("RESTANTE_STORAGE_TYPE", "memory")],
            &[],
            Some(db),
        ),
    ];
    for &(args, env, files, expected) in cases {
        let world = World { args, env, files };
        assert_eq!(place(&world).as_deref(), expected, "{args:?} {env:?} {files:?}");
        assert_eq!(world.serve().warnings, Vec::<String>::new(), "{args:?} {env:?} {files:?}");
        let check = World { args: &[&["config", "check"], args].concat(), env, files }.exit().text;
        let shown =
            if expected == Some(dir) || expected.is_none() { "storage.url = \"\"" } else { "storage.url = \"***\"" };
        assert!(check.contains(shown) && !check.contains("hunter2"), "{args:?} {env:?} {check}");
    }
    let storage =
        World { args: &["--config=r.toml"], env: &[("RESTANTE_STORAGE_URL", url)], files: image_says }.config().storage;
    assert_eq!((storage.max_bytes, storage.connections), (20 << 20, 10), "the bound is the same everywhere");
    assert_eq!(flags(&["--storage-url", url]).config().storage.max_bytes, 0);
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
            &["--storage-url", "postgres://u:hunter2@db/mail", "--storage-type", "memory"],
            &[],
            "storage.url = \"***\" (flag --storage-url): contradicts storage.type = \"memory\" (flag --storage-type)",
        ),
        (
            &[],
            &[("RESTANTE_STORAGE_URL", "postgres://u:hunter2@db/mail"), ("RESTANTE_STORAGE_TYPE", "file")],
            "(variable RESTANTE_STORAGE_URL): contradicts storage.type = \"file\" (variable RESTANTE_STORAGE_TYPE)",
        ),
        (
            &["--storage-url", "postgres://u:hunter2@db/mail", "--data", "/tmp/a"],
            &[],
            "storage.url = \"***\" (flag --storage-url): contradicts storage.path = \"/tmp/a\" (flag --storage-path)",
        ),
        (
            &["--storage-type", "postgres", "--data", "/tmp/a"],
            &[],
            "storage.path = \"/tmp/a\" (flag --storage-path): contradicts storage.type = \"postgres\"",
        ),
        (
            &["--storage-type", "postgres"],
            &[("RESTANTE_STORAGE_PATH", "/tmp/a")],
            "storage.type = \"postgres\" (flag --storage-type): needs storage.url",
        ),
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
    let url = "--storage-url=postgres://u@db/mail";
    let cases: &[(&[&str], &str)] = &[
        (&[url, "--storage-params=path:/tmp/a"], "the path in storage.params has no effect on the store in PostgreSQL"),
        (&[url, "--storage-durability=relaxed"], "storage.durability has no effect on the store in PostgreSQL"),
        (&["--storage-connections=5"], "storage.connections has no effect without storage.url"),
    ];
    for (args, expected) in cases {
        let warnings = flags(args).serve().warnings;
        assert!(matches!(&warnings[..], [warning] if warning.contains(expected)), "{args:?} {warnings:?}");
    }
}
