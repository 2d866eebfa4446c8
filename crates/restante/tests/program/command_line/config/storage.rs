//! The settings of the storage location and its limits.

use restante::command_line::Command;

use super::{ProcessInput, env, file, flags, storage_location};

/// Variables with their values, or files with their contents.
type Pairs<'a> = &'a [(&'a str, &'a str)];

#[test]
fn storage_location_of_files_and_memory() {
    let (a, b) = ("/tmp/restante-a", "/tmp/restante-b");
    let in_file: &[(&str, &str)] = &[("r.toml", "storage.path = '/tmp/restante-a'")];
    let in_image: &[(&str, &str)] = &[("r.toml", "storage = { type = 'file', params = { path = '/tmp/restante-a' } }")];
    let cases: &[(&[&str], Pairs<'_>, Pairs<'_>, Option<&str>)] = &[
        (&[], &[], &[], None),
        (&["--storage-type", "memory"], &[], &[], None),
        // A directory is sufficient.
        (&["--data", a], &[], &[], Some(a)),
        (&["--storage-path", a], &[], &[], Some(a)),
        (&[], &[("RESTANTE_STORAGE_PATH", a)], &[], Some(a)),
        (&["--config=r.toml"], &[], in_file, Some(a)),
        (&["--data", a, "--storage-type", "file"], &[], &[], Some(a)),
        // A path in the parameters has an effect only for the type that it belongs to.
        (&[], &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-a")], &[], Some(a)),
        (&[], &[("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-a")], &[], None),
        (&["--data", a, "--storage-params", "path:/tmp/restante-a"], &[], &[], Some(a)),
        (&["--data", b], &[("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-a")], &[], Some(b)),
        // Sources of higher precedence override a file or an image.
        (&["--config=r.toml"], &[], in_image, Some(a)),
        (&["--config=r.toml"], &[("INBUCKET_STORAGE_TYPE", "memory")], in_image, None),
        (&["--config=r.toml"], &[("INBUCKET_STORAGE_PARAMS", "path:/tmp/restante-b")], in_image, Some(b)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_PATH", b)], in_image, Some(b)),
        (&["--config=r.toml", "--data", b], &[], in_image, Some(b)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_TYPE", "memory")], in_file, None),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_PATH", "")], in_file, None),
        (&["--data", a], &[("RESTANTE_STORAGE_TYPE", "memory")], &[], Some(a)),
        (&[], &[("INBUCKET_STORAGE_TYPE", "memory"), ("RESTANTE_STORAGE_PATH", a)], &[], Some(a)),
        (&[], &[("RESTANTE_STORAGE_TYPE", "memory"), ("INBUCKET_STORAGE_PATH", a)], &[], None),
    ];
    for &(args, env, files, expected) in cases {
        assert_eq!(
            storage_location(&ProcessInput { args, env, files }).as_deref(),
            expected,
            "{args:?} {env:?} {files:?}"
        );
        // The effective settings are a configuration file with the same effect.
        let check = ProcessInput { args: &[&["config", "check"], args].concat(), env, files }.exit();
        assert_eq!(storage_location(&file(&[("r.toml", &check.text)])).as_deref(), expected, "{}", check.text);
    }
}

#[test]
fn storage_location_of_databases() {
    let (url, db) = ("postgres://u:hunter2@db/mail", "db:5432/mail");
    let dir = "/tmp/restante-a";
    let in_file: Pairs<'_> = &[("r.toml", "storage.url = 'postgres://u:hunter2@other/mail'")];
    let in_image: Pairs<'_> =
        &[("r.toml", "storage = { type = 'file', params = { path = '/tmp/restante-a', maxkb = 20480 } }")];
    let in_both: Pairs<'_> = &[("r.toml", "storage = { url = 'postgres://u:hunter2@db/mail', type = 'postgres' }")];
    let cases: &[(&[&str], Pairs<'_>, Pairs<'_>, Option<&str>)] = &[
        // A URL is sufficient.
        (&["--storage-url", url], &[], &[], Some(db)),
        (&[], &[("RESTANTE_STORAGE_URL", url)], &[], Some(db)),
        (&["--config=r.toml"], &[], in_file, Some("other:5432/mail")),
        (&["--config=r.toml"], &[], in_both, Some(db)),
        (&[], &[("RESTANTE_STORAGE_URL", url), ("RESTANTE_STORAGE_TYPE", "postgres")], &[], Some(db)),
        (&["--storage-type", "postgres"], &[("RESTANTE_STORAGE_URL", url)], &[], Some(db)),
        (&["--storage-url", url], &[("RESTANTE_STORAGE_TYPE", "postgres")], &[], Some(db)),
        // Sources of higher precedence override a file or an image.
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_URL", url)], in_image, Some(db)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_URL", url)], in_file, Some(db)),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_URL", "")], in_file, None),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_TYPE", "memory")], in_file, None),
        (&["--config=r.toml"], &[("RESTANTE_STORAGE_PATH", dir)], in_file, Some(dir)),
        (&["--config=r.toml", "--data", dir], &[], in_both, Some(dir)),
        (&["--data", dir], &[("RESTANTE_STORAGE_URL", url)], &[], Some(dir)),
        (&["--storage-url", url], &[("RESTANTE_STORAGE_PATH", dir)], &[], Some(db)),
        // Conflicts between sources of lower precedence have no effect.
        (
            &["--storage-url", url],
            &[("RESTANTE_STORAGE_PATH", dir), ("RESTANTE_STORAGE_TYPE", "memory")],
            &[],
            Some(db),
        ),
    ];
    for &(args, env, files, expected) in cases {
        let input = ProcessInput { args, env, files };
        assert_eq!(storage_location(&input).as_deref(), expected, "{args:?} {env:?} {files:?}");
        let warnings = input.serve().warnings;
        let mut others = warnings.iter().filter(|warning| !warning.ends_with("set auth.secret"));
        assert_eq!(others.next(), None, "{args:?} {env:?} {files:?}");
        let check = ProcessInput { args: &[&["config", "check"], args].concat(), env, files }.exit().text;
        let shown =
            if expected == Some(dir) || expected.is_none() { "storage.url = \"\"" } else { "storage.url = \"***\"" };
        assert!(check.contains(shown) && !check.contains("hunter2"), "{args:?} {env:?} {check}");
    }
    let storage = ProcessInput { args: &["--config=r.toml"], env: &[("RESTANTE_STORAGE_URL", url)], files: in_image }
        .config()
        .storage;
    assert_eq!((storage.max_bytes, storage.connections), (20 << 20, 10), "the size limit differs");
    assert_eq!(flags(&["--storage-url", url]).config().storage.max_bytes, 0);
}

#[test]
fn conflicting_storage_locations_are_rejected() {
    let cases: &[(&[&str], Pairs<'_>, &str)] = &[
        (
            &["--data", "/tmp/a", "--storage-type", "memory"],
            &[],
            "storage.path = \"/tmp/a\" (flag --storage-path): conflicts with storage.type = \"memory\" (flag --storage-type)",
        ),
        (
            &[],
            &[("RESTANTE_STORAGE_PATH", "/tmp/a"), ("RESTANTE_STORAGE_TYPE", "memory")],
            "(variable RESTANTE_STORAGE_PATH): conflicts with storage.type = \"memory\" (variable RESTANTE_STORAGE_TYPE)",
        ),
        (
            &["--data", "/tmp/a", "--storage-params", "path:/tmp/b"],
            &[],
            "storage.path = \"/tmp/a\" (flag --storage-path): storage.params (flag --storage-params) names another \
             directory, /tmp/b",
        ),
        (
            &[],
            &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "maxkb:1")],
            "requires a data directory",
        ),
        (
            &["--storage-url", "postgres://u:hunter2@db/mail", "--storage-type", "memory"],
            &[],
            "storage.url = \"***\" (flag --storage-url): conflicts with storage.type = \"memory\" (flag --storage-type)",
        ),
        (
            &[],
            &[("RESTANTE_STORAGE_URL", "postgres://u:hunter2@db/mail"), ("RESTANTE_STORAGE_TYPE", "file")],
            "(variable RESTANTE_STORAGE_URL): conflicts with storage.type = \"file\" (variable RESTANTE_STORAGE_TYPE)",
        ),
        (
            &["--storage-url", "postgres://u:hunter2@db/mail", "--data", "/tmp/a"],
            &[],
            "storage.url = \"***\" (flag --storage-url): conflicts with storage.path = \"/tmp/a\" (flag --storage-path)",
        ),
        (
            &["--storage-type", "postgres", "--data", "/tmp/a"],
            &[],
            "storage.path = \"/tmp/a\" (flag --storage-path): conflicts with storage.type = \"postgres\"",
        ),
        (
            &["--storage-type", "postgres"],
            &[("RESTANTE_STORAGE_PATH", "/tmp/a")],
            "storage.type = \"postgres\" (flag --storage-type): requires storage.url",
        ),
        (
            &[],
            &[("INBUCKET_STORAGE_TYPE", "file"), ("INBUCKET_STORAGE_PARAMS", "path:/proc/version")],
            "storage.params = \"path:/proc/version\" (variable INBUCKET_STORAGE_PARAMS): cannot be used: ",
        ),
    ];
    for &(args, env, expected) in cases {
        let text = ProcessInput { args, env, ..ProcessInput::default() }.error_text();
        assert!(text.starts_with("restante: the configuration has an error:"), "{text}");
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

/// An import or export needs no server settings, and an export needs no write access to the data directory.
#[test]
fn transfer_commands_validate_only_their_settings() {
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
        let command = ProcessInput { args, env: server_only, ..ProcessInput::default() }.parse();
        assert_eq!(!matches!(command, Command::Exit(_)), expected, "{args:?}");
    }
}

#[test]
fn size_limit_of_a_store() {
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
fn warnings_about_ineffective_storage_settings() {
    let params = ("INBUCKET_STORAGE_PARAMS", "path:/tmp/a");
    assert!(env(&[params]).serve().warnings[0].contains("has no effect on the memory store"));
    let loaded = ProcessInput { args: &["--storage-type=memory"], ..env(&[params]) }.serve();
    assert_eq!(loaded.warnings, Vec::<String>::new(), "an override caused a warning");
    let url = "--storage-url=postgres://u@db/mail";
    let cases: &[(&[&str], &str)] = &[
        (&[url, "--storage-params=path:/tmp/a"], "the path in storage.params has no effect on the store in PostgreSQL"),
        (&[url, "--storage-durability=relaxed"], "storage.durability has no effect on a store in PostgreSQL"),
        (&["--storage-connections=5"], "storage.connections has no effect without storage.url"),
    ];
    for (args, expected) in cases {
        let args = [args, &["--auth-secret=0123456789abcdef0123456789abcdef"][..]].concat();
        let warnings = flags(&args).serve().warnings;
        assert!(matches!(&warnings[..], [warning] if warning.contains(expected)), "{args:?} {warnings:?}");
    }
}
