//! The sample messages. Their texts are files in `mails/`; a few of them contain dates, which are filled in.
//!
//! All addresses and links are in the domains that RFC 2606 reserves for examples. Except for dates, the messages are
//! always the same.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use restante_mail::compose::{Attachment, ComposeContext, Draft, DraftError};
use restante_mail::mime::NamedAddress;

use super::pdf;
use crate::send::raw_message::{DefaultHeaders, RawMessage};

/// The recipient of most messages.
pub(super) const MAIN_RECIPIENT: &str = "alex@example.org";

const ALEX: &str = "Alex Morgan <alex@example.org>";
const SHOP: &str = "Fernhill Coffee <orders@example.com>";
/// The domain of the generated Message-IDs.
const MESSAGE_ID_HOST: &str = "example.org";

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

/// Returns the messages in the order in which they are sent. The last one has a one-time code, so that it is the newest
/// one in the mailbox.
pub(super) fn sample_mails(now: Timestamp) -> Result<Vec<SampleMail>, DraftError> {
    let dates = Dates::new(now);
    let drafts = [
        (newsletter(), ""),
        (alert(&dates), ""),
        (report(), ""),
        (japanese(), ""),
        (team(), "audit@example.org"),
        (invoice(&dates), ""),
        (build(), ""),
        (invitation(&dates), ""),
        (password_reset(), ""),
        (order(), ""),
        (sign_up(), ""),
    ];
    let mut mails = vec![delivery_failure(now)];
    for (number, (draft, bcc)) in (1..).zip(drafts) {
        let context = ComposeContext::new(now, MESSAGE_ID_HOST, number);
        let source = draft.compose(&context)?;
        let address = |text: &String| NamedAddress::from_display(text).address;
        let hidden = (!bcc.is_empty()).then(|| bcc.to_owned());
        let to = draft.to.iter().chain(&draft.cc).map(address).chain(hidden).collect();
        mails.push(SampleMail { sender: address(&draft.from), to, source, subject: draft.subject });
    }
    Ok(mails)
}

/// The dates in the texts.
struct Dates {
    /// `2026-11-20`
    today: String,
    /// `2026-11-20 09:41 UTC`
    time: String,
    /// `Sunday, 22 November 2026`
    meeting: String,
    /// The same times in the format of iCalendar (RFC 5545 section 3.3.5).
    stamp: String,
    start: String,
    end: String,
}

impl Dates {
    fn new(now: Timestamp) -> Self {
        // The meeting is in two days. At the end of time it is now.
        let meeting = now.checked_add(SignedDuration::from_hours(48)).unwrap_or(now).to_zoned(TimeZone::UTC);
        let now = now.to_zoned(TimeZone::UTC);
        Self {
            today: now.strftime("%Y-%m-%d").to_string(),
            time: now.strftime("%Y-%m-%d %H:%M UTC").to_string(),
            meeting: meeting.strftime("%A, %-d %B %Y").to_string(),
            stamp: now.strftime("%Y%m%dT%H%M%SZ").to_string(),
            start: meeting.strftime("%Y%m%dT140000Z").to_string(),
            end: meeting.strftime("%Y%m%dT150000Z").to_string(),
        }
    }

    /// Fills in the placeholders of a text.
    fn fill_in(&self, text: &str) -> String {
        let values = [
            ("{today}", &self.today),
            ("{time}", &self.time),
            ("{meeting}", &self.meeting),
            ("{stamp}", &self.stamp),
            ("{start}", &self.start),
            ("{end}", &self.end),
        ];
        values.into_iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

fn sign_up() -> Draft {
    Draft {
        from: "Tidewater <accounts@example.net>".to_owned(),
        to: vec![ALEX.to_owned()],
        subject: "482913 is your verification code".to_owned(),
        text: Some(include_str!("mails/sign_up.txt").to_owned()),
        html: Some(include_str!("mails/sign_up.html").to_owned()),
        headers: headers(&[("X-Tags", "sign-up"), ("Auto-Submitted", "auto-generated")]),
        ..Draft::default()
    }
}

/// The recipient address has a tag after a plus sign.
fn password_reset() -> Draft {
    Draft {
        from: "Fernhill Coffee <accounts@example.com>".to_owned(),
        to: vec!["Alex Morgan <alex+fernhill@example.org>".to_owned()],
        subject: "Reset your password".to_owned(),
        text: Some(include_str!("mails/password_reset.txt").to_owned()),
        html: Some(include_str!("mails/password_reset.html").to_owned()),
        headers: headers(&[("Auto-Submitted", "auto-generated")]),
        ..Draft::default()
    }
}

/// With an image in the HTML, and an attachment.
fn order() -> Draft {
    let receipt = pdf::document(&[
        "Fernhill Coffee",
        "Receipt for order #20418",
        "",
        "2 x House blend, 500 g    $31.00",
        "Shipping                   $4.90",
        "Total                     $35.90",
        "",
        "Paid by card. Thank you!",
    ]);
    Draft {
        from: SHOP.to_owned(),
        to: vec![ALEX.to_owned()],
        reply_to: vec!["support@example.com".to_owned()],
        subject: "Your order #20418 is confirmed".to_owned(),
        text: Some(include_str!("mails/order.txt").to_owned()),
        html: Some(include_str!("mails/order.html").to_owned()),
        headers: headers(&[("X-Tags", "order")]),
        attachments: vec![
            Attachment {
                content_id: Some("coffee@example.com".to_owned()),
                ..file("coffee.png", "image/png", &include_bytes!("mails/coffee.png")[..])
            },
            file("receipt-20418.pdf", "application/pdf", receipt),
        ],
        ..Draft::default()
    }
}

/// With an address to unsubscribe, a remote image, and CSS that many mail clients do not support.
fn newsletter() -> Draft {
    Draft {
        from: "Fernhill Coffee <newsletter@example.com>".to_owned(),
        to: vec![ALEX.to_owned()],
        subject: "Three coffees for autumn ☕".to_owned(),
        text: Some(include_str!("mails/newsletter.txt").to_owned()),
        html: Some(include_str!("mails/newsletter.html").to_owned()),
        headers: headers(&[
            ("X-Tags", "newsletter"),
            ("List-Id", "Fernhill Coffee newsletter <newsletter.example.com>"),
            (
                "List-Unsubscribe",
                "<https://shop.example.com/newsletter/unsubscribe?u=41c7a9>, <mailto:unsubscribe@example.com?subject=41c7a9>",
            ),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("Precedence", "bulk"),
        ]),
        ..Draft::default()
    }
}

/// Plain text with two attachments.
fn invoice(dates: &Dates) -> Draft {
    let document = pdf::document(&[
        "Tidewater",
        "Invoice 2041",
        "",
        "8 x Team plan (monthly)      $200.00",
        "2 x Additional storage        $40.00",
        "Amount due                   $240.00",
        "",
        "Please pay within 14 days.",
    ]);
    Draft {
        from: "Tidewater Billing <billing@example.net>".to_owned(),
        to: vec!["Accounting <accounting@example.org>".to_owned()],
        subject: "Invoice 2041".to_owned(),
        text: Some(dates.fill_in(include_str!("mails/invoice.txt"))),
        headers: headers(&[("X-Tags", "invoice")]),
        attachments: vec![
            file("invoice-2041.pdf", "application/pdf", document),
            file("invoice-2041.csv", "text/csv; charset=utf-8", crlf(include_str!("mails/invoice.csv"))),
        ],
        ..Draft::default()
    }
}

/// With a calendar entry (RFC 6047).
fn invitation(dates: &Dates) -> Draft {
    let entry = crlf(&dates.fill_in(include_str!("mails/invitation.ics")));
    Draft {
        from: "Priya Nair <priya@example.org>".to_owned(),
        to: vec![ALEX.to_owned(), "Sam Rivera <sam@example.org>".to_owned()],
        subject: format!("Invitation: Sprint review on {}", dates.meeting),
        text: Some(dates.fill_in(include_str!("mails/invitation.txt"))),
        headers: headers(&[("X-Tags", "calendar")]),
        attachments: vec![file("invitation.ics", "text/calendar; charset=utf-8; method=REQUEST", entry)],
        ..Draft::default()
    }
}

/// Plain text without attachments.
fn alert(dates: &Dates) -> Draft {
    Draft {
        from: "Monitoring <monitor@example.net>".to_owned(),
        to: vec!["ops@example.org".to_owned()],
        subject: "[CRITICAL] Disk usage above 90 % on db-2.example.net".to_owned(),
        text: Some(dates.fill_in(include_str!("mails/alert.txt"))),
        headers: headers(&[("X-Tags", "alert"), ("X-Priority", "1"), ("Auto-Submitted", "auto-generated")]),
        ..Draft::default()
    }
}

/// Names, subject and file name are encoded, because they are not ASCII.
fn japanese() -> Draft {
    Draft {
        from: "緑茶専門店 みどり <midori@example.com>".to_owned(),
        to: vec!["佐藤 美咲 <misaki@example.org>".to_owned()],
        subject: "【発送のお知らせ】ご注文の商品を発送しました（JP-7731）".to_owned(),
        text: Some(include_str!("mails/japanese.txt").to_owned()),
        html: Some(include_str!("mails/japanese.html").to_owned()),
        attachments: vec![file(
            "納品書.txt",
            "text/plain; charset=utf-8",
            crlf("抹茶セット\t1\t4,800円\n合計\t\t4,800円\n"),
        )],
        ..Draft::default()
    }
}

/// With several recipients. One more gets a blind copy.
fn team() -> Draft {
    Draft {
        from: "Robin Hale <robin@example.org>".to_owned(),
        to: vec![
            ALEX.to_owned(),
            "Sam Rivera <sam@example.org>".to_owned(),
            "Priya Nair <priya@example.org>".to_owned(),
        ],
        cc: vec!["Product team <product@example.org>".to_owned()],
        subject: "Launch of the new checkout on Monday".to_owned(),
        text: Some(include_str!("mails/team.txt").to_owned()),
        ..Draft::default()
    }
}

/// With a log as attachment.
fn build() -> Draft {
    Draft {
        from: "Build Server <ci@example.net>".to_owned(),
        to: vec!["sam@example.org".to_owned()],
        subject: "Build #1287 failed: shop/checkout (feature/discount-codes)".to_owned(),
        text: Some(include_str!("mails/build.txt").to_owned()),
        headers: headers(&[("X-Tags", "ci, failed"), ("Auto-Submitted", "auto-generated")]),
        attachments: vec![file("build-1287.log", "text/plain", include_str!("mails/build_log.txt"))],
        ..Draft::default()
    }
}

/// HTML only, with elements that are not closed, or not in the right order.
fn report() -> Draft {
    Draft {
        from: "Report Server <reports@example.net>".to_owned(),
        to: vec!["sales@example.org".to_owned()],
        subject: "Weekly sales report".to_owned(),
        html: Some(include_str!("mails/broken_table.html").to_owned()),
        ..Draft::default()
    }
}

/// A delivery status notification (RFC 3464). Drafts cannot be multipart/report, so the file is the whole message
/// except for date and Message-ID.
fn delivery_failure(now: Timestamp) -> SampleMail {
    let raw = RawMessage::parse(include_bytes!("mails/delivery_failure.eml"));
    let from = ("mailer-daemon@mx.example.net", "");
    let unique_id = format!("{:x}.0", now.as_microsecond());
    let defaults = DefaultHeaders { now, unique_id: &unique_id, host: "mx.example.net", from };
    SampleMail {
        subject: "Undelivered Mail Returned to Sender".to_owned(),
        sender: String::new(),
        to: raw.recipients(),
        source: raw.with_defaults(&defaults, false),
    }
}

fn headers(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn file(name: &str, content_type: &str, content: impl Into<Vec<u8>>) -> Attachment {
    Attachment {
        filename: Some(name.to_owned()),
        content_type: Some(content_type.to_owned()),
        content: content.into().into(),
        content_id: None,
    }
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_at(time: &str) -> Vec<SampleMail> {
        sample_mails(time.parse().unwrap()).unwrap()
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
    fn dates_are_filled_in() {
        let dates = Dates::new("2026-11-20T09:41:00Z".parse().unwrap());
        assert_eq!(
            dates.fill_in("{today} | {time} | {meeting} | {stamp} | {start} | {end}"),
            "2026-11-20 | 2026-11-20 09:41 UTC | Sunday, 22 November 2026 | 20261120T094100Z | 20261122T140000Z | \
             20261122T150000Z"
        );
        let texts = [invoice(&dates), invitation(&dates), alert(&dates)];
        assert!(texts.iter().all(|draft| !draft.text.as_ref().unwrap().contains('{')), "{texts:?}");
        // Dates at the limits do not fail.
        assert_eq!(sample_mails(Timestamp::MAX).unwrap().len(), 12);
    }

    /// The messages must not contain addresses or links of real hosts. The texts before encoding are checked.
    #[test]
    fn use_only_domains_that_are_reserved_for_examples() {
        let dates = Dates::new(Timestamp::UNIX_EPOCH);
        let drafts = [
            newsletter(),
            alert(&dates),
            report(),
            japanese(),
            team(),
            invoice(&dates),
            build(),
            invitation(&dates),
            password_reset(),
            order(),
            sign_up(),
        ];
        let mut texts: Vec<String> = drafts.iter().map(|draft| format!("{draft:?}")).collect();
        texts.push(include_str!("mails/delivery_failure.eml").to_owned());
        let pattern = regex::Regex::new(r"(?:[a-z]@|https?://|cid:[a-z]+@)([A-Za-z0-9.-]*[A-Za-z0-9])").unwrap();
        let reserved = ["example.org", "example.com", "example.net"];
        for text in &texts {
            let mut hosts = pattern.captures_iter(text).map(|found| found.get(1).unwrap().as_str()).peekable();
            assert!(hosts.peek().is_some(), "{text}");
            for host in hosts {
                let is_reserved =
                    reserved.iter().any(|domain| host == *domain || host.ends_with(&format!(".{domain}")));
                assert!(is_reserved, "{host} in {text}");
            }
        }
    }
}
