//! Texts made from the table: the reference page, and the list of effective settings.

use std::fmt::Write;

use super::load::Loaded;
use super::setting::{Setting, Value};
use super::table::SETTINGS;

const INTRODUCTION: &str = "\
# Settings

This page is made by `restante config docs`; change the table of settings, not this file.

Every setting can be given in three ways, here for `smtp.maxrecipients`:

| where | form |
|---|---|
| flag | `--smtp-maxrecipients 200` |
| variable | `RESTANTE_SMTP_MAXRECIPIENTS=200`, or `INBUCKET_SMTP_MAXRECIPIENTS=200` |
| file, named by `--config FILE` or `RESTANTE_CONFIG` | `maxrecipients = 200` below `[smtp]` |

A flag wins over a variable, a variable over the file, the file over the default; of the two prefixes `RESTANTE_` wins.
The server does not start with a setting it does not know or a value it does not understand, even one that another wins
over, nor with files it cannot use; it tells all errors at once with exit code 2. Only unknown `INBUCKET_` variables are
left at a warning. `restante config check` tells the same without starting, or prints the effective settings and where
each comes from. Secrets are never printed.

## How values are written

| value | form |
|---|---|
| BOOL | `true` or `false`, also `1` `0` `t` `f` `yes` `no` `on` `off`; a flag alone means `true` |
| DURATION | numbers with `h` `m` `s` `ms` `us` `ns`: `300s`, `24h`, `50ms`, `1h30m`; or `0` |
| ADDRESS | `127.0.0.1:2500`, `[::1]:2500`; `localhost:2500`: loopback on IPv4 and IPv6; `:2500`: every address; `unix:/path`: a Unix socket; port 0: any free port |
| NETWORK | `192.0.2.1`, `10.0.0.0/8`, `fd00::/8` |
| X,... | a list, separated by commas; in the file also an array: `addr = [\"localhost:2500\", \"unix:/run/mail.sock\"]` |
| KEY:VALUE,... | parameters, separated by commas; in the file also a table: `params = { maxkb = 10240 }` |
";

/// The reference page, in Markdown.
pub fn render_docs() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section() != section {
            section = setting.section();
            let _ = write!(page, "\n## {section}\n");
        }
        describe(&mut page, setting);
    }
    page
}

fn describe(page: &mut String, setting: &Setting) {
    let placeholder = setting.value.placeholder();
    let flag = match setting.value {
        Value::Bool => format!("--{}[={placeholder}]", setting.flag()),
        _ => format!("--{} {placeholder}", setting.flag()),
    };
    let alias = setting.alias.map_or_else(String::new, |alias| format!(" or `--{alias}`"));
    let default = match setting.default {
        default if !default.is_empty() && !setting.defaults_to_host_name => format!("`{default}`"),
        _ => setting.default_text().to_owned(),
    };
    let _ = write!(
        page,
        "\n### {}\n\n`{flag}`{alias}, `RESTANTE_{}`; default: {default}{}\n\n{}\n",
        setting.key,
        setting.variable(),
        if setting.is_secret { "; secret" } else { "" },
        setting.help,
    );
    if !setting.status.note().is_empty() {
        let _ = write!(page, "\n*{}*\n", setting.status.note());
    }
}

/// Every setting with its value and origin, in the form of a configuration file.
pub fn render_effective(loaded: &Loaded) -> String {
    let mut text = String::new();
    for warning in &loaded.warnings {
        let _ = writeln!(text, "# warning: {warning}");
    }
    for line in &loaded.effective {
        let pair = format!("{} = {}", line.setting.key, line.display_value);
        let _ = writeln!(text, "{pair:<48} # {}", line.origin);
    }
    text
}
