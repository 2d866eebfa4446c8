//! Messages that the web interface adds: composed in a dialog, and imported from files.

use serde_json::json;

use super::mails;
use super::page::{Page, key};
use crate::support::Server;

const COMPOSE: &str = "dialog.compose-dialog[open]";

/// Drops files on the list: `arguments[0]` has the name and the content of each.
const DROP: &str = "
    const files = new DataTransfer();
    for (const [name, content] of arguments[0]) files.items.add(new File([content], name));
    const drag = name => new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer: files });
    const list = document.querySelector('list-head');
    list.dispatchEvent(drag('dragenter'));
    const overlay = document.querySelector('.drop-overlay').innerText;
    list.dispatchEvent(drag('drop'));
    return overlay";

#[test]
fn composed_message_is_stored_for_all_recipients() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james");
    page.click("empty-list .compose");
    assert_eq!(page.eval("return document.querySelector('dialog [name=to]').value", &json!([])), "james@example.org");
    page.fill("dialog [name=to]", "");
    page.click("dialog [type=submit]");
    page.until("the error", || page.text("dialog [role=alert]").contains("Enter at least one recipient"));
    page.fill("dialog [name=to]", "James <james@x.org>, bob@x.org");
    page.fill("dialog [name=from]", "Ann <ann@x.org>");
    page.fill("dialog [name=subject]", "Grüße");
    page.fill("dialog [name=text]", "Hello James");
    page.fill("dialog [name=html]", "<p>Hello <b>James</b></p>");
    let attach = "const files = new DataTransfer();
        for (const name of ['terms.txt', 'other.txt']) files.items.add(new File(['abc'], name, { type: 'text/plain' }));
        const input = document.querySelector('dialog [type=file]');
        input.files = files.files;
        input.dispatchEvent(new Event('change'))";
    page.eval(attach, &json!([]));
    page.until("the files", || page.count(".compose-files li") == 2);
    page.click("[aria-label='Remove other.txt']");
    page.click("dialog [type=submit]");
    page.until("the message", || page.texts(".row-subject") == ["Grüße"]);
    page.until("the toast", || page.text(".toast").contains("stored in 2 mailboxes"));
    for mailbox in ["james", "bob"] {
        let message = server.json(&format!("/api/v1/mailbox/{mailbox}/latest"));
        assert_eq!(message["from"], "Ann <ann@x.org>");
        assert_eq!(message["body"]["text"].as_str().map(str::trim), Some("Hello James"));
        assert!(message["body"]["html"].as_str().is_some_and(|html| html.contains("<b>James</b>")), "{message}");
        assert_eq!(message["attachments"][0]["filename"], "terms.txt");
        assert_eq!(message["attachments"].as_array().map(Vec::len), Some(1));
    }
    page.assert_quiet();
}

#[test]
fn composing_reports_errors_and_opens_by_a_key() {
    let server = Server::start(&["--smtp-rejectdomains=evil.test"]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/status");
    page.find("status-page h1");
    page.keys("c");
    page.fill("dialog [name=to]", "bob@x.org, ann@evil.test");
    page.click("dialog [type=submit]");
    page.until("the error", || page.text("dialog [role=alert]").contains("domain"));
    // A second attempt omits the recipient that has the message already.
    page.fill("dialog [name=to]", "bob@x.org, ann@x.org, Ann <ANN@x.org>");
    page.click("dialog [type=submit]");
    page.until("the toast", || page.text(".toast").contains("stored in 2 mailboxes"));
    assert_eq!((server.count("bob"), server.count("ann")), (1, 1));
    page.click(".toast .button");
    page.until("the message", || page.text(".message-subject") == "Test message");
}

#[test]
fn draft_is_not_lost() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/m/james/latest");
    page.find("empty-list h2");
    page.keys("c");
    page.find("dialog[open]");
    // The page opens the new message below the dialog.
    server.deliver("james@x.org", &mails::text("Arrived", "Hello"));
    page.until("the message", || !page.path().ends_with("/latest"));
    assert_eq!(page.count(COMPOSE), 1, "the dialog was closed");
    // A selection of text that ends outside of the dialog.
    let select = "
        const dialog = document.querySelector('dialog');
        dialog.querySelector('[name=text]').dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }));
        dialog.click()";
    page.eval(select, &json!([]));
    assert_eq!(page.count(COMPOSE), 1, "the dialog was closed");
    page.fill("dialog [name=subject]", "A draft");
    for _ in 0..2 {
        page.keys(key::ESCAPE);
        page.until("the question", || page.text("dialog:not(.compose-dialog) h2") == "Discard the message?");
        page.keys(key::ESCAPE);
        page.until("the end of the question", || page.count("dialog[open]") == 1);
        assert_eq!(page.count(COMPOSE), 1, "the draft was discarded");
    }
    page.keys(key::ESCAPE);
    page.click("dialog .danger");
    page.until("the end of the dialogs", || page.count("dialog") == 0);
    // Without a change there is no question.
    page.keys("c");
    page.find(COMPOSE);
    page.keys(key::ESCAPE);
    page.until("the end of the dialog", || page.count("dialog") == 0);
    page.assert_quiet();
}

#[test]
fn dropped_files_are_imported() {
    let server = Server::start(&[]);
    let Some(page) = Page::of(&server) else { return };
    page.open("/");
    page.find("empty-list send-here");
    let mail = "From: Ann <ann@x.org>\r\nTo: James <james@x.org>,\r\n bob@x.org\r\nSubject: Saved\r\n\r\nHello\r\n";
    let overlay = page.eval(DROP, &json!([[["saved.eml", mail]]]));
    assert_eq!(overlay, "Drop .eml files to import them");
    page.until("the messages", || page.texts(".row-subject") == ["Saved", "Saved"]);
    page.until("the result", || page.text(".toasts").contains("1 message was imported."));
    assert_eq!((server.count("james"), server.count("bob"), page.count("dialog")), (1, 1, 0));

    // Into the mailbox that is open, and with an error for each file that is not a message.
    page.open("/m/carol");
    page.find("empty-list h2");
    let files = json!([[["one.eml", mail], ["<b>notes</b>.txt", "x"], ["empty.eml", ""], ["two.eml", mail]]]);
    assert_eq!(page.eval(DROP, &files), "Drop .eml files to import them into carol");
    page.until("the result", || page.text("dialog [role=status]") == "2 of 4 files were imported.");
    let errors = page.texts(".import-errors li");
    assert_eq!(errors[0], "<b>notes</b>.txt This is not an .eml file.");
    assert!(errors[1].starts_with("empty.eml ") && errors.len() == 2, "{errors:?}");
    page.click("dialog .button");
    page.until("the messages", || page.texts(".row-subject") == ["Saved", "Saved"]);
    assert_eq!(server.count("carol"), 2);

    // A file that is dropped beside the list does not replace the page.
    let drop = "
        const files = new DataTransfer();
        files.items.add(new File(['x'], 'x.eml'));
        const beside = new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: files });
        return document.querySelector('.bar').dispatchEvent(beside)";
    assert_eq!(page.eval(drop, &json!([])), false, "the browser opens the file");
}
