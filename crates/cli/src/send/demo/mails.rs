//! The sample messages: the files in `mails/`, without date and Message-ID. A few of them contain dates, which are filled
//! in.
//!
//! All addresses and links are in the domains that RFC 2606 reserves for examples. Except for dates, the messages are
//! always the same.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use restante_mail::mime;

use crate::send::raw_message::{DefaultHeaders, RawMessage};

/// The recipient of most messages.
pub(super) const MAIN_RECIPIENT: &str = "alex@example.org";
/// The domain of the generated Message-IDs.
const MESSAGE_ID_HOST: &str = "example.org";

/// The messages in the order in which they are sent. The last one has a one-time code, so that it is the newest one in the
/// mailbox.
const FILES: [&str; 12] = [
    // A delivery status notification (RFC 3464).
    include_str!("mails/delivery_failure.eml"),
    // With an address to unsubscribe, a remote image, and CSS that many mail clients do not support.
    include_str!("mails/newsletter.eml"),
    // Plain text without attachments.
    include_str!("mails/alert.eml"),
    // HTML only, with elements that are not closed, or not in the right order.
    include_str!("mails/report.eml"),
    // Names, subject and file name are encoded, because they are not ASCII.
    include_str!("mails/japanese.eml"),
    // With several recipients. One more gets a blind copy.
    include_str!("mails/team.eml"),
    // Plain text with two attachments.
    include_str!("mails/invoice.eml"),
    // With a log as attachment.
    include_str!("mails/build.eml"),
    // With a calendar entry (RFC 6047).
    include_str!("mails/invitation.eml"),
    // The recipient address has a tag after a plus sign.
    include_str!("mails/password_reset.eml"),
    // With an image in the HTML, and an attachment.
    include_str!("mails/order.eml"),
    include_str!("mails/sign_up.eml"),
];

/// A sample message with its envelope.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SampleMail {
    pub(super) subject: String,
    /// The envelope sender; empty for the null reverse-path.
    pub(super) sender: String,
    /// The addresses of all recipients.
    pub(super) to: Vec<String>,
    pub(super) source: Vec<u8>,
}

/// Returns the messages with their dates.
pub(super) fn sample_mails(now: Timestamp) -> Vec<SampleMail> {
    (0..).zip(FILES).map(|(number, file)| sample_mail(now, number, file)).collect()
}

fn sample_mail(now: Timestamp, number: u32, file: &str) -> SampleMail {
    let text = fill_in_dates(file, now);
    let raw = RawMessage::parse(text.as_bytes());
    let unique_id = format!("{:x}.{number}", now.as_microsecond());
    let defaults = DefaultHeaders { now, unique_id: &unique_id, host: MESSAGE_ID_HOST, from: ("", "") };
    // A delivery status notification has no sender, so that no notification is sent to it (RFC 3464 section 2).
    let is_notification = text.contains("Content-Type: multipart/report;");
    SampleMail {
        subject: mime::summarize(text.as_bytes()).0.subject,
        sender: raw.from().filter(|_| !is_notification).unwrap_or_default(),
        to: raw.recipients(),
        source: raw.with_defaults(&defaults, true),
    }
}

/// Fills in the placeholders of a text. The meeting is in two days.
fn fill_in_dates(text: &str, now: Timestamp) -> String {
    // At the end of time it is now.
    let meeting = now.checked_add(SignedDuration::from_hours(48)).unwrap_or(now).to_zoned(TimeZone::UTC);
    let now = now.to_zoned(TimeZone::UTC);
    let values = [
        ("{today}", now.strftime("%Y-%m-%d")),
        ("{time}", now.strftime("%Y-%m-%d %H:%M UTC")),
        ("{meeting}", meeting.strftime("%A, %-d %B %Y")),
        // The format of iCalendar (RFC 5545 section 3.3.5).
        ("{stamp}", now.strftime("%Y%m%dT%H%M%SZ")),
        ("{start}", meeting.strftime("%Y%m%dT140000Z")),
        ("{end}", meeting.strftime("%Y%m%dT150000Z")),
    ];
    values.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, &value.to_string()))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn all_at(time: &str) -> Vec<SampleMail> {
        sample_mails(time.parse().unwrap())
    }

    #[test]
    fn are_a_dozen_and_always_the_same() {
        let mails = all_at("2026-11-20T09:41:00Z");
        assert_eq!(mails.len(), 12);
        assert_eq!(mails, all_at("2026-11-20T09:41:00Z"));
        assert_eq!(mails[11].to, [MAIN_RECIPIENT]);
        let ids = mails.iter().map(|mail| {
            let source = String::from_utf8_lossy(&mail.source).into_owned();
            let (_, id) = source.split_once("Message-ID: ").unwrap();
            id.lines().next().unwrap().to_owned()
        });
        assert_eq!(ids.collect::<std::collections::HashSet<_>>().len(), 12, "each message has its own id");
    }

    #[test]
    fn envelopes_are_those_of_the_header() {
        let mails = all_at("2026-11-20T09:41:00Z");
        let null_senders: Vec<&str> =
            mails.iter().filter(|mail| mail.sender.is_empty()).map(|mail| mail.subject.as_str()).collect();
        assert_eq!(null_senders, ["Undelivered Mail Returned to Sender"]);
        let addresses = ["alex", "sam", "priya", "product", "audit"].map(|name| format!("{name}@example.org"));
        assert_eq!((mails[5].sender.as_str(), &mails[5].to[..]), ("robin@example.org", &addresses[..]));
        assert!(!String::from_utf8_lossy(&mails[5].source).contains("audit@"), "a blind copy is not named");
    }

    #[test]
    fn dates_are_filled_in() {
        let now = "2026-11-20T09:41:00Z";
        assert_eq!(
            fill_in_dates("{today} | {time} | {meeting} | {stamp} | {start} | {end}", now.parse().unwrap()),
            "2026-11-20 | 2026-11-20 09:41 UTC | Sunday, 22 November 2026 | 20261120T094100Z | 20261122T140000Z | \
             20261122T150000Z"
        );
        let placeholder = regex::bytes::Regex::new(r"\{[a-z]+\}").unwrap();
        for mail in all_at(now) {
            assert!(!placeholder.is_match(&mail.source), "{}", mail.subject);
        }
        // Dates at the limits do not fail.
        assert_eq!(sample_mails(Timestamp::MAX).len(), 12);
    }

    /// The messages must not contain addresses or links of real hosts.
    #[test]
    fn use_only_domains_that_are_reserved_for_examples() {
        let pattern = regex::Regex::new(r"(?:[a-z]@|https?://|cid:[a-z]+@)([A-Za-z0-9.-]*[A-Za-z0-9])").unwrap();
        let reserved = ["example.org", "example.com", "example.net"];
        for text in FILES {
            let mut hosts = pattern.captures_iter(text).map(|found| found.get(1).unwrap().as_str()).peekable();
            assert!(hosts.peek().is_some(), "{text}");
            for host in hosts {
                let is_reserved =
                    reserved.iter().any(|domain| host == *domain || host.ends_with(&format!(".{domain}")));
                assert!(is_reserved, "{host} in {text}");
            }
        }
    }

    /// Readers of PDF find each object by its offset in the table.
    #[test]
    fn offsets_in_documents_are_those_of_the_objects() {
        for file in [include_str!("mails/order.eml"), include_str!("mails/invoice.eml")] {
            let (_, part) = file.split_once("Content-Type: application/pdf\n").unwrap();
            let content = part.split("\n\n").nth(1).unwrap().replace('\n', "");
            let text = String::from_utf8(STANDARD.decode(content).unwrap()).unwrap();
            let (_, start) = text.rsplit_once("startxref\n").unwrap();
            let start: usize = start.lines().next().unwrap().parse().unwrap();
            let entries: Vec<&str> = text[start..].lines().skip(3).take_while(|line| line.ends_with(" n ")).collect();
            assert_eq!(entries.len(), 5);
            for (at, entry) in entries.iter().enumerate() {
                let offset: usize = entry[..10].parse().unwrap();
                assert!(text[offset..].starts_with(&format!("{} 0 obj\n", at + 1)), "{entry}");
            }
        }
    }
}
