//! Messages as a whole: what each copy knows about its message, changes of several copies, and their events.

use std::sync::Arc;

use restante_mail::envelope::Envelope;
use restante_mail::message::{Headline, Message, Summary};
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use restante_store::{Limits, Page};

use crate::events::ChangedMarks;
use crate::hooks::IncomingMessage;
use crate::tagging::Tagging;
use crate::tests::delivery::{FakeScript, deliver_stored, envelope, mailroom, settings};
use crate::{CopyKey, DeletionCause, MessageSelector, Settings};

const MAIL: &str = "From: Ann <ann@x.org>\r\nTo: bob@x.org\r\nCc: Cid <cid@x.org>\r\nX-Tags: Release 7, qa\r\n\
    Subject: Hello\r\n\r\nYour code is 424242.\r\n";

fn name(text: &str) -> MailboxName {
    MailboxName::from(text.to_owned())
}

fn recipients(copy: &Summary) -> Vec<&str> {
    copy.details.recipients().collect()
}

#[tokio::test]
async fn each_copy_has_its_own_recipients() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let to = ["bob@x.org", "cid@y.org", "Bob+1@z.org"];
    let envelope = Envelope { login: Some("ci".to_owned()), ..envelope("ann@x.org", &to) };
    let copies = deliver_stored(&mailroom, &envelope, MAIL).await;
    let [bob, cid] = copies.as_slice() else { panic!("{copies:?}") };
    assert_eq!((recipients(bob), recipients(cid)), (vec!["bob@x.org", "Bob+1@z.org"], vec!["cid@y.org"]));
    for copy in [bob, cid] {
        assert_eq!(copy.message, bob.id);
        let details = &copy.details;
        assert_eq!((details.sender(), &*details.helo(), details.ip()), ("ann@x.org", "client.test", "192.0.2.7"));
        assert_eq!((details.login(), details.attachments()), (Some("ci"), 0));
        assert_eq!(details.snippet(), "Your code is 424242.");
        assert_eq!(details.cc().collect::<Vec<_>>(), ["Cid <cid@x.org>"]);
    }
    let found = mailroom.find_message(MessageSelector::Id(bob.id)).await.unwrap().unwrap();
    assert_eq!(found.copies(), copies);
    assert_eq!(found.recipients().collect::<Vec<_>>(), ["bob@x.org", "Bob+1@z.org", "cid@y.org"]);
}

#[tokio::test]
async fn tags_are_set_on_arrival_and_by_request() {
    let tagging = Tagging {
        header: true,
        plus_addresses: true,
        plus_header: false,
        rules: ["hello=subject:hello*", "other=subject:bye*", "head=to:bob@*", "cid=to:cid@*", "box=mailbox:cid"]
            .map(|rule| rule.parse().unwrap())
            .into(),
    };
    let mailroom = mailroom(Settings { tagging, ..settings() }, Limits::default(), None);
    let copies = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob+run7@x.org", "cid@x.org"]), MAIL).await;
    let [bob, cid] = copies.as_slice() else { panic!("{copies:?}") };
    assert_eq!(bob.tags.iter().collect::<Vec<_>>(), ["hello", "head", "Release 7", "qa", "run7"]);
    assert_eq!(cid.tags.iter().collect::<Vec<_>>(), ["hello", "head", "Release 7", "qa", "cid", "box"]);
    let tags = Tags::new(["checked"]).unwrap();
    let keys: Vec<_> = copies.iter().map(CopyKey::from).collect();
    assert_eq!(mailroom.set_tags(keys.clone(), tags.clone()).await.unwrap(), 2);
    let listed = mailroom.messages(None, Page::ALL).await.unwrap().messages;
    assert_eq!(listed.iter().map(Message::tags).collect::<Vec<_>>(), std::slice::from_ref(&tags));
    assert_eq!(mailroom.remove_copies(keys.clone(), DeletionCause::Request).await.unwrap(), 2);
    assert_eq!(mailroom.set_tags(keys, tags).await.unwrap(), 0);
    assert!(mailroom.messages(None, Page::ALL).await.unwrap().messages.is_empty());
}

#[tokio::test]
async fn tags_are_updated_from_the_current_ones() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let copies = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob@x.org", "cid@x.org"]), MAIL).await;
    let keys: Vec<_> = copies.iter().map(CopyKey::from).collect();
    // This change comes after the copies were read.
    mailroom.set_tags(vec![keys[0].clone()], Tags::new(["changed"]).unwrap()).await.unwrap();
    mailroom.set_tags(vec![keys[1].clone()], Tags::new(["same"]).unwrap()).await.unwrap();
    let mut marks = mailroom.subscribe_to_marks();
    let add =
        |tags: &Tags| if tags.contains("same") { tags.clone() } else { tags.union(&Tags::new(["added"]).unwrap()) };
    mailroom.update_tags(keys, add).await.unwrap();
    let listed = mailroom.messages(None, Page::ALL).await.unwrap().messages;
    let tags: Vec<_> = listed[0].copies().iter().map(|copy| copy.tags.clone()).collect();
    assert_eq!(tags, [Tags::new(["changed", "added"]).unwrap(), Tags::new(["same"]).unwrap()]);
    let change = marks.try_next().unwrap().unwrap();
    assert_eq!((change.id, &change.marks.tags), (copies[0].id, &tags[0]));
    assert_eq!(change.changed, ChangedMarks { tags: true, ..ChangedMarks::default() });
    assert_eq!(marks.try_next(), Ok(None));
}

#[tokio::test]
async fn events_of_copies_contain_the_whole_message() {
    let mailroom = mailroom(settings(), Limits::default(), None);
    let mut events = mailroom.subscribe(None, None);
    let several = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob@x.org", "cid@x.org"]), MAIL).await;
    let single = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob@x.org"]), MAIL).await;
    for (summary, copies) in [(&several[0], &several), (&several[1], &several), (&single[0], &single)] {
        let published = events.next().await.unwrap();
        assert_eq!((published.event().summary(), published.event().copies()), (summary, copies.as_slice()));
    }
    mailroom.remove_copies(several.iter().map(CopyKey::from).collect(), DeletionCause::Request).await.unwrap();
    for summary in &several {
        let published = events.next().await.unwrap();
        assert_eq!(published.event().copies(), std::slice::from_ref(summary), "one event per deleted copy");
    }
}

/// Without the header field To, the headline has the recipients of the envelope.
#[tokio::test]
async fn tags_do_not_reveal_recipients_of_other_copies() {
    let tagging = Tagging { rules: vec!["secret=to:cid@*".parse().unwrap()], ..Tagging::default() };
    let settings = Settings { tagging, ..settings() };
    let envelope = envelope("ann@x.org", &["bob@x.org", "cid@x.org"]);
    let tagged = async |script: Option<Arc<FakeScript>>| {
        let mailroom = mailroom(settings.clone(), Limits::default(), script);
        let copies = deliver_stored(&mailroom, &envelope, "Subject: Hello\r\n\r\nHello\r\n").await;
        copies.iter().map(|copy| copy.tags.contains("secret")).collect::<Vec<_>>()
    };
    assert_eq!(tagged(None).await, [false, true]);
    let change = |message: &mut IncomingMessage| message.headline = Headline::new("", ["<cid@y.org>"], "");
    let script = FakeScript { change: Some(change), ..FakeScript::default() };
    assert_eq!(tagged(Some(Arc::new(script))).await, [true, true], "a script has set the recipients");
}

/// A script sends everything to another mailbox.
#[tokio::test]
async fn recipients_without_a_copy_are_in_the_first_copy() {
    let redirect = |message: &mut IncomingMessage| message.mailboxes = ["archive", "audit"].map(name).into();
    let script = Arc::new(FakeScript { change: Some(redirect), ..FakeScript::default() });
    let tagging = Tagging { plus_addresses: true, ..Tagging::default() };
    let mailroom = mailroom(Settings { tagging, ..settings() }, Limits::default(), Some(script));
    let copies = deliver_stored(&mailroom, &envelope("ann@x.org", &["bob+run7@x.org", "cid@x.org"]), MAIL).await;
    let mailboxes: Vec<_> = copies.iter().map(|copy| copy.mailbox.clone()).collect();
    assert_eq!(mailboxes, ["archive", "audit"].map(name));
    assert_eq!((recipients(&copies[0]), recipients(&copies[1])), (vec!["bob+run7@x.org", "cid@x.org"], vec![]));
    assert_eq!(copies[0].tags, Tags::new(["run7"]).unwrap());
    assert!(copies[1].tags.is_empty());
}
