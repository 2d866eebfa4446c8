//! The features of style attributes that the HTML check reports.

use super::{get, run};
use crate::mailpit::differential::mails::Mail;
use crate::mailpit::differential::side::Side;

#[test]
fn html_is_checked_as_in_mailpit() {
    run("html_check", |checks| {
        let mail = |(number, (attributes, _)): (usize, &(&str, &str))| {
            let kind = "MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n";
            let text = format!(
                "From: ann@one.test\nTo: bob@two.test\n{kind}Subject: styles\n\n<p {attributes}>Some words</p>\n"
            );
            Mail::new(&format!("style-{number}"), &text).to(&["bob@two.test"])
        };
        let side = Side::new(&checks.program, &[], &STYLES.iter().enumerate().map(mail).collect::<Vec<_>>());
        for (number, (attributes, features)) in STYLES.iter().enumerate() {
            let check = get(&side, &format!("/api/v1/message/{{style-{number}}}/html-check"));
            let warnings = check["Warnings"].as_array().into_iter().flatten();
            let slugs = warnings.filter_map(|warning| warning["Slug"].as_str());
            let mut css: Vec<&str> = slugs.filter(|slug| slug.starts_with("css-")).collect();
            css.sort_unstable();
            checks.equal(attributes, css.join(" "), *features);
        }
    });
}

/// Attributes, and the features of caniemail that they use.
const STYLES: [(&str, &str); 34] = [
    ("style=\"transform: skew(9deg)\"", "css-transform"),
    ("style=\"left: 0; transform:skew(9deg)\"", "css-transform"),
    ("style=\"left:0; transform :skew(9deg)\"", "css-transform"),
    ("style=\"transform:skew(9deg)\"", "css-transform"),
    ("style=\"TRANSFORM:skew(9deg)\"", "css-transform"),
    ("style=\"transform:\tskew(9deg)\"", "css-transform"),
    ("style=\"my-transform: none\"", ""),
    ("style=\"no-transform: none\"", ""),
    ("style=\"text-transform: lowercase\"", "css-text-transform"),
    ("style=\"text-transform: lowercase; text-transform: none\"", "css-text-transform"),
    ("style=\"padding-inline-start: 1em\"", "css-padding-inline-start-end"),
    ("style=\"padding-inline-end: 1em\"", "css-padding-inline-start-end"),
    ("style=\"margin-inline-end: 1em\"", "css-margin-inline-start-end"),
    ("style=\"margin-inline-side: 1em\"", ""),
    ("style=\"left:0!important\"", "css-important"),
    ("style=\"left: 0 !important\"", "css-important"),
    ("style=\"left: 0!important;\"", "css-important"),
    ("style=\"left:0!important-or-not;\"", ""),
    ("style=\"background-image:url('a.png')\"", "css-background-image"),
    ("style=\"background-image:url('a.png'); left: 0\"", "css-background-image"),
    ("style=\" left:0; background-image:url('a.png');\"", "css-background-image"),
    ("style=\"display  : flex ;\"", "css-display css-display-flex"),
    ("style=\"DISPLAY:FLEX;\"", "css-display css-display-flex"),
    ("style=\"display: flexed;\"", "css-display"),
    (
        "style=\"line-height: 2em;opacity: 0.1; width: calc(1px + 2px)\"",
        "css-line-height css-opacity css-unit-calc css-width",
    ),
    ("style=\"left: rgb(1,2,3);\"", "css-rgb"),
    ("style=\"left:rgb(1,2,3);\"", "css-rgb"),
    ("style=\"left:rgba(1,2,3, 0);\"", "css-rgba"),
    ("style=\"border: dotted rgb(1,2,3) 2px; left:rgba(1,2,3, 0);\"", "css-border css-rgb css-rgba"),
    ("border=\"1\"", "css-border"),
    ("border=\"1\" background=\"red\"", "css-background css-border"),
    ("BORDER=\"1\" BACKGROUND=\"RED\"", "css-background css-border"),
    ("border-other=\"1\" background-other=\"red\"", ""),
    ("border=\"1\" style=\"border: dotted red 2px!important\"", "css-border css-important"),
];
