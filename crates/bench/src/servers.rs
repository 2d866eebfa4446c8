//! The options with the addresses of the server under test, for commands that send and read messages.

use std::net::SocketAddr;

use clap::Args;

use crate::connection::resolve;
use crate::error::Error;
use crate::http::{BaseUrl, Client};

/// The addresses of one server.
#[derive(Args)]
pub(crate) struct ServerOptions {
    /// The SMTP server.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// The web server, with its base path if it has one.
    #[arg(long, value_name = "URL")]
    http: String,
}

impl ServerOptions {
    /// Returns the address of the SMTP server as it was given.
    pub(crate) fn smtp(&self) -> &str {
        &self.smtp
    }

    /// Resolves the SMTP server.
    pub(crate) async fn smtp_addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        resolve(&self.smtp).await
    }

    /// Creates a client of the web server.
    pub(crate) async fn http_client(&self) -> Result<Client, Error> {
        Ok(Client::new(&self.base_url().await?))
    }

    /// Returns the base URL of the web server.
    pub(crate) async fn base_url(&self) -> Result<BaseUrl, Error> {
        BaseUrl::parse(&self.http).await
    }
}
