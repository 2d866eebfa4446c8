//! TLS to the server whose health is checked, without a check of its certificate. The server is our own, on this machine, and nothing
//! secret is sent. Its certificate may be made at start, or issued for its name and not for `127.0.0.1`.

use std::io::{Read, Write};
use std::sync::Arc;

use restante_courier::accept_any_certificate;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

/// Starts TLS on a stream. The handshake is made with the first write. The error is a sentence for the operator.
pub(super) fn encrypt<S: Read + Write>(stream: S) -> Result<StreamOwned<ClientConnection, S>, String> {
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    let client = accept_any_certificate().and_then(|config| ClientConnection::new(Arc::new(config), name));
    Ok(StreamOwned::new(client.map_err(|error| format!("cannot be asked by TLS: {error}"))?, stream))
}
