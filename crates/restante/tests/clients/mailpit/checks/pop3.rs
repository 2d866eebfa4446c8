//! POP3 sessions: conversations in `pop3/`.

use super::{conversation, run};
use crate::mailpit::server::Server;

#[test]
fn pop3_replies_are_those_of_mailpit() {
    run("pop3", |checks| conversation::run_folder(checks, "pop3", Server::pop3));
}
