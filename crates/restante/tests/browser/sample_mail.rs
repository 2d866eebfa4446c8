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
