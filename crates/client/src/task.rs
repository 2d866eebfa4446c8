//! What a command line asks for as something that can be done, and what it is done with. The tasks themselves are the commands.

use std::io::Write;

use jiff::Timestamp;

use crate::failure::Failure;
use crate::options::Mailing;
use crate::screen::Screen;
use crate::server::Server;

/// What a command line asks for, ready to be done.
pub(crate) trait Task {
    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure>;

    /// The exit code that a failure has here.
    fn code(&self, failure: &Failure) -> u8 {
        failure.code()
    }
}

/// What a command works with.
pub(crate) struct Session<'a> {
    pub(crate) server: Server,
    pub(crate) mailing: Mailing,
    pub(crate) screen: Screen,
    /// Whether the API's own answer is wanted.
    pub(crate) json: bool,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) now: Timestamp,
}
