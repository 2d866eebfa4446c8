//! The tables and functions of the store in the database. The first node that starts creates and migrates them.

use std::fmt;
use std::time::Duration;

use futures_util::FutureExt as _;
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

/// The steps from each version of the schema to the next. Released steps are never changed. A step should only add to
/// the schema, because nodes of the previous version may still run, or be started again.
const MIGRATIONS: &[Migration] = &[
    Migration { sql: &[include_str!("tables.sql"), include_str!("functions.sql")], min_compatible: 1 },
    Migration { sql: &[include_str!("journal.sql")], min_compatible: 1 },
    Migration {
        sql: &[include_str!("messages_tables.sql"), include_str!("messages_functions.sql")],
        min_compatible: 1,
    },
    // Earlier versions misread the details of messages that programs of this version store.
    Migration { sql: &[include_str!("overview.sql")], min_compatible: 4 },
    Migration { sql: &[include_str!("relay.sql")], min_compatible: 4 },
];

/// A step from one version to the next.
struct Migration {
    sql: &'static [&'static str],
    /// The oldest version whose programs can still use the tables after this step.
    min_compatible: i32,
}

/// Why the store in a database cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// The database cannot be reached, or is not ready yet.
    Unreachable(String),
    /// The login or a required permission is refused.
    Refused(String),
    /// The database is too old, or was used by a newer version of the program.
    Unsupported(String),
}

impl OpenError {
    /// Returns whether retrying later does not help.
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Unreachable(_))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(cause) => write!(f, "the database cannot be reached: {cause}"),
            Self::Refused(cause) => write!(f, "the database refused access: {cause}"),
            Self::Unsupported(cause) => write!(f, "the database cannot be used: {cause}"),
        }
    }
}

impl std::error::Error for OpenError {}

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
        (Access::ReadWrite, Ok(Ok(false))) => migrate(&mut client, database.schema(), MIGRATIONS).await,
        (_, checked) => checked.and_then(|checked| checked).map(drop),
    };
    drop(client);
    // The connection is closed, whatever the result.
    let _ = driver.await;
    prepared
}

/// Creates the schema of an earlier version.
#[cfg(test)]
pub(super) async fn prepare_version(database: &Database, version: usize) {
    let (mut client, driver) =
        database.connect().await.expect("the database responds").expect("it accepts connections");
    tokio::spawn(driver.map(drop));
    migrate(&mut client, database.schema(), &MIGRATIONS[..version]).await.expect("the schema can be created");
}

/// Checks the database and the schema. Returns whether no migration is needed.
async fn is_up_to_date(client: &Client, schema: &str, access: Access) -> Result<bool, OpenError> {
    // Another node may have crashed during a migration, or the tables may be locked by hand.
    client.batch_execute("SET lock_timeout TO '10s'").await?;
    let found = schema_version(client, schema).await?;
    if access == Access::ReadOnly {
        return match found {
            0 => Err(OpenError::Unsupported("it contains no store".to_owned())),
            found if found < MIGRATIONS.len() => {
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
    Ok(found >= MIGRATIONS.len())
}

/// Runs the steps that are missing.
async fn migrate(client: &mut Client, schema: &str, steps: &[Migration]) -> Result<(), OpenError> {
    let transaction = client.transaction().await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&format!("schema {schema}")])
        .await?;
    let found = schema_version(&transaction, schema).await?;
    if found == 0 {
        let create_schema = format!(
            "DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = '{schema}') THEN CREATE SCHEMA {schema}; END IF;
             END $$;
             CREATE TABLE IF NOT EXISTS {schema}.version
                (version int PRIMARY KEY, oldest int NOT NULL, at timestamptz NOT NULL DEFAULT now())"
        );
        transaction.batch_execute(&create_schema).await?;
    }
    transaction.batch_execute(&format!("SET LOCAL search_path TO {schema}")).await?;
    for (step, number) in steps.iter().zip(1..).skip(found) {
        for part in step.sql {
            transaction.batch_execute(part).await?;
        }
        transaction.batch_execute(&format!("INSERT INTO version VALUES ({number}, {})", step.min_compatible)).await?;
    }
    transaction.commit().await?;
    if found < steps.len() {
        tracing::info!("migrated schema {schema} of the database to version {}", steps.len());
    }
    Ok(())
}

/// Returns the version of the schema. It can be a later but compatible one. Zero if there is no schema.
async fn schema_version(client: &impl tokio_postgres::GenericClient, schema: &str) -> Result<usize, OpenError> {
    // Reads the catalog, because a connection may cache that a table is missing.
    let query = "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'version')";
    let exists = client.query_one(query, &[&schema]).await?;
    if !exists.get::<_, bool>(0) {
        return Ok(0);
    }
    let query = format!("SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM {schema}.version");
    let row = client.query_one(&query, &[]).await?;
    let [found, oldest] = [0, 1].map(|column| usize::try_from(row.get::<_, i32>(column)).unwrap_or(0));
    let latest = MIGRATIONS.len();
    if oldest > latest {
        let cause = format!(
            "a later version of Restante has migrated its schema {schema} to version {found}, which needs a program for schema \
             version {oldest} or later; version {} of Restante supports schema versions up to {latest}",
            env!("CARGO_PKG_VERSION")
        );
        return Err(OpenError::Unsupported(cause));
    }
    Ok(found)
}
