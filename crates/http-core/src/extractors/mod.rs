//! Extractors: the path, the query and the body of a request as typed values.
//!
//! - `parameters`: mailboxes, messages and other parameters of path and query. The only place where a name in a path
//!   becomes a mailbox, and where the grant of the request is checked for it
//! - `messages`: messages as a whole, their copies, and parts of them
//! - `queue`: entries of the relay queue and the webhook queue
//! - `query`: the parameters of a query, and values that are read from them alone
//! - `latest`: the parameter `wait` of requests for the latest message
//! - `body`: request bodies, limited in size and time
//! - `request_context`: the host, the route and the origin of a request, as middleware has determined them
//! - `accepted_credentials`: the credentials that a request was accepted with
//! - `late_token`: tokens that are found only in the body of a request
//! - `access`: the server, the grant and the cancellation together
//! - `cancellation`: cancels long responses when the client disconnects, the credentials become invalid or the server
//!   shuts down

pub mod accepted_credentials;
pub mod access;
pub mod body;
pub mod cancellation;
pub mod late_token;
pub mod latest;
pub mod messages;
pub mod parameters;
pub mod query;
pub mod queue;
pub mod request_context;
