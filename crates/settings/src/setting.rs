//! A row of the table of settings, and the names that are derived from its key.

use super::types::Config;

/// The definition of a setting.
#[derive(Debug)]
pub struct Setting {
    /// The name in the configuration file, such as `smtp.maxrecipients`. The flag and the variable are derived from it.
    pub key: &'static str,
    /// The default as text. It is parsed by `apply` like any other value.
    pub default: &'static str,
    /// The kind of value.
    pub value: Value,
    /// The help text in full sentences. The first sentence is the short help.
    pub help: &'static str,
    /// True if the value must never be shown.
    pub is_secret: bool,
    /// Whether the setting has an effect.
    pub status: Status,
    /// Another name of the flag, without the dashes.
    pub alias: Option<&'static str>,
    /// True if the host name of the machine is used as default.
    pub defaults_to_host_name: bool,
    /// Parses a value and stores it in the configuration. The error says what is accepted.
    pub apply: Apply,
}

/// The parser of a setting.
pub type Apply = fn(&mut Config, &str) -> Result<(), String>;

/// The kind of a value: how the flag is used, and which TOML types are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// `true` or `false`; the flag alone means `true`.
    Bool,
    /// A whole number.
    Number,
    /// A duration such as `1h30m`.
    Duration,
    /// A text, with its placeholder in help.
    Text(&'static str),
    /// Texts separated by commas, with the placeholder of one of them in help.
    List(&'static str),
    /// `key:value` pairs separated by commas.
    Params,
}

impl Value {
    /// Returns the placeholder of the value in help.
    pub fn placeholder(self) -> String {
        match self {
            Self::Bool => "BOOL".to_owned(),
            Self::Number => "NUMBER".to_owned(),
            Self::Duration => "DURATION".to_owned(),
            Self::Text(word) => word.to_owned(),
            Self::List(word) => format!("{word},..."),
            Self::Params => "KEY:VALUE,...".to_owned(),
        }
    }
}

/// Whether a setting has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It has the effect described in its help.
    Active,
    /// It is accepted for compatibility with existing installations and has no effect.
    Ignored,
}

impl Status {
    /// Returns the note for help and reference page; empty if there is none.
    pub fn note(self) -> &'static str {
        match self {
            Self::Active => "",
            Self::Ignored => "Accepted for compatibility, has no effect.",
        }
    }
}

impl Setting {
    /// Creates an active setting without special properties.
    pub(super) const fn new(
        key: &'static str,
        default: &'static str,
        value: Value,
        help: &'static str,
        apply: Apply,
    ) -> Self {
        Self {
            key,
            default,
            value,
            help,
            is_secret: false,
            status: Status::Active,
            alias: None,
            defaults_to_host_name: false,
            apply,
        }
    }

    /// Marks the value as secret.
    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// Marks the setting as one without effect.
    pub(super) const fn ignored(mut self) -> Self {
        self.status = Status::Ignored;
        self
    }

    /// Adds another name of the flag.
    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Uses the host name of the machine, if it is valid, instead of the default.
    pub(super) const fn default_to_host_name(mut self) -> Self {
        self.defaults_to_host_name = true;
        self
    }

    /// Returns the flag without its dashes: `smtp-maxrecipients`.
    pub fn flag(&self) -> String {
        self.key.replace('.', "-")
    }

    /// Returns the variable without its prefix: `SMTP_MAXRECIPIENTS`.
    pub fn variable(&self) -> String {
        self.key.replace('.', "_").to_ascii_uppercase()
    }

    /// Returns the default as help shows it.
    pub fn default_text(&self) -> &'static str {
        if self.defaults_to_host_name {
            "the host name"
        } else if self.default.is_empty() {
            "none"
        } else {
            self.default
        }
    }

    /// Returns the heading in help and reference page.
    pub fn section(&self) -> &'static str {
        match self.key.split_once('.').map(|(prefix, _)| prefix) {
            Some("smtp") => "SMTP",
            Some("lmtp") => "LMTP",
            Some("pop3") => "POP3",
            Some("imap") => "IMAP",
            Some("web") => "Web",
            Some("providers") => "Providers",
            Some("auth") => "Access",
            Some("storage") => "Storage",
            Some("lua") => "Scripting",
            Some("webhook") => "Webhooks",
            Some("relay") => "Relay",
            Some("projects") => "Projects",
            Some("tags") => "Tags",
            Some("chaos") => "Chaos",
            Some("search") => "Search",
            _ => "General",
        }
    }
}
