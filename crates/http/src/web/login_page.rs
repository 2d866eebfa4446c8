//! The login page: a form that works without scripts and, because all links are relative, under any base path.

use axum::http::StatusCode;
use axum::response::Response;

use crate::web::plain_page::{self, BRAND, escaped};

/// Returns the page with the path to return to, the user name that was typed before, and an error message.
pub(crate) fn form(status: StatusCode, next: &str, user: &str, error: Option<&str>) -> Response {
    plain_page::response(status, "Log in", "./", &form_html(next, user, error))
}

fn form_html(next: &str, user: &str, error: Option<&str>) -> String {
    let (next, user) = (escaped(next), escaped(user));
    let note = error.map(|sentence| format!("<p class=\"note bad\" role=\"alert\">{}</p>\n", escaped(sentence)));
    let note = note.unwrap_or_default();
    // If the user name is known, the focus is on the password.
    let (first, second) = if user.is_empty() { (" autofocus", "") } else { ("", " autofocus") };
    format!(
        r#"<form class="login sheet" method="post" action="./login">
<h1 class="brand">{BRAND}</h1>
{note}<input type="hidden" name="next" value="{next}">
<label for="user">User name</label>
<input class="field" id="user" name="user" type="text" value="{user}" autocomplete="username" autocapitalize="none" spellcheck="false"{first}>
<label for="password">Password or token</label>
<input class="field" id="password" name="password" type="password" autocomplete="current-password" required{second}>
<button class="button main" type="submit">Log in</button>
</form>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_input() {
        let form = form_html("\"><script>1</script>", "\"onfocus='x'", Some("<b>"));
        assert!(!form.contains("<script") && !form.contains("\"onfocus") && !form.contains("<b>"), "{form}");
        assert!(form.contains("value=\"&quot;&gt;&lt;script&gt;1&lt;/script&gt;\""), "{form}");
    }
}
