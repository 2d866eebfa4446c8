//! What a row of the settings table is made of, and the names that follow from its key.

use super::types::Config;

/// One setting: everything that is known about it, in one place.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the configuration file, such as `smtp.maxrecipients`; flag and variable follow from it.
    pub key: &'static str,
    /// The default, as the text that a user would write; it goes through `apply` like any other value.
    pub default: &'static str,
    /// What kind of value it takes.
    pub value: Value,
    /// What it does, in full sentences; the first one is the short help.
    pub help: &'static str,
    /// Whether the value must never be shown.
    pub is_secret: bool,
    /// Whether this version does something with it.
    pub status: Status,
    /// Another name of the flag, without the dashes.
    pub alias: Option<&'static str>,
    /// Whether the name of the machine takes the place of the default.
    pub defaults_to_host_name: bool,
    /// Parses a value into its typed place; the error says what is allowed.
    pub apply: Apply,
}

/// The parser of a setting.
pub type Apply = fn(&mut Config, &str) -> Result<(), String>;

/// The kind of a value: how the flag takes it and which TOML types can express it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// `true` or `false`; the bare flag means `true`.
    Bool,
    /// A whole number.
    Number,
    /// A length of time such as `1h30m`.
    Duration,
    /// One text, with the word that stands for it in help.
    Text(&'static str),
    /// Texts separated by commas, with the word that stands for one of them in help.
    List(&'static str),
    /// `key:value` pairs separated by commas.
    Params,
}

impl Value {
    /// The word that stands for the value in help texts.
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

/// Whether this version does something with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It does what its help says.
    Active,
    /// It is accepted for compatibility with existing installations and has no effect.
    Ignored,
}

impl Status {
    /// What to tell the reader of help and reference page, empty when there is nothing to tell.
    pub fn note(self) -> &'static str {
        match self {
            Self::Active => "",
            Self::Ignored => "Accepted for compatibility, has no effect.",
        }
    }
}

impl Setting {
    /// A plain, active setting; the methods below refine it.
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

    /// Marks the value as one that must never be shown.
    pub(super) const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// Marks the setting as one without effect.
    pub(super) const fn ignored(mut self) -> Self {
        self.status = Status::Ignored;
        self
    }

    /// Gives the flag a second name.
    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Puts the name of the machine, where it has a usable one, before the default.
    pub(super) const fn default_to_host_name(mut self) -> Self {
        self.defaults_to_host_name = true;
        self
    }

    /// The flag without its dashes: `smtp-maxrecipients`.
    pub fn flag(&self) -> String {
        self.key.replace('.', "-")
    }

    /// The variable without its prefix: `SMTP_MAXRECIPIENTS`.
    pub fn variable(&self) -> String {
        self.key.replace('.', "_").to_ascii_uppercase()
    }

    /// The default as help shows it.
    pub fn default_text(&self) -> &'static str {
        if self.defaults_to_host_name {
            "the name of the machine"
        } else if self.default.is_empty() {
            "none"
        } else {
            self.default
        }
    }

    /// The heading under which help and reference page list it.
    pub fn section(&self) -> &'static str {
        match self.key.split_once('.').map(|(prefix, _)| prefix) {
            Some("smtp") => "SMTP",
            Some("lmtp") => "LMTP",
            Some("pop3") => "POP3",
            Some("web") => "Web",
            Some("auth") => "Access",
            Some("storage") => "Storage",
            Some("lua") => "Scripting",
            Some("webhook") => "Webhooks",
            Some("search") => "Search",
            _ => "General",
        }
    }
}
