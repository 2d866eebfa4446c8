//! The pictures in the documentation. With `UPDATE_PICTURES=1` the test writes them, otherwise it checks that the documentation refers
//! to pictures that this test writes, and that those have the right size.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::appearance::open;
use super::page::{DESKTOP, PHONE, Page};
use super::sample_mail;
use crate::support::Server;

/// The variable with which the pictures are written.
const UPDATE: &str = "UPDATE_PICTURES";

/// A picture of a page.
struct Picture {
    name: &'static str,
    path: &'static str,
    /// A selector that exists when the page is complete.
    landmark: &'static str,
    size: (u32, u32),
    is_dark: bool,
}

const PICTURES: [Picture; 6] = [
    Picture { name: "inbox-light", path: "/", landmark: ROW, size: DESKTOP, is_dark: false },
    Picture { name: "inbox-dark", path: "/", landmark: ROW, size: DESKTOP, is_dark: true },
    Picture { name: "message", path: "/m/anna.keller/latest", landmark: ".preview", size: DESKTOP, is_dark: false },
    Picture { name: "search", path: "/search?q=verification", landmark: ROW, size: DESKTOP, is_dark: false },
    Picture { name: "settings", path: "/settings", landmark: "settings-page h1", size: DESKTOP, is_dark: false },
    Picture { name: "phone", path: "/", landmark: ROW, size: PHONE, is_dark: false },
];
const ROW: &str = ".message-row .row-clip";

/// Returns a path in the source tree.
fn in_tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn pictures() -> PathBuf {
    in_tree("docs/pictures")
}

/// Returns the size of a PNG file, which is at a fixed position (PNG specification, section 11.2.1).
fn png_size(file: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?));
    file.starts_with(b"\x89PNG\r\n\x1a\n").then_some((number(16)?, number(20)?))
}

/// Returns the names of the pictures to which a page of the documentation refers.
fn references(text: &str) -> Vec<String> {
    let name = |rest: &str| Some(rest.split_once(".png")?.0.to_owned());
    text.split("pictures/").skip(1).filter_map(name).filter(|name| !name.contains(char::is_whitespace)).collect()
}

/// Marks messages as read, so that the list shows both kinds.
fn read_some(server: &Server) {
    for (mailbox, count) in [("ci", 2), ("support", 1), ("mary", 2), ("team", 1), ("anna.keller", 2)] {
        for id in server.ids(mailbox).iter().take(count) {
            let url = server.url(&format!("/api/v1/mailbox/{mailbox}/{id}"));
            ureq::patch(url).content_type("application/json").send(r#"{"seen":true}"#).unwrap();
        }
    }
}

#[test]
fn pictures_of_the_documentation_are_current() {
    let generated: BTreeSet<String> = PICTURES.iter().map(|picture| picture.name.to_owned()).collect();
    if std::env::var_os(UPDATE).is_some() {
        write_all();
    }
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(pictures()).unwrap() {
        files.insert(entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    }
    assert_eq!(files, generated, "run the test with {UPDATE}=1, and remove pictures that are not generated");
    for Picture { name, size, .. } in PICTURES {
        let file = fs::read(pictures().join(format!("{name}.png"))).unwrap();
        assert_eq!(png_size(&file), Some(size), "{name}: run the test with {UPDATE}=1");
    }
    let mut texts = vec![in_tree("README.md")];
    texts.extend(fs::read_dir(in_tree("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut used = BTreeSet::new();
    for path in texts.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")) {
        used.extend(references(&fs::read_to_string(path).unwrap()));
    }
    assert_eq!(used, generated, "the documentation must refer to the generated pictures, and to no others");
}

/// Writes all pictures.
fn write_all() {
    let server = Server::start(&[]);
    let page = Page::of(&server).expect("the pictures need a browser");
    sample_mail::set_up_more(&server);
    sample_mail::set_up(&server);
    read_some(&server);
    fs::create_dir_all(pictures()).unwrap();
    for Picture { name, path, landmark, size, is_dark } in PICTURES {
        page.set_display(size, is_dark);
        open(&page, path, landmark);
        // The place of the focus and the blinking caret depend on the time.
        page.eval("document.activeElement?.blur()", &json!([]));
        fs::copy(page.screenshot(&format!("picture-{name}")), pictures().join(format!("{name}.png"))).unwrap();
    }
    page.assert_quiet();
}

#[test]
fn references_to_pictures_are_found() {
    let text = "![A](docs/pictures/a.png) and <img src=\"pictures/b.png\" width=1>, but not pictures/ or c.png";
    assert_eq!(references(text), ["a", "b"]);
    assert_eq!(png_size(b"GIF89a"), None);
}
