//! `restante.release`: a script sends stored messages to another server.

use super::folder::{Folder, eventually, send};
use crate::support::Server;

const SCRIPT: &str = "
    local note = require('note')
    function restante.after.message_stored(message)
      for _, options in ipairs {
        { to = 'qa@example.org', target = 'main' },
        { to = { 'ceo@example.org' } },
        { to = 'qa@example.org', target = 'other' },
      } do
        local entry, problem = restante.release(message.mailbox, message.id, options)
        note((entry and 'queued') or problem)
      end
    end";

#[test]
fn scripts_release_messages() {
    let target = Server::start(&[]);
    let folder = Folder::new("release", SCRIPT);
    let targets = format!("main smtp://{} allow=*@example.org block=ceo@example.org starttls=never", target.smtp);
    let server = folder.start(&["--relay-private", "--relay-targets", &targets]);
    send(&server, "ann@example.org", "Order");
    assert_eq!(
        folder.notes(3),
        ["queued", "the relay target blocks these recipients: ceo@example.org", "there is no relay target \"other\"",]
    );
    eventually("the message arrives", || (target.ids("qa").len() == 1).then_some(()));
    assert_eq!(target.ids("ann").len(), 0);
}

#[test]
fn scripts_without_a_relay_get_an_error_text() {
    let folder = Folder::new("release-off", SCRIPT);
    let server = folder.start(&[]);
    send(&server, "ann@example.org", "Order");
    assert_eq!(folder.notes(3), ["no relay target is configured: set relay.targets"; 3]);
}
