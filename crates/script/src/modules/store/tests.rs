//! Tests of the functions with a fake mailbox.

use std::time::Instant;

use bytes::Bytes;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline};
use restante_mail::tags::Tags;

use super::*;
use crate::tests::fake_mail::FakeMail;

/// Returns a message of mailbox `anna`.
pub(in crate::modules) fn summary(id: u64) -> Summary {
    Summary {
        mailbox: "anna".to_owned().into(),
        id: id.into(),
        headline: Headline::new("<a@x>", ["<b@x>"], &format!("mail {id}")),
        received: std::time::SystemTime::UNIX_EPOCH.try_into().unwrap(),
        size: 7,
        seen: false,
        flags: Flags::default(),
        modseq: 1,
        message: id.into(),
        number: 1,
        tags: Tags::default(),
        details: Details::default(),
    }
}

fn state(event: Option<ScriptEvent>) -> Lua {
    let lua = Lua::new();
    // The last id has more digits than Lua writes by default.
    let ids = (1..=1500).chain([1_794_733_000_000_001]);
    let mail: Arc<dyn MailAccess> = Arc::new(FakeMail::with_messages(ids.map(|id| (summary(id), Bytes::new()))));
    lua.globals().set("store", table(&lua, &mail).unwrap()).unwrap();
    lua.set_app_data(CallContext { event, deadline: Instant::now() + Duration::from_mins(1) });
    lua
}

#[test]
fn lists_finds_and_deletes_messages() {
    let table = [
        ("#store.list('anna')", "100"),
        ("#store.list('Anna+x@example.org', {limit = 7})", "7"),
        ("#store.list('anna', {limit = 5000})", "1000"),
        ("#store.list('anna', {limit = 0})", "0"),
        ("store.list('anna', {after = '1499'})[1].id", "1500"),
        ("store.list('anna', {after = 1499})[1].id", "1500"),
        ("#store.list('nobody')", "0"),
        ("store.get('anna', '3').subject", "mail 3"),
        ("store.get('anna', 'latest').id", "1794733000000001"),
        ("store.get('anna', 1794733000000001).id", "1794733000000001"),
        ("store.get('anna', '9999')", "nil"),
        ("store.get('anna', 'nonsense')", "nil"),
        ("store.get('nobody', 'latest')", "nil"),
        ("store.delete('anna', '3')", "true"),
        ("store.delete('anna', '9999')", "false"),
        ("store.delete('anna', 'latest')", "false"),
        ("store.delete('anna', '3') and store.get('anna', '3')", "nil"),
    ];
    for (code, expected) in table {
        let lua = state(Some(ScriptEvent::AfterStored));
        let value: Value = lua.load(format!("return {code}")).eval().unwrap();
        assert_eq!(value.to_string().unwrap(), expected, "{code}");
    }
}

#[test]
fn errors_raise() {
    let table = [
        ("store.list('')", "empty"),
        ("store.list(nil)", "bad argument #1"),
        ("store.list('broken')", "the store does not respond"),
        ("store.get('broken', '1')", "the store does not respond"),
        ("store.get('broken', 'latest')", "the store does not respond"),
        ("store.delete('broken', '1')", "the store does not respond"),
        ("store.list('anna', {after = 'x'})", "\"x\" is no message id"),
        ("store.list('anna', {limit = -1})", "out of range"),
    ];
    for (code, expected) in table {
        let result = state(Some(ScriptEvent::AfterDeleted)).load(code).exec();
        let error = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(expected) && !error.is_empty(), "{code}: {error}");
    }
}

#[test]
fn store_is_not_available_in_before_hooks() {
    for event in [None, Some(ScriptEvent::MailFrom), Some(ScriptEvent::RcptTo), Some(ScriptEvent::BeforeStored)] {
        for code in ["store.list('anna')", "store.get('anna', '1')", "store.delete('anna', '1')"] {
            let error = state(event).load(code).exec().unwrap_err().to_string();
            assert!(error.contains("restante.store can be used in after hooks only"), "{event:?} {code}: {error}");
        }
    }
}
