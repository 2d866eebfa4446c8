//! The tables and functions of the store in the database. The first node that starts creates and migrates them.

use std::time::Duration;

use futures_util::FutureExt as _;
use restante_sqlite::Migration;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::Access;
use super::database::Database;
use super::error::describe;

/// The oldest supported server: version 13.
const MIN_SERVER_VERSION: i32 = 130_000;

/// How long the check of the schema may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// The versions of the schema, each with the step that leads to it. Released steps are never changed. A step should only
/// add to the schema, because nodes of the previous version may still run, or be started again.
const VERSIONS: &[Version] = &[Version {
    migration: Migration::Once(concat!(
        include_str!("tables.sql"),
        include_str!("functions.sql"),
        include_str!("journal.sql"),
        include_str!("queue.sql"),
    )),
    min_compatible: 1,
}];

/// A version of the schema.
pub(super) struct Version {
    /// The step from the version before. Other nodes can make changes between the transactions of a repeated statement.
    pub(super) migration: Migration,
    /// The oldest version whose programs can still use the tables.
    pub(super) min_compatible: i32,
}

/// Why the store in a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The database cannot be reached, or is not ready yet.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The login or a required permission is refused.
    #[error("the database refused access: {0}")]
    Refused(String),
    /// The database is too old, or was used by another version of the program.
    #[error("the database cannot be used: {0}")]
    Unsupported(String),
}

impl OpenError {
    /// Returns whether retrying later does not help.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Unreachable(_))
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        // Wrong password, no such database, missing permission, or unknown name.
        match error.code().and_then(|state| state.code().get(..2)) {
            Some("28" | "3D" | "42") if error.code() != Some(&SqlState::DUPLICATE_TABLE) => {
                Self::Refused(describe(&error))
            }
            Some("0A") => Self::Unsupported(describe(&error)),
            // The password is missing or unusable. The library distinguishes these errors only by their text.
            None if ["invalid configuration", "authentication error"].contains(&&*error.to_string()) => {
                Self::Refused(describe(&error))
            }
            _ => Self::Unreachable(describe(&error)),
        }
    }
}

/// Creates or migrates the schema, while other nodes that start wait. With read-only access, the schema is only
/// checked.
pub(super) async fn prepare(database: &Database, access: Access) -> Result<(), OpenError> {
    let connected = database.connect().await;
    let (mut client, driver) = connected.ok_or_else(|| OpenError::Unreachable("no response in time".to_owned()))??;
    let driver = tokio::spawn(driver.map(drop));
    // A migration may take long, but the check may not.
    let timed_out = |_| OpenError::Unreachable("no response in time".to_owned());
    let prepared = match (
        access,
        timeout(CHECK_TIMEOUT, is_up_to_date(&client, database.schema(), access)).await.map_err(timed_out),
    ) {
        (Access::ReadWrite, Ok(Ok(false))) => migrate(&mut client, database.schema(), VERSIONS).await,
        (_, checked) => checked.and_then(|checked| checked).map(drop),
    };
    drop(client);
    // The connection is closed, whatever the result.
    let _ = driver.await;
    prepared
}

/// Checks the database and the schema. Returns whether no migration is needed.
async fn is_up_to_date(client: &Client, schema: &str, access: Access) -> Result<bool, OpenError> {
    // Another node may have crashed during a migration, or the tables may be locked by hand.
    client.batch_execute("SET lock_timeout TO '10s'").await?;
    let found = schema_version(client, schema).await?;
    if access == Access::ReadOnly {
        return match found {
            0 => Err(OpenError::Unsupported("it contains no store".to_owned())),
            found if found < VERSIONS.len() => {
                let cause = "its schema is of an earlier version of this program; start a server of this version first";
                Err(OpenError::Unsupported(cause.to_owned()))
            }
            _ => Ok(true),
        };
    }
    if client.query_one("SELECT current_setting('transaction_read_only')::boolean", &[]).await?.get(0) {
        let cause =
            "it is read-only; with several hosts in the URL, target_session_attrs=read-write selects the writable one";
        return Err(OpenError::Unreachable(cause.to_owned()));
    }
    let server: i32 = client.query_one("SELECT current_setting('server_version_num')::int", &[]).await?.get(0);
    if server < MIN_SERVER_VERSION {
        let (major, oldest) = (server / 10_000, MIN_SERVER_VERSION / 10_000);
        return Err(OpenError::Unsupported(format!("it is PostgreSQL {major}, but at least {oldest} is required")));
    }
    Ok(found >= VERSIONS.len())
}

/// Runs the steps that are missing. The lock of the session makes other nodes wait, until the connection is closed.
pub(super) async fn migrate(client: &mut Client, schema: &str, versions: &[Version]) -> Result<(), OpenError> {
    client.execute("SELECT pg_advisory_lock(hashtextextended($1, 0))", &[&format!("schema {schema}")]).await?;
    let found = schema_version(client, schema).await?;
    for (Version { migration, min_compatible }, version) in versions.iter().zip(1_usize..).skip(found) {
        if let Migration::Repeat(statement) = migration {
            client.batch_execute(&format!("SET search_path TO {schema}")).await?;
            while client.execute(*statement, &[]).await? > 0 {}
        }
        let transaction = client.transaction().await?;
        if version == 1 {
            transaction.batch_execute(&create_schema(schema)).await?;
        }
        transaction.batch_execute(&format!("SET LOCAL search_path TO {schema}")).await?;
        if let Migration::Once(script) = migration {
            transaction.batch_execute(script).await?;
        }
        let record = format!("INSERT INTO schema_versions VALUES ({version}, {min_compatible})");
        transaction.batch_execute(&record).await?;
        transaction.commit().await?;
        tracing::info!("migrated schema {schema} of the database to version {version}");
    }
    Ok(())
}

/// Returns the statements that create the schema, unless the administrator has created it, and the table of versions.
fn create_schema(schema: &str) -> String {
    format!(
        "DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '{schema}') THEN CREATE SCHEMA {schema}; END IF;
         END $$;
         CREATE TABLE {schema}.schema_versions
            (version int PRIMARY KEY, min_compatible int NOT NULL, migrated_at timestamptz NOT NULL DEFAULT now())"
    )
}

/// Returns the version of the schema. It can be a later but compatible one. Zero if there is no schema.
async fn schema_version(client: &Client, schema: &str) -> Result<usize, OpenError> {
    // Reads the catalog, because a connection may cache that a table is missing.
    let query = "SELECT tablename::text FROM pg_catalog.pg_tables
        WHERE schemaname = $1 AND tablename IN ('schema_versions', 'version') ORDER BY tablename LIMIT 1";
    match client.query_opt(query, &[&schema]).await?.map(|row| row.get::<_, String>(0)).as_deref() {
        None => return Ok(0),
        // The table of development versions.
        Some("version") => {
            let cause = format!(
                "a development version of Restante before 0.1.0 has written its schema {schema}; export the messages with \
                 `restante export` of that version, and import them with `restante import` into an empty database"
            );
            return Err(OpenError::Unsupported(cause));
        }
        Some(_) => {}
    }
    let query =
        format!("SELECT coalesce(max(version), 0), coalesce(max(min_compatible), 0) FROM {schema}.schema_versions");
    let row = client.query_one(&query, &[]).await?;
    let [found, min_compatible] = [0, 1].map(|column| usize::try_from(row.get::<_, i32>(column)).unwrap_or(0));
    let latest = VERSIONS.len();
    if min_compatible > latest {
        let cause = format!(
            "a later version of Restante has migrated its schema {schema} to version {found}, which needs a program for schema \
             version {min_compatible} or later; version {} of Restante supports schema versions up to {latest}",
            env!("CARGO_PKG_VERSION")
        );
        return Err(OpenError::Unsupported(cause));
    }
    Ok(found)
}
