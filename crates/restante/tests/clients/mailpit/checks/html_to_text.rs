//! HTML as text: in the first words of a message, and in the search.

use super::{encode, get, run};
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::Side;

/// HTML, its text, and the text with the URLs of links.
const HTML: [(&str, &str, &str); 13] = [
    ("two  blanks here", "two blanks here", "two blanks here"),
    ("upper AND lower Case", "upper AND lower Case", "upper AND lower Case"),
    ("a smile :-)", "a smile :-)", "a smile :-)"),
    ("<h2>A title.</h2> ", "A title.", "A title."),
    ("<p>One</p><p>Two</p>", "One Two", "One Two"),
    ("<h2>Title</h2><p>Words</p>", "Title Words", "Title Words"),
    ("<i>Foot</i>ball <b>team</b>", "Football team", "Football team"),
    ("<i><b>F</b>oot</i>ball  team.", "Football team.", "Football team."),
    ("<table><tr><td>Left</td><td>Right</td></table>", "Left Right", "Left Right"),
    ("<h2>Title</h2>\n\t\t<p>Words</p>", "Title Words", "Title Words"),
    (
        "<h2>Title</h2><p>   <a href=\"https://one.test\">a link</a></p>",
        "Title a link",
        "Title a link https://one.test",
    ),
    // Elements that are not closed.
    ("<h2>Title</h4><p>   <a href=\"https://one.test\">a link.", "Title a link.", "Title a link. https://one.test"),
    ("odd_chars-&^%%(*)@ end", "odd_chars-&^%%(*)@ end", "odd_chars-&^%%(*)@ end"),
];

#[test]
fn text_is_made_from_html_as_in_mailpit() {
    run("html_to_text", |checks| {
        let mut mails: Vec<Mail> = HTML
            .iter()
            .enumerate()
            .map(|(number, (html, ..))| mail(&format!("row-{number}-end"), "html", html))
            .collect();
        let long = "abcdefghi ".repeat(30);
        mails.push(mail("long-text", "plain", &long));
        mails.push(mail("long-html", "html", &format!("<p>{long}</p>")));
        mails.push(mail("plain", "plain", "two  blanks\n and <h2>no</h2> HTML "));
        let side = Side::new(&checks.program, &[], &mails);
        let snippet = |name: &str| {
            let found = get(&side, &format!("/api/v1/search?query=subject:{name}"));
            found["messages"][0]["Snippet"].clone()
        };
        for (number, (html, text, with_links)) in HTML.iter().enumerate() {
            let name = format!("row-{number}-end");
            let what = format!("first words of {html:?}");
            checks.equal(what, snippet(&name), *text);
            for words in [text, with_links] {
                let query = encode(&format!("subject:{name} \"{words}\""));
                let count = get(&side, &format!("/api/v1/search?query={query}"))["messages_count"].take();
                checks.equal(format!("search for {words:?} in {html:?}"), count, 1);
            }
        }
        checks.equal("first words of a text", snippet("plain"), "two blanks and <h2>no</h2> HTML");
        for name in ["long-text", "long-html"] {
            let cut = [format!("{}...", &long[..200]), long[..199].to_owned()];
            checks.differs(format!("first words of {name}"), snippet(name), cut, "up to 200 characters");
        }
    });
}

fn mail(name: &str, kind: &str, body: &str) -> Mail {
    let kind = format!("MIME-Version: 1.0\nContent-Type: text/{kind}; charset=utf-8\n");
    let text = format!("From: ann@one.test\nTo: bob@two.test\nSubject: {name}\n{kind}\n{body}\n");
    Mail::new(name, &text).to(&["bob@two.test"])
}
