//! HTML that tries to run a script or to load remote content. Some of it works in any page, some only after a faulty sanitizer has
//! changed it. The list is shared with the tests of the sanitizer.

const TRICKS: &str = include_str!("../../../html/src/tests/active_html.txt");

/// The script in the list.
const PLAIN: &str = "alert(1)";

/// Returns the script of an entry: it writes to the console, opens a dialog, and requests another host.
pub(crate) fn script(number: usize) -> String {
    format!("console.log(`executed{number}`),alert(`executed{number}`),new(Image)().src=`http://script.test/{number}`")
}

/// Returns all entries, each with a script of its number.
pub(crate) fn all() -> impl Iterator<Item = String> {
    let lines = TRICKS.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let tricks = lines.map(|line| line.chars().map(control_character).collect::<String>());
    tricks.enumerate().map(|(number, trick)| trick.replace(PLAIN, &script(number)))
}

/// Returns the control character of a control picture.
fn control_character(picture: char) -> char {
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
