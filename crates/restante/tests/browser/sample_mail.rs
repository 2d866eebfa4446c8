//! Sample messages of a team: from a shop, a build server and a newsletter. They are used for screenshots.

use super::mails::{File, Mail, Picture, word};
use crate::support::Server;

const MUG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' width='96' height='96' viewBox='0 0 96 96'>\
    <rect width='96' height='96' rx='12' fill='#f1e7d8'/><path d='M66 38h8a10 10 0 0 1 0 24h-8' fill='none' stroke='#2f6f6a' \
    stroke-width='6'/><path d='M24 28h44v36a10 10 0 0 1-10 10H34a10 10 0 0 1-10-10z' fill='#3f8f88'/>\
    <path d='M24 40h44v8H24z' fill='#f6c453'/></svg>";

const ORDER: &str = "<!doctype html><html><head><style>
    body { margin: 0; padding: 24px; font: 15px/1.5 Helvetica, Arial, sans-serif; color: #23313a; background: #f4f1ea }
    .card { max-width: 560px; margin: 0 auto; background: #fff; border-radius: 10px; overflow: hidden }
    .top { padding: 20px 28px; background: #2f6f6a; color: #fff; font-size: 20px; font-weight: bold }
    .in { padding: 24px 28px } td { padding: 10px 0; vertical-align: top } .sum td { border-top: 1px solid #ddd; font-weight: bold }
    .go { display: inline-block; padding: 10px 20px; border-radius: 6px; background: #2f6f6a; color: #fff; text-decoration: none }
    </style></head><body><div class=card><div class=top>Töpferei Müller</div><div class=in>
    <p>Hello Anna,</p><p>thank you for your order <b>#2041</b>. We pack it today, and you will hear from us when it is on its way.</p>
    <table width='100%' cellspacing=0><tr><td width=112><img src='cid:mug@shop' width=96 height=96 alt='A green mug'></td>
    <td><b>Mug \u{201c}Forest\u{201d}</b><br>Stoneware, 0.3 l<br>2 pieces</td><td align=right>38.00 \u{20ac}</td></tr>
    <tr><td></td><td>Shipping</td><td align=right>4.90 \u{20ac}</td></tr>
    <tr class=sum><td></td><td>Total</td><td align=right>42.90 \u{20ac}</td></tr></table>
    <p><a class=go href='https://shop.example/orders/2041'>See your order</a></p>
    <p style='color: #667'>Töpferei Müller, Hauptstraße 4, Bürgel</p></div></div></body></html>";

const BUILD: &str = "Pipeline #8812 of shop/backend failed on branch fix/vat-rounding.\n\n\
    Job:     test (2 of 4)\nCommit:  3f9c1ab  Round VAT per line, not per invoice\nAuthor:  Jürgen Groß\n\n\
    FAILED tests/invoice.rs: total_of_a_mixed_basket\n  expected 42.90, got 42.91\n\n\
    Log: https://ci.example/shop/backend/8812\n";

const RESET: &str = "Hello Anna,\n\nsomebody, hopefully you, wants to choose a new password.\n\n\
    https://shop.example/reset?token=5e0c7d2a\n\nThe link is good for one hour. If it was not you, there is nothing to do.\n\
    -- \nTöpferei Müller\n";

const NEWS: &str = "<body style='margin: 0; font: 16px/1.5 Georgia, serif; background: #fff; color: #222'>
    <div style='max-width: 600px; margin: 0 auto; padding: 24px'><img src='http://images.shop.test/header.png' width=600 height=120 alt='Autumn'>
    <h1 style='font-weight: normal'>New glazes for the autumn</h1><p>Moss, slate and a warm red: three glazes that we have tried all summer.</p></div></body>";

const INVITATION: &[u8] = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:1@corp.example\r\n\
    DTSTAMP:20261116T090000Z\r\nDTSTART:20261120T140000Z\r\nDTEND:20261120T150000Z\r\nSUMMARY:Sprint review\r\n\
    LOCATION:Room 2\r\nORGANIZER;CN=Ann Lee:mailto:ann@corp.example\r\nATTENDEE;CN=James:mailto:james@kunde.example\r\n\
    END:VEVENT\r\nEND:VCALENDAR\r\n";

/// Returns all messages with their recipients, oldest first.
fn mails(shop: &str) -> Vec<(&'static str, Mail<'_>)> {
    let ci = "Build Server <ci@build.example>";
    let plain = Mail::default();
    vec![
        ("anna.keller", Mail { from: shop, subject: "Welcome, Anna", text: "Good to have you here.", ..plain }),
        ("newsletter", Mail { from: shop, subject: "New glazes for the autumn", html: NEWS, ..plain }),
        ("ci", Mail { from: ci, subject: "Pipeline #8811 passed: main", text: "All 214 tests passed.", ..plain }),
        ("anna.keller", Mail { from: shop, subject: "Choose a new password", text: RESET, ..plain }),
        ("anna.keller", Mail { from: shop, subject: "New glazes for the autumn", html: NEWS, ..plain }),
        ("ci", Mail { from: ci, subject: "Pipeline #8812 failed: fix/vat-rounding", text: BUILD, ..plain }),
        (
            "support",
            Mail {
                from: "Jürgen Groß <juergen@kunde.example>",
                subject: "Is the blue bowl coming back?",
                text: "I broke mine.",
                ..plain
            },
        ),
        (
            "anna.keller",
            Mail {
                from: shop,
                subject: "Your invoice 2026-2041",
                text: "The invoice for your order is attached.\n",
                files: &[
                    File { kind: "application/pdf", name: "Rechnung 2026-2041.pdf", content: &[0x25; 48_211] },
                    File {
                        kind: "text/csv",
                        name: "positions.csv",
                        content: b"article;pieces;price\r\nmug;2;38.00\r\n",
                    },
                ],
                ..plain
            },
        ),
        ("accounting", Mail { from: shop, subject: "Invoice 2026-2041 was sent", text: "To anna.keller.", ..plain }),
        (
            "anna.keller",
            Mail {
                from: shop,
                subject: "We have got your order #2041",
                to: "Anna Keller <anna.keller@kunde.example>",
                header: "X-Campaign: order-confirmation\r\n",
                text: "Hello Anna,\n\nthank you for your order #2041.\n",
                html: ORDER,
                pictures: &[Picture { id: "mug@shop", kind: "image/svg+xml", content: MUG }],
                ..plain
            },
        ),
    ]
}

/// Delivers all sample messages.
pub(crate) fn set_up(server: &Server) {
    let shop = format!("{} <shop@toepferei.example>", word("Töpferei Müller"));
    for (mailbox, mail) in mails(&shop) {
        let address = format!("{mailbox}@kunde.example");
        let to = if mail.to.is_empty() { &address } else { mail.to };
        server.deliver(&address, &Mail { to, ..mail }.bytes());
    }
}

/// Delivers more messages: with tags, to several recipients, with pictures and with an invitation.
pub(crate) fn set_up_more(server: &Server) {
    let plain = Mail::default();
    let mails: [(&[&str], Mail<'_>); 8] = [
        (
            &["team", "qa", "audit"],
            Mail {
                from: "Build Server <ci@build.example>",
                subject: "Nightly build 812 passed",
                header: "X-Tags: ci, nightly\r\n",
                text: "All 214 tests passed in 3 min 12 s.",
                ..plain
            },
        ),
        (
            &["mary"],
            Mail {
                from: "Acme Accounts <accounts@acme.example>",
                subject: "Your verification code",
                header: "X-Tags: signup\r\n",
                text: "Hello Mary,\n\nyour verification code is 394021. It expires in 10 minutes.\n",
                ..plain
            },
        ),
        (
            &["mary"],
            Mail {
                from: "Support <help@acme.example>",
                subject: "Re: [#2231] Cannot export my data",
                header: "Reply-To: ticket+2231@acme.example\r\n",
                text: "Hello,\n\nwe fixed the export.\n\n> It stops at 80 %.\n\n-- \nSupport team\n",
                ..plain
            },
        ),
        (
            &["anna.keller", "mary"],
            Mail {
                from: "Photo Club <club@photo.example>",
                subject: "Pictures of the trip",
                text: "Two pictures are attached.",
                files: &[
                    File { kind: "image/svg+xml", name: "mug.svg", content: MUG },
                    File { kind: "image/svg+xml", name: "mug again.svg", content: MUG },
                ],
                ..plain
            },
        ),
        (
            &["james"],
            Mail {
                from: "Ann Lee <ann@corp.example>",
                subject: "Invitation: Sprint review",
                text: "Please join.",
                files: &[File { kind: "text/calendar; method=REQUEST", name: "invite.ics", content: INVITATION }],
                ..plain
            },
        ),
        (
            &["james"],
            Mail {
                from: "Österreichische Bahn <info@bahn.example>",
                subject: "Ihre Fahrkarte nach Zürich – Gleis 7",
                text: "Guten Tag,\n\nIhre Fahrkarte finden Sie im Anhang.\n",
                files: &[File { kind: "text/plain", name: "Fahrkarte.txt", content: b"Gleis 7" }],
                ..plain
            },
        ),
        (
            &["james"],
            Mail {
                from: "Acme Accounts <accounts@acme.example>",
                subject: "Your verification code",
                header: "X-Tags: signup\r\n",
                text: "Hello James,\n\nyour verification code is 401940. It expires in 10 minutes.\n",
                ..plain
            },
        ),
        (
            &["team", "qa"],
            Mail {
                from: "Build Server <ci@build.example>",
                subject: "Nightly build 813 failed",
                header: "X-Tags: ci, nightly\r\n",
                text: "2 of 214 tests failed.",
                ..plain
            },
        ),
    ];
    for (recipients, mail) in mails {
        let addresses: Vec<String> = recipients.iter().map(|name| format!("{name}@kunde.example")).collect();
        let from = mail.from.replace("Österreichische Bahn", &word("Österreichische Bahn"));
        let content = Mail { from: &from, to: &addresses[0], ..mail }.bytes();
        let mut connection = server.connect_smtp();
        connection.start_message(&addresses[0]);
        for address in &addresses[1..] {
            connection.command(&format!("RCPT TO:<{address}>"), "250");
        }
        connection.send([format!("BDAT {} LAST\r\n", content.len()).as_bytes(), &content].concat());
        connection.expect("250");
    }
}
