//! The projects that rules choose when recipients are checked and messages are delivered.

use std::time::Duration;

use jiff::Timestamp;
use restante_auth::Authenticator;
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, RecipientRefusal};
use restante_mail::message::Message;
use restante_mail::naming::{MailboxName, Project};
use restante_mail::rules::{Condition, Field};
use restante_store::{Limits, MailboxPage};
use tokio::time::timeout;

use crate::projects::ProjectRule;
use crate::tests::delivery::{deliver_stored, envelope, mailroom, settings};
use crate::{DeletionCause, Settings, WriteAccess};

/// The rules `srs header=X-App:srs; acme domain=acme.test`.
fn settings_with_rules() -> Settings {
    let by_header = Condition::Header("X-App".to_owned(), ["srs"].iter().collect());
    let by_domain = Condition::Text(Field::Domain, ["acme.test"].iter().collect());
    let rules = [("srs", by_header), ("acme", by_domain)];
    let rules = rules.into_iter().map(|(name, condition)| ProjectRule::new("", name, vec![condition]).unwrap());
    Settings { projects: rules.collect(), ..settings() }
}

#[tokio::test]
async fn rules_choose_the_mailboxes_of_a_message() {
    let mailroom = mailroom(settings_with_rules(), Limits::default(), None);
    let shop: Project = "shop".parse().unwrap();
    let (plain, with_header) = ("Subject: x\r\n\r\n", "X-App: srs\r\n\r\n");
    let all_of_acme = |mailbox: &MailboxName| mailbox.as_str().starts_with("acme:");
    let limited = WriteAccess { home: None, is_permitted: Some(&all_of_acme) };
    let recipients = ["Bob@acme.test", "ann@x.org"];
    // The access of the client, the message, and the mailboxes. A recipient can be refused.
    let table = [
        (WriteAccess::default(), plain, ["acme:bob", "ann"]),
        (WriteAccess::default(), with_header, ["srs:bob", "srs:ann"]),
        (WriteAccess { home: Some(&shop), is_permitted: None }, with_header, ["shop:bob", "shop:ann"]),
        (limited, with_header, ["acme:bob", ""]),
    ];
    for (access, source, expected) in table {
        let mut envelope: Envelope = envelope("a@x.org", &[]);
        for (text, expected) in recipients.iter().zip(expected) {
            let address = Address::parse(text, Alphabet::Ascii).unwrap();
            match mailroom.check_recipient(&envelope, address, access).await {
                Ok(recipient) => envelope.recipients.push(recipient),
                Err(refusal) => assert_eq!((refusal, expected), (RecipientRefusal::NotPermitted, ""), "{text}"),
            }
        }
        let copies = deliver_stored(&mailroom, &envelope, source).await;
        let mailboxes: Vec<_> = copies.iter().map(|copy| copy.mailbox.as_str()).collect();
        let accepted = expected.into_iter().filter(|name| !name.is_empty());
        assert_eq!(mailboxes, accepted.collect::<Vec<_>>(), "{source}");
        let recipients: Vec<_> = copies.iter().flat_map(|copy| copy.details.recipients()).collect();
        assert_eq!(recipients.len(), envelope.recipients.len(), "each recipient belongs to one copy");
    }
}

/// A message without To shows the recipients of its envelope. Those in other projects are not among them.
#[tokio::test]
async fn recipients_of_other_projects_are_not_shown() {
    let mailroom = mailroom(settings_with_rules(), Limits::default(), None);
    let table: [(&[&str], &str, &[&str]); 4] = [
        (&["ann@x.org", "bob@x.org"], "", &["<ann@x.org> <bob@x.org>", "<ann@x.org> <bob@x.org>"]),
        (&["ann@x.org", "bob@acme.test"], "", &["<ann@x.org>", "<bob@acme.test>"]),
        (&["ann@x.org", "bob@acme.test", "ann+1@x.org"], "", &["<ann@x.org> <ann+1@x.org>", "<bob@acme.test>"]),
        (&["ann@x.org", "bob@acme.test"], "To: List <all@x.org>\r\n", &["List <all@x.org>", "List <all@x.org>"]),
    ];
    for (recipients, header, expected) in table {
        let mut envelope: Envelope = envelope("a@x.org", &[]);
        for text in recipients {
            let address = Address::parse(text, Alphabet::Ascii).unwrap();
            let recipient = mailroom.check_recipient(&envelope, address, WriteAccess::default()).await.unwrap();
            envelope.recipients.push(recipient);
        }
        let body = format!("{header}Subject: x\r\n\r\n").leak();
        let copies = deliver_stored(&mailroom, &envelope, body).await;
        let shown: Vec<_> = copies.iter().map(|copy| copy.to().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(shown, expected, "{recipients:?}");
        let (all, first) = (Message::group(copies.clone()), Message::group(copies[..1].to_vec()));
        assert_eq!(all[0].to().count(), if header.is_empty() { recipients.len() } else { 1 });
        assert_eq!(first[0].to().collect::<Vec<_>>().join(" "), expected[0]);
    }
}

/// The domain of a run chooses its project before the rules. The home of a client has priority.
#[tokio::test]
async fn domains_of_runs_choose_their_projects() {
    let authenticator = Authenticator::open(restante_auth::Settings::default()).unwrap();
    let runs = authenticator.runs();
    let in_an_hour = Timestamp::now() + Duration::from_hours(1);
    let [(run, _), (other, _), (old, _)] =
        [in_an_hour, in_an_hour, Timestamp::now()].map(|time| runs.lease(time).unwrap());
    let leased_elsewhere = Authenticator::open(restante_auth::Settings::default()).unwrap();
    let (foreign, _) = leased_elsewhere.runs().lease(in_an_hour).unwrap();
    let mailroom = mailroom(settings_with_rules(), Limits::default(), None).with_runs(runs.clone());
    let is_other = |mailbox: &MailboxName| mailbox.project() == Some(other.project.clone());
    let limited = WriteAccess { home: None, is_permitted: Some(&is_other) };
    let in_home = WriteAccess { home: Some(&other.project), is_permitted: Some(&is_other) };
    let (all, unknown) = (WriteAccess::default(), Err(RecipientRefusal::UnknownRun));
    let table = [
        (all, format!("bob@{}.test", run.project), Ok(format!("{}:bob", run.project))),
        (all, format!("bob@{}.acme.test", run.project), Ok(format!("{}:bob", run.project))),
        (all, format!("bob@{}.test", old.project), unknown.clone()),
        (all, format!("bob@{}.test", foreign.project), unknown),
        (all, "bob@acme.test".to_owned(), Ok("acme:bob".to_owned())),
        (limited, format!("bob@{}.test", run.project), Err(RecipientRefusal::NotPermitted)),
        (limited, format!("bob@{}.test", other.project), Ok(format!("{}:bob", other.project))),
        (in_home, format!("bob@{}.test", run.project), Ok(format!("{}:bob", other.project))),
        (in_home, "bob@acme.test".to_owned(), Ok(format!("{}:bob", other.project))),
    ];
    for (access, text, expected) in table {
        let address = Address::parse(&text, Alphabet::Ascii).unwrap();
        let recipient = mailroom.check_recipient(&envelope("a@x.org", &[]), address, access).await;
        assert_eq!(recipient.map(|recipient| recipient.mailbox.to_string()), expected, "{text}");
    }
    // A header does not move mail out of a run.
    let mut envelope: Envelope = envelope("a@x.org", &[]);
    let address = Address::parse(&format!("bob@{}.test", run.project), Alphabet::Ascii).unwrap();
    envelope.recipients.push(mailroom.check_recipient(&envelope, address, all).await.unwrap());
    let copies = deliver_stored(&mailroom, &envelope, "X-App: srs\r\n\r\n").await;
    assert_eq!(copies[0].mailbox.project(), Some(run.project));
}

/// The mail of expired runs is deleted, whichever server has leased them, and no other mail.
#[tokio::test]
async fn mail_of_expired_runs_is_deleted() {
    let runs = Authenticator::open(restante_auth::Settings::default()).unwrap().runs().clone();
    let lease = |time| runs.lease(time).unwrap().0.project;
    let (old, active) = (lease(Timestamp::now()), lease(Timestamp::now() + Duration::from_hours(1)));
    let mailroom = mailroom(settings(), Limits::default(), None);
    // The mailboxes of a project can fill more than one page.
    let many = (0..600).map(|number| format!("{old}:m{number}"));
    let kept = [format!("{active}:bob"), "bob".to_owned(), "run-shop:bob".to_owned(), "run-bob".to_owned()];
    for name in many.chain(kept.clone()) {
        let mut envelope: Envelope = envelope("a@x.org", &["bob@x.org"]);
        envelope.recipients[0].mailbox = name.into();
        deliver_stored(&mailroom, &envelope, "\r\n").await;
    }
    timeout(Duration::from_secs(1), mailroom.delete_expired_runs()).await.unwrap_err();
    let mut left: Vec<String> =
        mailroom.mailboxes(MailboxPage::ALL).await.unwrap().iter().map(|mailbox| mailbox.name.to_string()).collect();
    left.sort();
    let mut kept = Vec::from(kept);
    kept.sort();
    assert_eq!(left, kept);
    assert_eq!(mailroom.counts().deleted_by(DeletionCause::Age), 600);
}
