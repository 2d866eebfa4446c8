//! Connections to the database: a pool for changes and a pool for queries. Connections are opened when they are needed,
//! and replaced when they break. The time for getting a connection and the time for the result are limited to some
//! seconds each.

use std::ops::Deref;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::time::{Instant, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Address;
use super::error::DatabaseError;
use crate::Result;

/// How long getting a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement may take, measured by the database. A change waits for the earlier changes of all nodes.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the client waits for a result. It includes the network.
const QUERY_TIMEOUT: Duration = Duration::from_secs(12);
/// The idle time after which a connection is probed, and the time after which an unanswered probe closes it.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// If the caller of a query was cancelled after this time, the connection may be broken and is closed.
const MAX_ABANDONED_AGE: Duration = Duration::from_secs(1);

/// The parameters of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Connections to one schema of a database: one pool for changes and one for queries.
pub struct Database {
    config: Config,
    tls: MakeRustlsConnect,
    schema: String,
    writers: Pool,
    readers: Pool,
}

/// The part of a connection that does the I/O. It must be polled.
pub(super) type Driver = Connection<Socket, <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream>;

impl Database {
    /// Creates the pools. Opens no connection yet.
    pub(crate) fn new(address: &Address, schema: &str, writers: usize, readers: usize) -> Result<Self> {
        let Address { mut config, tls } = address.clone();
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(KEEPALIVE_TIMEOUT)
            .keepalives_interval(KEEPALIVE_TIMEOUT / 5)
            .keepalives_retries(3)
            .tcp_user_timeout(KEEPALIVE_TIMEOUT);
        if config.get_application_name().is_none() {
            config.application_name("restante");
        }
        let pool = |size| create_pool(&config, &tls, schema, size);
        let (writers, readers) = (pool(writers)?, pool(readers)?);
        Ok(Self { config, tls, schema: schema.to_owned(), writers, readers })
    }

    /// Returns the same database with a separate pool of one connection, for changes and queries.
    pub fn with_own_connection(&self) -> Result<Self> {
        let pool = create_pool(&self.config, &self.tls, &self.schema, 1)?;
        let (config, tls, schema) = (self.config.clone(), self.tls.clone(), self.schema.clone());
        Ok(Self { writers: pool.clone(), readers: pool, config, tls, schema })
    }

    /// Returns the schema that contains all tables.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Opens a connection outside of the pools. Returns it and its driver. `None` after a timeout.
    pub(super) async fn connect(&self) -> Option<Result<(Client, Driver), tokio_postgres::Error>> {
        timeout(CONNECT_TIMEOUT, self.config.connect(self.tls.clone())).await.ok()
    }

    /// Runs a query. If the connection was lost, it is retried once, because a query changes nothing.
    pub async fn query(&self, statement: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        match self.run_on(&self.readers, statement, parameters).await {
            Err(DatabaseError { is_disconnected: true, is_timeout: false, .. }) => {
                Ok(self.run_on(&self.readers, statement, parameters).await?)
            }
            result => Ok(result?),
        }
    }

    /// Runs a change, once. If this fails, the change may have been made nevertheless.
    pub async fn execute(&self, change: &str, parameters: Parameters<'_>) -> Result<Vec<Row>> {
        Ok(self.run_on(&self.writers, change, parameters).await?)
    }

    async fn run_on(&self, pool: &Pool, sql: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, DatabaseError> {
        let client = PooledClient::new(pool.get().await?);
        let result = async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, parameters).await
        };
        let result = if let Ok(result) = timeout(QUERY_TIMEOUT, result).await {
            result.map_err(DatabaseError::from)
        } else {
            // The caller gets an error, so the statement should not take effect any more.
            let (cancel_token, tls) = (client.cancel_token(), self.tls.clone());
            tokio::spawn(timeout(CONNECT_TIMEOUT, async move { cancel_token.cancel_query(tls).await }));
            Err(DatabaseError::timed_out("a statement"))
        };
        match &result {
            Err(DatabaseError { is_disconnected: true, .. }) => client.discard(),
            Ok(_) | Err(_) => client.return_to_pool(),
        }
        result
    }
}

/// A connection from a pool. If its user is cancelled, it is returned to the pool, and the next user waits for the rest
/// of the result. If the statement was already running for long, the connection may be broken, and is closed instead.
struct PooledClient {
    client: Option<Object>,
    taken_at: Instant,
}

impl PooledClient {
    fn new(object: Object) -> Self {
        Self { client: Some(object), taken_at: Instant::now() }
    }

    fn return_to_pool(mut self) {
        drop(self.client.take());
    }

    /// Closes the connection.
    fn discard(mut self) {
        drop(self.client.take().map(Object::take));
    }
}

impl Deref for PooledClient {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.client.as_ref().expect("the client is present until it is returned or discarded")
    }
}

impl Drop for PooledClient {
    fn drop(&mut self) {
        if self.taken_at.elapsed() > MAX_ABANDONED_AGE {
            drop(self.client.take().map(Object::take));
        }
    }
}

/// Returns the first statements of every connection. A node that crashes during a change may leave a lock in the
/// database, so the database must detect the lost connection soon. Tables are read by index, and rows in the order of the
/// index, even before the database has statistics about their growth. One generic plan is good for every batch.
pub(super) fn setup_sql(schema: &str) -> String {
    let timeout_millis = STATEMENT_TIMEOUT.as_millis();
    format!(
        "SET tcp_keepalives_idle TO 5; SET tcp_keepalives_interval TO 2; SET tcp_keepalives_count TO 3; SET tcp_user_timeout TO 10000;
         SET search_path TO {schema}; SET statement_timeout TO {timeout_millis}; SET enable_seqscan TO off;
         SET enable_bitmapscan TO off; SET jit TO off;
         SET plan_cache_mode TO force_generic_plan;
         SET default_transaction_isolation TO 'read committed'; SET client_min_messages TO error"
    )
}

fn create_pool(config: &Config, tls: &MakeRustlsConnect, schema: &str, size: usize) -> Result<Pool> {
    let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config.clone(), tls.clone(), manager_config);
    let setup = setup_sql(schema);
    let run_setup = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let setup = setup.clone();
        Box::pin(async move {
            let result = timeout(CONNECT_TIMEOUT, client.batch_execute(&setup)).await;
            result.map_err(|_| HookError::message("no response in time"))?.map_err(HookError::Backend)
        })
    });
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(CONNECT_TIMEOUT))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .post_create(run_setup)
        .build();
    pool.map_err(|error| crate::StoreError::Broken(error.to_string()))
}
