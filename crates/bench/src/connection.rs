//! A TCP connection with a buffer of received bytes, which the clients of all protocols use.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::error::Error;

/// The timeout of a transaction, a request, or of opening a session.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Resolves `HOST:PORT` once, so that connecting needs no lookup later.
pub(crate) async fn resolve(host_and_port: &str) -> Result<Vec<SocketAddr>, Error> {
    let found = lookup_host(host_and_port).await;
    Ok(found.map_err(|_| Error::Usage(format!("cannot find the address of {host_and_port:?}")))?.collect())
}

/// Runs `work` with a timeout.
pub(crate) async fn with_timeout<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(TIMEOUT, work).await.unwrap_or(Err(Error::Timeout))
}

/// An open connection. After an error it must not be used again.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Received bytes; everything before `consumed` has been returned.
    buffer: Vec<u8>,
    consumed: usize,
    /// The minimum space in the buffer for each read.
    read_bytes: usize,
}

impl Connection {
    /// Connects to the first address that accepts it.
    pub(crate) async fn open(addresses: &[SocketAddr], read_bytes: usize) -> Result<Self, Error> {
        let stream = TcpStream::connect(addresses).await.map_err(|error| Error::Io("connecting", error))?;
        stream.set_nodelay(true).map_err(|error| Error::Io("connecting", error))?;
        Ok(Self::new(stream, read_bytes))
    }

    /// Creates a connection from an open stream.
    pub(crate) fn new(stream: TcpStream, read_bytes: usize) -> Self {
        Self { stream, buffer: Vec::new(), consumed: 0, read_bytes }
    }

    /// Sends bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stream.write_all(bytes).await.map_err(|error| Error::Io("sending", error))
    }

    /// Reads until `parse` returns a value and the number of bytes that belong to it. `parse` gets all bytes that were received
    /// and not returned yet. Returns the value and its bytes. More than about `max_bytes` are an error.
    pub(crate) async fn read<T>(
        &mut self,
        max_bytes: usize,
        mut parse: impl FnMut(&[u8]) -> Result<Option<(T, usize)>, Error>,
    ) -> Result<(T, &[u8]), Error> {
        loop {
            let start = self.consumed;
            if let Some((value, length)) = parse(&self.buffer[start..])? {
                self.consumed += length;
                return Ok((value, &self.buffer[start..self.consumed]));
            }
            if self.buffer.len() - start > max_bytes {
                return Err(Error::Protocol("response too long"));
            }
            if !self.fill().await? {
                return Err(Error::Closed);
            }
        }
    }

    /// Returns the next bytes, as many as are available. Returns `None` at the end of the stream.
    pub(crate) async fn read_some(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.is_empty() && !self.fill().await? {
            return Ok(None);
        }
        let start = std::mem::replace(&mut self.consumed, self.buffer.len());
        Ok(Some(&self.buffer[start..]))
    }

    /// Returns whether all received bytes have been returned.
    pub(crate) fn is_empty(&self) -> bool {
        self.consumed == self.buffer.len()
    }

    /// Receives more bytes. Returns false at the end of the stream.
    async fn fill(&mut self) -> Result<bool, Error> {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.reserve(self.read_bytes);
        let read = self.stream.read_buf(&mut self.buffer).await;
        Ok(read.map_err(|error| Error::Io("receiving", error))? > 0)
    }
}
