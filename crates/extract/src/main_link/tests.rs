//! Messages as senders write them, and the link that they ask to follow.

use bytes::Bytes;
use restante_mail::mime::Mime;

use crate::links;

/// Returns the text of the main link of a message with this header, HTML and text.
fn main_link(message: &str) -> Option<String> {
    let links = links(&Mime::parse(Bytes::copy_from_slice(message.as_bytes())));
    let main: Vec<_> = links.iter().filter(|link| link.is_main).collect();
    assert!(main.len() <= 1, "{main:?}");
    main.first().map(|link| if link.text.is_empty() { link.href.clone() } else { link.text.clone() })
}

fn of_html(html: &str) -> Option<String> {
    main_link(&format!("Content-Type: text/html; charset=utf-8\r\n\r\n{html}"))
}

fn of_text(text: &str) -> Option<String> {
    main_link(&format!("Content-Type: text/plain; charset=utf-8\r\n\r\n{text}"))
}

/// The end of many messages.
const FOOTER: &str = r#"<p><a href="https://shop.example/"><img src=x alt="Shop"></a></p>
<p><a href="https://facebook.com/shop"><img src=f alt="Facebook"></a> <a href="https://x.com/shop"></a>
<a href="https://www.instagram.com/shop">Instagram</a></p>
<p><a href="https://shop.example/privacy">Privacy policy</a> | <a href="https://shop.example/agb">AGB</a> |
<a href="https://shop.example/u/17">Unsubscribe</a> | <a href="https://shop.example/help">Help center</a></p>"#;

#[test]
fn html_with_a_main_link() {
    let table = [
        // Password resets.
        (
            r#"<p>Hi Ann,</p><p><a href="https://app.example/password/reset?t=x">Reset password</a></p>"#,
            "Reset password",
        ),
        (r#"<a class="button" href="https://app.example/p/17">Passwort zurücksetzen</a>"#, "Passwort zurücksetzen"),
        (r#"<a href="https://app.example/p/17">Réinitialiser mon mot de passe</a>"#, "Réinitialiser mon mot de passe"),
        (r#"<a href="https://app.example/p/17">Restablecer contraseña</a>"#, "Restablecer contraseña"),
        (r#"<a href="https://app.example/p/17">パスワードを再設定する</a>"#, "パスワードを再設定する"),
        // Confirmations.
        (
            r#"<td bgcolor=navy><a style="padding:12px;color:#fff" href="https://app.example/v?t=1">Confirm e-mail</a></td>"#,
            "Confirm e-mail",
        ),
        (
            r#"<a href="https://app.example/v?t=1"><img src=b.png alt="Bestätigen Sie Ihre E-Mail-Adresse"></a>"#,
            "Bestätigen Sie Ihre E-Mail-Adresse",
        ),
        (r#"<a href="https://app.example/v?t=1">Conferma il tuo indirizzo</a>"#, "Conferma il tuo indirizzo"),
        (r#"<a href="https://app.example/v?t=1">Bevestig je e-mailadres</a>"#, "Bevestig je e-mailadres"),
        (r#"<a href="https://app.example/v?t=1">Подтвердить адрес</a>"#, "Подтвердить адрес"),
        (r#"<a href="https://app.example/v?t=1">验证邮箱</a>"#, "验证邮箱"),
        (r#"<a href="https://app.example/v?t=1">이메일 인증</a>"#, "이메일 인증"),
        (r#"<p>Please click <a href="https://click.example/ls/abc">here</a> to confirm your address.</p>"#, "here"),
        // Invitations, with a second choice.
        (
            r#"<a class=btn href="https://app.example/i/1">Accept invitation</a> <a class=btn href="https://app.example/i/2">Decline</a>"#,
            "Accept invitation",
        ),
        (r#"<a href="https://team.example/i/1">Join</a> <a href="https://team.example/about">Ann Example</a>"#, "Join"),
        // Orders and notices.
        (
            r#"<a href="https://shop.example/p/1">Blue lamp</a> <a href="https://shop.example/p/2">Chair</a> <a href="https://shop.example/o/17">View your order</a>"#,
            "View your order",
        ),
        (
            r#"<a class="cta" href="https://shop.example/t/17">Suivre mon colis</a> <a href="https://shop.example/p/1">Lampe bleue</a>"#,
            "Suivre mon colis",
        ),
        (
            r#"<p>Ann commented on #17: yes</p><p>Reply to this mail or <a href="https://git.example/i/17">view it on Git Example</a>.</p>"#,
            "view it on Git Example",
        ),
        (
            r#"<a style="background:#0a0;padding:9px" href="https://pay.example/17">Jetzt bezahlen</a> <a href="https://pay.example/17/pdf">Rechnung (PDF)</a>"#,
            "Jetzt bezahlen",
        ),
        (
            r#"<a href="https://www.linkedin.com/comm/17">View invitation</a> <a href="https://www.linkedin.com/"></a>"#,
            "View invitation",
        ),
        // The URL of the button is repeated for copying, also behind a redirect.
        (
            r#"<a class=btn href="https://t.example/c/1">Verify account</a><p>Or copy this link to confirm: <a href="https://t.example/c/2">https://app.example/verify?t=x</a></p>"#,
            "Verify account",
        ),
        (
            r#"<p>Open this address:</p><p><a href="https://app.example/s/17">https://app.example/s/17</a></p>"#,
            "https://app.example/s/17",
        ),
        // A newsletter with one button.
        (
            r#"<a href="https://n.example/1">First story</a> <a href="https://n.example/2">Second story</a> <a class=btn href="https://n.example/all">All stories</a>"#,
            "All stories",
        ),
        (
            r#"<a href="https://n.example/1"><table style="background:#c00;border-radius:4px"><tr><td>Tickets</td></tr></table></a> <a href="https://n.example/2">Band</a>"#,
            "Tickets",
        ),
    ];
    for (html, expected) in table {
        assert_eq!(of_html(html).as_deref(), Some(expected), "{html}");
        assert_eq!(of_html(&format!("{html}{FOOTER}")).as_deref(), Some(expected), "with a footer: {html}");
    }
}

#[test]
fn html_without_a_main_link() {
    let table = [
        "",
        FOOTER,
        r#"<a href="mailto:reset@app.example">Reset your password</a>"#,
        r#"<a href="https://app.example/v?t=1">View this email in your browser</a>"#,
        r#"<a href="https://n.example/u?id=1">Abmelden</a> <a href="https://n.example/i">Impressum</a>"#,
        r#"<p>If you no longer wish to receive these mails, click <a href="https://n.example/ls/x">here</a>.</p>"#,
        r#"<p><a href="https://n.example/ls/x">Click here</a> to unsubscribe.</p>"#,
        r#"<a href="https://n.example/preferences/17">Click here to manage what you get</a>"#,
        r#"<a href="https://shop.example"><img src=x alt="Shop"></a>"#,
        r#"<a href="https://shop.example/x"><img src=x></a>"#,
        r#"<a href="https://shop.example/">shop.example</a>"#,
        r#"<p>We wrote about it on <a href="https://blog.example/2026/11/lamps">our blog</a>.</p>"#,
        // Many equal links.
        r#"<a href="https://n.example/1">Read more</a> <a href="https://n.example/2">Read more</a> <a href="https://n.example/3">Read more</a>"#,
        r#"<a class=btn href="https://n.example/1">Shop now</a> <a class=btn href="https://n.example/2">Shop now</a>"#,
        r#"<a href="https://n.example/1">View lamps</a> <a href="https://n.example/2">View chairs</a> <a href="https://n.example/3">View beds</a>"#,
        r#"<a href="https://n.example/1">How to reset your sleep schedule</a> <a href="https://n.example/2">Why we moved</a>"#,
        r#"<a class=btn href="https://app.example/1">Approve</a> <a class=btn href="https://app.example/2">View details</a>"#,
        r#"<a href="https://apps.apple.com/app/1">App Store</a> <a href="https://play.google.com/store/1">Google Play</a>"#,
    ];
    for html in table {
        assert_eq!(of_html(html), None, "{html}");
        assert_eq!(of_html(&format!("{html}{FOOTER}")), None, "with a footer: {html}");
    }
}

#[test]
fn plain_texts() {
    let table = [
        ("Hi,\n\nto reset your password open\nhttps://app.example/r/17\n\nBye", Some("https://app.example/r/17")),
        ("https://app.example/r/17", Some("https://app.example/r/17")),
        (
            "Bitte bestätigen: https://app.example/b/17\n\nShop: https://shop.example/\n",
            Some("https://app.example/b/17"),
        ),
        (
            "Confirm your address:\n\nhttps://app.example/c/17\n\nUnsubscribe:\nhttps://app.example/u/17\n",
            Some("https://app.example/c/17"),
        ),
        (
            "Meet here: https://meet.example/abc\n-- \nAnn\nhttps://ann.example/about/me\n",
            Some("https://meet.example/abc"),
        ),
        ("See you.\n-- \nAnn\nhttps://ann.example/about/me\n", None),
        ("Privacy policy: https://app.example/legal/17\n", None),
        ("Abmelden: https://app.example/x/17\n", None),
        ("https://a.example/1\nhttps://a.example/2\nhttps://a.example/3\n", None),
        ("Visit us: https://shop.example/\n", None),
        ("Write to mailto:confirm@app.example\n", None),
        ("No link at all", None),
    ];
    for (text, expected) in table {
        assert_eq!(of_text(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn links_of_the_list_header_are_not_main() {
    let html = r#"<a class=btn href="https://n.example/ls/x">Confirm</a>"#;
    let header = "List-Unsubscribe: <https://n.example/ls/x>\r\nContent-Type: text/html";
    assert_eq!(main_link(&format!("{header}\r\n\r\n{html}")), None);
}

#[test]
fn only_the_html_is_examined_if_it_has_links() {
    let message = "Content-Type: multipart/alternative; boundary=b\r\n\r\n\
        --b\r\n\r\nConfirm: https://app.example/confirm/1\r\n\
        --b\r\nContent-Type: text/html\r\n\r\n<a href=https://app.example/confirm/1>Confirm</a>\r\n--b--";
    assert_eq!(main_link(message).as_deref(), Some("Confirm"));
    let without_html_link = message.replace("<a href=https://app.example/confirm/1>Confirm</a>", "<p>Hello</p>");
    assert_eq!(main_link(&without_html_link).as_deref(), Some("https://app.example/confirm/1"));
}

#[test]
fn message_with_very_many_links_has_none() {
    let links: Vec<_> = (0..500).map(|n| format!("<a href=https://n.example/{n}>{n}</a> ")).collect();
    let confirm = "<a class=btn href=https://n.example/confirm>Confirm</a>";
    assert_eq!(of_html(&format!("{confirm}{}", links[..100].concat())).as_deref(), Some("Confirm"));
    assert_eq!(of_html(&format!("{confirm}{}", links.concat())), None);
}
