//! HTML that wants to act: by a script, or by asking somebody else. Some of it works in any page, some only after a careless
//! change by whoever wanted to make it harmless. The list is a file that the tests of the sanitiser read too.

const TRICKS: &str = include_str!("../../../html/src/tests/active_html.txt");

/// What the scripts in the list do.
const PLAIN: &str = "alert(1)";

/// What the script of a trick does here when it is run: it shows in the log, in a dialog, and outside.
pub(crate) fn script(number: usize) -> String {
    format!("console.log(`executed{number}`),alert(`executed{number}`),new(Image)().src=`http://script.test/{number}`")
}

/// All tricks, each with a script of its number.
pub(crate) fn all() -> impl Iterator<Item = String> {
    let lines = TRICKS.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let tricks = lines.map(|line| line.chars().map(meant).collect::<String>());
    tricks.enumerate().map(|(number, trick)| trick.replace(PLAIN, &script(number)))
}

/// The control character that a picture stands for.
fn meant(picture: char) -> char {
    match picture {
        '␀' => '\0',
        '␁' => '\u{1}',
        '␉' => '\t',
        '␊' => '\n',
        '␌' => '\u{c}',
        '␍' => '\r',
        other => other,
    }
}
