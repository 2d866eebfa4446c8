//! The address of the database: a URL in the format of libpq, parsed without I/O, and the address that results from
//! reading the files that it names. The TLS options of the URL are in `tls`.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::describe;
use super::tls::{ReadFile, TlsOptions};

/// The port if the URL contains none.
const DEFAULT_PORT: u16 = 5432;

/// The URL of a database, as the operator writes it. It can contain a password, which is never displayed.
#[derive(Clone)]
pub struct Url {
    config: Config,
    tls_options: TlsOptions,
}

/// The address of a database, and the TLS configuration of its connections.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

impl Url {
    /// Reads the certificates and the key that the URL names. The error is a sentence for the operator, without the
    /// password.
    pub fn address(&self, read_file: ReadFile<'_>) -> Result<Address, String> {
        Ok(Address { config: self.config.clone(), tls: self.tls_options.connector(read_file)? })
    }
}

impl FromStr for Url {
    /// A sentence for the operator, without the password.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = ["postgres://", "postgresql://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or("must be a URL such as postgres://user:password@host:5432/database")?;
        // User and password end at the first @, if it comes before the first slash. They can contain a question mark.
        let after_credentials = match rest.find(['@', '/']) {
            Some(at) if rest[at..].starts_with('@') => &rest[at + 1..],
            _ => rest,
        };
        if after_credentials.contains('@') {
            return Err("has an @ in the wrong place: in user, password, database and options, @ is %40 and / is %2F"
                .to_owned());
        }
        let (location, options) = after_credentials.split_once('?').unwrap_or((after_credentials, ""));
        let credentials = &rest[..rest.len() - after_credentials.len()];
        let mut tls_options = TlsOptions::default();
        let mut others = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| format!("has the option {option:?} without a value"))?;
            let plain = percent_decode_str(value).decode_utf8().map_err(|_| format!("{name} is not UTF-8"))?;
            if !tls_options.parse_option(name, &plain)? {
                others.push(option);
            }
        }
        let url = format!("postgres://{credentials}{location}?{}", others.join("&"));
        let mut config: Config = url.parse().map_err(|error| describe(&error))?;
        check_hosts(&config)?;
        config.ssl_mode(tls_options.resolve(config.get_ssl_negotiation())?);
        Ok(Self { config, tls_options })
    }
}

impl FromStr for Address {
    /// A sentence for the operator, without the password.
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        url.parse::<Url>()?.address(&|path| std::fs::read(path))
    }
}

/// Checks what the library would report only when it connects.
fn check_hosts(config: &Config) -> Result<(), String> {
    let (hosts, addresses, ports) = (config.get_hosts().len(), config.get_hostaddrs().len(), config.get_ports().len());
    if hosts == 0 && addresses == 0 {
        return Err("names no host".to_owned());
    }
    if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.is_empty())) {
        return Err("has a host without a name".to_owned());
    }
    if hosts > 0 && addresses > 0 && hosts != addresses {
        return Err("must have one hostaddr for each host, or none".to_owned());
    }
    if ports > 1 && ports != hosts.max(addresses) {
        return Err("must have one port, or one for each host".to_owned());
    }
    Ok(())
}

/// Displays every host with its port, and the database: `one:5432,other:5432/mail`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
        let host = |(index, host): (usize, &Host)| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(index)),
            Host::Tcp(name) => format!("{name}:{}", port(index)),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        };
        let mut hosts: Vec<String> = self.config.get_hosts().iter().enumerate().map(host).collect();
        if hosts.is_empty() {
            hosts = self.config.get_hostaddrs().iter().map(ToString::to_string).collect();
        }
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        write!(f, "{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn displays_hosts_and_database() {
        let cases = [
            ("postgres://u:p@db/mail", "db:5432/mail"),
            ("postgresql://u@db:6543/mail", "db:6543/mail"),
            ("postgres://db/mail", "db:5432/mail"),
            ("postgres://u@db", "db:5432/u"),
            ("postgres://u:p@one,two:5433,three/mail", "one:5432,two:5433,three:5432/mail"),
            ("postgres://u:p@[::1]:5433/mail", "[::1]:5433/mail"),
            ("postgres://u:p@127.0.0.1/mail?", "127.0.0.1:5432/mail"),
            ("postgres://u:p?q&r=%40%2F@db/mail?application_name=x%40y&connect_timeout=3", "db:5432/mail"),
            ("postgres:///mail?host=/run/postgresql&user=u", "/run/postgresql/mail"),
            ("postgres://u@%2Frun%2Fpostgresql/mail", "/run/postgresql/mail"),
            ("postgres:///mail?hostaddr=192.0.2.1&user=u", "192.0.2.1/mail"),
            ("postgres://u@one,two/mail?target_session_attrs=read-write", "one:5432,two:5432/mail"),
            ("postgres://u@db/mail?sslmode=require&channel_binding=require", "db:5432/mail"),
        ];
        for (url, expected) in cases {
            let address: Address = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(address.to_string(), expected, "{url}");
        }
    }

    #[test]
    fn decodes_passwords() {
        for (url, expected) in [
            ("postgres://u:hunter2@db/mail", "hunter2"),
            ("postgres://u:h%40%2F%3F%25@db/mail", "h@/?%"),
            ("postgres://u:h?x=1&y@db/mail?sslmode=disable", "h?x=1&y"),
            ("postgres://u:a:b@db/mail", "a:b"),
        ] {
            let url: Url = url.parse().expect(url);
            assert_eq!(url.config.get_password(), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn rejects_invalid_urls() {
        let cases = [
            ("mysql://u:hunter2@db/mail", "must be a URL such as postgres://"),
            ("host=db user=u password=hunter2", "must be a URL such as postgres://"),
            ("postgres://u:hunter2@/mail", "names no host"),
            ("postgres://u:hunter2@one,,two/mail", "has a host without a name"),
            ("postgres://u:hunter2@db:x/mail", "invalid value for option `port`"),
            ("postgres://u:hunter2@db:99999/mail", "invalid value for option `port`"),
            ("postgres://u:hunter2@db/mail?port=5433", "one port, or one for each host"),
            ("postgres://u:hun/ter2@db/mail", "@ in the wrong place"),
            ("postgres://u:hun@ter2@db/mail", "@ in the wrong place"),
            ("postgres://u:hunter2@db/mail?sslmode", "the option \"sslmode\" without a value"),
            ("postgres://u:hunter2@db/mail?pool_max=5", "unknown option `pool_max`"),
            ("postgres://u:hunter2@db/mail?sslmode=on", "sslmode must be disable, allow, prefer, require, verify-ca"),
            ("postgres://u:hunter2@db/mail?sslcert=/c", "sslcert and sslkey"),
            ("postgres://u:hunter2@db/mail?sslrootcert=/r%FF", "sslrootcert is not UTF-8"),
            (
                "postgres://u:hunter2@db/mail?sslrootcert=system&sslmode=require",
                "sslrootcert=system needs sslmode=verify-full",
            ),
            ("postgres://u:hunter2@db/mail?sslnegotiation=direct", "sslnegotiation=direct needs"),
            ("postgres://u:hunter2@db/mail?sslnegotiation=indirect", "invalid value for option `sslnegotiation`"),
            (
                "postgres://u:hunter2@db/mail?sslmode=verify-ca&sslrootcert=/no/such.pem",
                "sslrootcert /no/such.pem cannot be read: ",
            ),
            (
                "postgres://u:hunter2@db/mail?sslmode=require&sslcert=/no/such.pem&sslkey=/k",
                "sslcert /no/such.pem cannot be read: ",
            ),
        ];
        for (url, expected) in cases {
            let error = url.parse::<Address>().map(drop).expect_err(url);
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("hunter2") && !error.contains("ter2"), "{url}: {error}");
        }
    }

    #[test]
    fn never_displays_password() {
        let url: Url = "postgres://u:hunter2@db/mail".parse().expect("a URL");
        let address = url.address(&|_| Err(std::io::ErrorKind::NotFound.into())).expect("it names no files");
        assert_eq!(format!("{url:?} {address:?} {address}"), "*** Address(db:5432/mail) db:5432/mail");
    }

    #[test]
    fn maps_options_to_ssl_mode() {
        for (options, expected) in [
            ("", SslMode::Prefer),
            ("?sslmode=disable", SslMode::Disable),
            ("?sslmode=allow", SslMode::Prefer),
            ("?sslmode=prefer", SslMode::Prefer),
            ("?sslmode=require", SslMode::Require),
            ("?sslmode=verify-ca", SslMode::Require),
            ("?sslmode=verify-full", SslMode::Require),
            ("?sslrootcert=system", SslMode::Require),
            ("?ssl=true", SslMode::Require),
            ("?sslnegotiation=direct&sslmode=require", SslMode::Require),
        ] {
            let url: Url = format!("postgres://u@db/mail{options}").parse().expect(options);
            assert_eq!(url.config.get_ssl_mode(), expected, "{options}");
        }
        assert!("postgres://u@db/mail?ssl=maybe".parse::<Url>().is_err());
    }
}
