//! The projects that rules choose when recipients are checked and messages are delivered.

use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{Envelope, RecipientRefusal};
use restante_mail::naming::{MailboxName, Project};
use restante_mail::rules::{Condition, Field};
use restante_mailroom::projects::ProjectRule;
use restante_mailroom::{Settings, WriteAccess};
use restante_store::Limits;

use crate::delivery::{deliver_stored, envelope, mailroom, settings};

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
        assert_eq!(mailboxes, Vec::from_iter(expected.into_iter().filter(|name| !name.is_empty())), "{source}");
        let recipients: Vec<_> = copies.iter().flat_map(|copy| copy.details.recipients()).collect();
        assert_eq!(recipients.len(), envelope.recipients.len(), "each recipient belongs to one copy");
    }
}
