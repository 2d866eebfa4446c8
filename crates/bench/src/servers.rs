//! Where the server under test is, for the measurements that send to it and read from it.

use std::net::SocketAddr;

use clap::Args;

use crate::error::Error;
use crate::http::BaseUrl;
use crate::rest::MailboxApi;
use crate::smtp::resolve;

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
    /// Where mail is sent to.
    pub(crate) async fn smtp_addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        resolve(&self.smtp).await
    }

    /// Where mail is read.
    pub(crate) async fn mailbox_api(&self) -> Result<MailboxApi, Error> {
        Ok(MailboxApi::new(self.base_url().await?))
    }

    /// Where the web server is.
    pub(crate) async fn base_url(&self) -> Result<BaseUrl, Error> {
        BaseUrl::parse(&self.http).await
    }
}
