//! Converts the values of Mailpit's options to values of settings. The table of options refers to these functions.

#![expect(clippy::unnecessary_wraps, reason = "all conversions have the type that the table needs")]

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use restante_settings::parse_boolean;
use restante_transfer::mailpit_table_prefix;

/// The end of the name of the data directory beside Mailpit's database.
const DATA_SUFFIX: &str = ".restante";
/// The extension of a database that the name of the data directory leaves out.
const DATABASE_EXTENSION: &str = "db";
/// The name of Mailpit's database in a directory.
const DATABASE_NAME: &str = "mailpit.db";
/// The largest message that can be configured, in bytes.
const MAX_MESSAGE_BYTES: u64 = 1 << 31;

/// Settings and their values, or what is accepted.
type Settings = Result<Vec<(&'static str, String)>, String>;
/// The settings in the row of the table, of which there is at least one.
type Keys<'a> = &'a [&'static str];

/// Returns the directory in which messages are stored instead of this database. It is beside the database file, so that
/// the file is never touched and the directory is in the same volume. Each tenant has its own directory.
pub(super) fn data_directory(database: &str, tenant: &str) -> PathBuf {
    let file = database_file(database);
    let name = Path::new(file.file_name().unwrap_or_default());
    // Other extensions are kept: two databases must not have the same directory.
    let stem = name.file_stem().filter(|_| name.extension().is_some_and(|extension| extension == DATABASE_EXTENSION));
    let mut directory = stem.unwrap_or(name.as_os_str()).to_owned();
    if let Some(tenant) = mailpit_table_prefix(tenant).strip_suffix('_') {
        directory.push("@");
        directory.push(tenant);
    }
    directory.push(DATA_SUFFIX);
    file.with_file_name(directory)
}

/// Returns the file that Mailpit would use: in a directory it has a fixed name.
pub(super) fn database_file(database: &str) -> PathBuf {
    let path = PathBuf::from(database);
    if path.is_dir() { path.join(DATABASE_NAME) } else { path }
}

/// Converts an address to listen on. `[::]` is all interfaces, also if the machine has no IPv6. Unix sockets are written
/// alike in both programs.
pub(super) fn listen_addr(text: &str) -> Result<String, String> {
    if text.starts_with("unix:") {
        return Ok(text.to_owned());
    }
    let port = text.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok());
    match port {
        Some(("" | "[::]", port)) => Ok(format!(":{port}")),
        Some(_) => Ok(text.to_owned()),
        None => Err("must be an address and a port, such as 0.0.0.0:8025 or [::]:8025".to_owned()),
    }
}

pub(super) fn database(_: Keys<'_>, value: &str) -> Settings {
    if value.contains("://") {
        return Err("must be the path of a file or a directory: rqlite is not supported".to_owned());
    }
    Ok(vec![("storage.path", data_directory(value, "").display().to_string())])
}

pub(super) fn max_message_size(_: Keys<'_>, value: &str) -> Settings {
    let mebibytes: u64 = value.parse().map_err(|_| "must be a whole number of MiB such as 50".to_owned())?;
    let bytes = match mebibytes {
        0 => MAX_MESSAGE_BYTES,
        _ => mebibytes.saturating_mul(1024 * 1024).min(MAX_MESSAGE_BYTES),
    };
    Ok(vec![("smtp.maxmessagebytes", bytes.to_string())])
}

pub(super) fn quiet(_: Keys<'_>, value: &str) -> Settings {
    level_if(value, "error")
}

pub(super) fn verbose(_: Keys<'_>, value: &str) -> Settings {
    level_if(value, "debug")
}

fn level_if(value: &str, level: &str) -> Settings {
    Ok(if parse_boolean(value)? { vec![("loglevel", level.to_owned())] } else { Vec::new() })
}

pub(super) fn addr(keys: Keys<'_>, value: &str) -> Settings {
    Ok(vec![(keys[0], listen_addr(value)?)])
}

/// Mailpit creates a certificate for the names after `sans:`. The last setting is the file, the others enable TLS.
pub(super) fn certificate(keys: Keys<'_>, value: &str) -> Settings {
    let file = if value.starts_with("sans:") { "self-signed" } else { value };
    let (file_key, enabled) = (keys[keys.len() - 1], &keys[..keys.len() - 1]);
    let enabled = enabled.iter().map(|key| (*key, "true".to_owned()));
    Ok(enabled.chain([(file_key, file.to_owned())]).collect())
}

pub(super) fn key(keys: Keys<'_>, value: &str) -> Settings {
    Ok(if value.starts_with("sans:") { Vec::new() } else { vec![(keys[0], value.to_owned())] })
}

/// Mailpit's origins are host names, with any scheme.
pub(super) fn cors_origins(_: Keys<'_>, value: &str) -> Settings {
    let origins = value.split([',', ' ']).filter(|host| !host.is_empty()).map(|host| {
        if host == "*" || host.contains("://") { host.to_owned() } else { format!("http://{host},https://{host}") }
    });
    Ok(vec![("web.corsorigins", origins.collect::<Vec<_>>().join(","))])
}

/// The hosts may have a port. IP addresses are left out, because requests for them are always accepted.
pub(super) fn allowed_hosts(_: Keys<'_>, value: &str) -> Settings {
    let is_address = |host: &str| host.starts_with('[') || host.parse::<IpAddr>().is_ok();
    let without_port = |host: &str| host.rsplit_once(':').map_or(host, |(name, _)| name).to_owned();
    let hosts = value.split([',', ' ']).filter(|host| !host.is_empty() && !is_address(host)).map(without_port);
    Ok(vec![("web.hosts", hosts.filter(|name| !is_address(name)).collect::<Vec<_>>().join(","))])
}

pub(super) fn tags_disable(_: Keys<'_>, value: &str) -> Settings {
    let keys = |word: &str| match word.trim().to_ascii_lowercase().as_str() {
        "x-tags" | "xtags" => Ok(&["tags.header"][..]),
        "plus-addresses" | "plus-addressing" => Ok(&["tags.plusaddresses", "tags.plusheader"][..]),
        _ => Err("must be plus-addresses, x-tags, or both separated by a comma".to_owned()),
    };
    let keys = value.split(',').map(keys).collect::<Result<Vec<_>, String>>()?;
    Ok(keys.into_iter().flatten().map(|key| (*key, "false".to_owned())).collect())
}

/// The operator has chosen the URL, which is often that of a container in the same network.
pub(super) fn webhook_url(_: Keys<'_>, value: &str) -> Settings {
    let target = format!("{} events=stored", value.replace(',', "%2C"));
    Ok(vec![("webhook.urls", target), ("webhook.private", "true".to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_values() {
        let table: &[(Settings, &str)] = &[
            (max_message_size(&[], "1"), "smtp.maxmessagebytes=1048576"),
            (max_message_size(&[], "0"), "smtp.maxmessagebytes=2147483648"),
            (addr(&["web.addr"], "[::]:80"), "web.addr=:80"),
            (addr(&["web.addr"], "0.0.0.0:80"), "web.addr=0.0.0.0:80"),
            (addr(&["smtp.addr"], "unix:/run/smtp.sock:660"), "smtp.addr=unix:/run/smtp.sock:660"),
            (
                certificate(&["smtp.tlsenabled", "smtp.tlscert"], "sans:localhost"),
                "smtp.tlsenabled=true smtp.tlscert=self-signed",
            ),
            (key(&["smtp.tlsprivkey"], "sans:localhost"), ""),
            (
                cors_origins(&[], "a.test, https://b.test"),
                "web.corsorigins=http://a.test,https://a.test,https://b.test",
            ),
            (allowed_hosts(&[], "a.test, B.test:8025,127.0.0.1,127.0.0.1:80,[::1]:80,::1"), "web.hosts=a.test,B.test"),
            (
                tags_disable(&[], "X-Tags,plus-addresses"),
                "tags.header=false tags.plusaddresses=false tags.plusheader=false",
            ),
            (webhook_url(&[], "http://ci/a,b"), "webhook.urls=http://ci/a%2Cb events=stored webhook.private=true"),
            (database(&[], "/data/mailpit.db"), "storage.path=/data/mailpit.restante"),
            (quiet(&[], "0"), ""),
        ];
        for (settings, expected) in table {
            let settings = settings.as_ref().expect("a valid value");
            let text: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(text.join(" "), *expected);
        }
        for (database, tenant, directory) in [
            ("/data/mailpit.db", "", "/data/mailpit.restante"),
            ("/data/mailpit.db", " ", "/data/mailpit.restante"),
            ("/data/mailpit.db", "acme", "/data/mailpit@acme.restante"),
            ("/data/mailpit.db", "Acme_", "/data/mailpit@acme.restante"),
            ("/data/mailpit.db", "acme__", "/data/mailpit@acme_.restante"),
            ("/data/mailpit.db", "../a b/é", "/data/mailpit@___a_b_.restante"),
            ("/data/mailpit.acme.db", "", "/data/mailpit.acme.restante"),
            ("/data/app.dev", "", "/data/app.dev.restante"),
            ("/data/app.test", "acme", "/data/app.test@acme.restante"),
            ("mail", "", "mail.restante"),
        ] {
            assert_eq!(data_directory(database, tenant), PathBuf::from(directory), "{database} {tenant}");
        }
        for wrong in [addr(&["web.addr"], "8025"), tags_disable(&[], "all"), database(&[], "http://db:4001")] {
            assert!(wrong.is_err(), "{wrong:?}");
        }
    }
}
