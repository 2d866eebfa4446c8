//! Where the server under test is, for the measurements that send to it and read from it.

use std::net::SocketAddr;

use clap::Args;

use crate::error::Error;
use crate::http::Base;
use crate::rest::Mailboxes;
use crate::smtp::resolve;

/// The addresses of one server.
#[derive(Args)]
pub(crate) struct Servers {
    /// The SMTP server.
    #[arg(long, value_name = "HOST:PORT")]
    smtp: String,
    /// The web server, with its base path if it has one.
    #[arg(long, value_name = "URL")]
    http: String,
}

impl Servers {
    /// Where mail is sent to.
    pub(crate) async fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        resolve(&self.smtp).await
    }

    /// Where mail is read.
    pub(crate) async fn mailboxes(&self) -> Result<Mailboxes, Error> {
        Ok(Mailboxes::new(self.base().await?))
    }

    /// Where the web server is.
    pub(crate) async fn base(&self) -> Result<Base, Error> {
        Base::parse(&self.http).await
    }
}
