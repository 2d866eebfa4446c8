//! The table of Mailpit's flags and variables, and the effect of each: values of settings, none because the server already
//! behaves as requested, or a warning. How values are converted is in `conversions`.

use super::conversions;

/// A flag of Mailpit, or a variable, or both.
#[derive(Debug)]
pub struct MailpitOption {
    /// The long flag without its dashes; empty if there is only a variable.
    pub flag: &'static str,
    /// The short flag.
    pub short: Option<char>,
    /// The variable; empty if there is only a flag.
    pub variable: &'static str,
    /// Deprecated names: flags without their dashes, and variables.
    pub deprecated: &'static [&'static str],
    /// True if the value is one of credentials, or the name of a password file. An empty variable is then an error: without
    /// credentials, the server would be open.
    pub is_credential: bool,
    /// The kind of value.
    pub kind: Kind,
    /// What the option does in Mailpit.
    pub help: &'static str,
    /// What it does here.
    pub effect: Effect,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`; the flag alone means `true`.
    Bool,
    /// A whole number.
    Int,
    /// Any text.
    Text,
}

/// The effect of an option.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// The value becomes that of this setting.
    Setting(&'static str),
    /// The value is converted to these settings.
    Converted(&'static [&'static str], Convert),
    /// The value is used by the program itself or together with other options. The text says for what, in Markdown.
    Used(&'static str),
    /// The server already behaves as requested. The text says how.
    Always(&'static str),
    /// The value has no effect. The text says why.
    Ignored(&'static str),
}

/// Converts a value to settings, of which the keys are given, and their values. The error says what is accepted.
pub type Convert = fn(&[&'static str], &str) -> Result<Vec<(&'static str, String)>, String>;

impl MailpitOption {
    const fn new(flag: &'static str, variable: &'static str, kind: Kind, help: &'static str, effect: Effect) -> Self {
        Self { flag, short: None, variable, deprecated: &[], is_credential: false, kind, help, effect }
    }

    const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    const fn deprecated(mut self, names: &'static [&'static str]) -> Self {
        self.deprecated = names;
        self
    }

    const fn credential(mut self) -> Self {
        self.is_credential = true;
        self
    }

    /// Returns whether the value becomes that of the setting with this key.
    pub fn sets(&self, key: &str) -> bool {
        match self.effect {
            Setting(setting) => setting == key,
            Converted(settings, _) => settings.contains(&key),
            Used(_) | Always(_) | Ignored(_) => false,
        }
    }

    /// Returns the name by which other code refers to the option: the flag, or else the variable.
    pub fn name(&self) -> &'static str {
        if self.flag.is_empty() { self.variable } else { self.flag }
    }
}

use Effect::{Always, Converted, Ignored, Setting, Used};
use Kind::{Bool, Int, Text};

/// What the options of the relay are used for.
const RELAY: &str = "the target `relay` in `relay.targets`";
/// What the options of forwarding are used for.
const FORWARD: &str = "the target `forward` in `relay.targets`";
/// Why errors of the relay are not sent to the client.
pub(super) const SENT_LATER: &str = "messages are relayed after they were accepted";
/// Why the options of the send API have no effect.
const SEND_API: &str = "POST /api/v1/send accepts the credentials of the web interface";
const SEND_API_CREDENTIALS: &str =
    "POST /api/v1/send accepts the credentials of the web interface; an error if there are none";
/// Why the tag filters have no effect.
const TAG_RULES: &str = "rules for tags have another form in the setting tags.rules";
/// Why options of SQLite have no effect.
const NO_SQLITE: &str = "the data directory has its own format";

/// All options, in the order of Mailpit's help.
#[rustfmt::skip] // A row starts with flag, variable and kind on one line, so that the table is easy to scan.
pub const OPTIONS: &[MailpitOption] = &[
    // General
    MailpitOption::new("database", "MP_DATABASE", Text, "Database to store messages",
        Converted(&["storage.path"], conversions::database)).short('d').deprecated(&["db-file", "MP_DATA_FILE"]),
    MailpitOption::new("disable-wal", "MP_DISABLE_WAL", Bool, "Disables write-ahead logging of SQLite", Ignored(NO_SQLITE)),
    MailpitOption::new("disable-version-check", "MP_DISABLE_VERSION_CHECK", Bool, "Disables the check for new versions",
        Always("there is no check for new versions")),
    MailpitOption::new("disable-auto-vacuum", "MP_DISABLE_AUTO_VACUUM", Bool, "Disables the vacuum of SQLite",
        Ignored(NO_SQLITE)),
    MailpitOption::new("compression", "MP_COMPRESSION", Int, "Compression level of messages",
        Ignored("messages are stored as they are")),
    MailpitOption::new("label", "MP_LABEL", Text, "Label of the instance", Ignored("instances have no label")),
    MailpitOption::new("tenant-id", "MP_TENANT_ID", Text, "Prefix of the database tables",
        Used("with a database, `storage.path`: every tenant has its own data directory")),
    MailpitOption::new("max", "MP_MAX_MESSAGES", Int, "Maximum number of messages",
        Setting("storage.maxmessages")).short('m'),
    MailpitOption::new("max-age", "MP_MAX_AGE", Text, "Maximum age of messages, such as 12h or 3d",
        Setting("storage.retentionperiod")),
    MailpitOption::new("max-message-size", "MP_MAX_MESSAGE_SIZE", Int, "Maximum size of a message in MiB",
        Converted(&["smtp.maxmessagebytes"], conversions::max_message_size)),
    MailpitOption::new("use-message-dates", "MP_USE_MESSAGE_DATES", Bool, "Lists messages by the date in their header",
        Ignored("messages are listed by the time of arrival")),
    MailpitOption::new("ignore-duplicate-ids", "MP_IGNORE_DUPLICATE_IDS", Bool, "Drops messages with a known Message-ID",
        Ignored("every message is stored")),
    MailpitOption::new("log-file", "MP_LOG_FILE", Text, "Log file instead of standard output", Setting("logfile")),
    MailpitOption::new("quiet", "MP_QUIET", Bool, "Logs errors only",
        Converted(&["loglevel"], conversions::quiet)).short('q'),
    MailpitOption::new("verbose", "MP_VERBOSE", Bool, "Logs details",
        Converted(&["loglevel"], conversions::verbose)).short('v'),
    // Web interface and API
    MailpitOption::new("listen", "MP_UI_BIND_ADDR", Text, "Address of the web interface",
        Converted(&["web.addr"], conversions::addr)).short('l'),
    MailpitOption::new("webroot", "MP_WEBROOT", Text, "Prefix of all paths", Setting("web.basepath")),
    MailpitOption::new("ui-auth-file", "MP_UI_AUTH_FILE", Text, "Password file for the web interface and the API",
        Used("`auth.credentials`")).credential(),
    MailpitOption::new("", "MP_UI_AUTH", Text, "Users and passwords for the web interface and the API",
        Used("`auth.credentials`")).credential(),
    MailpitOption::new("ui-tls-cert", "MP_UI_TLS_CERT", Text, "Certificate of the web interface",
        Converted(&["web.tlsenabled", "web.tlscert"], conversions::certificate)).deprecated(&["ui-ssl-cert", "MP_UI_SSL_CERT"]),
    MailpitOption::new("ui-tls-key", "MP_UI_TLS_KEY", Text, "Private key of the web interface",
        Converted(&["web.tlsprivkey"], conversions::key)).deprecated(&["ui-ssl-key", "MP_UI_SSL_KEY"]),
    MailpitOption::new("api-cors", "MP_API_CORS", Text, "Origins whose pages may use the API",
        Converted(&["web.corsorigins"], conversions::cors_origins)),
    MailpitOption::new("allowed-hosts", "MP_ALLOWED_HOSTS", Text, "Host names for which requests are accepted",
        Converted(&["web.hosts"], conversions::allowed_hosts)),
    MailpitOption::new("block-remote-css-and-fonts", "MP_BLOCK_REMOTE_CSS_AND_FONTS", Bool, "Blocks remote CSS and fonts",
        Always("the web interface never loads remote CSS and fonts")),
    MailpitOption::new("allow-internal-http-requests", "MP_ALLOW_INTERNAL_HTTP_REQUESTS", Bool,
        "Allows requests of the link check to internal addresses", Ignored("the link check sends no requests")),
    MailpitOption::new("disable-link-check-rate-limit", "MP_DISABLE_LINK_CHECK_RATE_LIMIT", Bool,
        "Disables the rate limit of the link check", Ignored("the link check sends no requests")),
    MailpitOption::new("enable-spamassassin", "MP_ENABLE_SPAMASSASSIN", Text, "Checks messages with SpamAssassin",
        Ignored("there is no check for spam")),
    MailpitOption::new("allow-untrusted-tls", "MP_ALLOW_UNTRUSTED_TLS", Bool,
        "Accepts invalid certificates in the link check", Ignored("the link check sends no requests")),
    MailpitOption::new("disable-http-compression", "MP_DISABLE_HTTP_COMPRESSION", Bool, "Disables HTTP compression",
        Ignored("a client that does not want compression does not send Accept-Encoding")),
    MailpitOption::new("hide-delete-all-button", "MP_HIDE_DELETE_ALL_BUTTON", Bool, "Hides the button that deletes all",
        Ignored("the web interface is not Mailpit's")),
    MailpitOption::new("send-api-auth-file", "MP_SEND_API_AUTH_FILE", Text, "Password file for the send API",
        Ignored(SEND_API_CREDENTIALS)).credential(),
    MailpitOption::new("", "MP_SEND_API_AUTH", Text, "Users and passwords for the send API",
        Ignored(SEND_API_CREDENTIALS)).credential(),
    MailpitOption::new("send-api-auth-accept-any", "MP_SEND_API_AUTH_ACCEPT_ANY", Bool,
        "Accepts any credentials for the send API", Ignored(SEND_API)),
    // SMTP
    MailpitOption::new("smtp", "MP_SMTP_BIND_ADDR", Text, "Address of the SMTP server",
        Converted(&["smtp.addr"], conversions::addr)).short('s'),
    MailpitOption::new("smtp-auth-file", "MP_SMTP_AUTH_FILE", Text, "Password file for SMTP",
        Used("`smtp.credentials`, `smtp.requireauth`, `smtp.requirestarttls`")).credential(),
    MailpitOption::new("", "MP_SMTP_AUTH", Text, "Users and passwords for SMTP",
        Used("`smtp.credentials`, `smtp.requireauth`")).credential(),
    MailpitOption::new("smtp-auth-accept-any", "MP_SMTP_AUTH_ACCEPT_ANY", Bool, "Accepts any user name and password",
        Setting("smtp.acceptanylogin")),
    MailpitOption::new("smtp-tls-cert", "MP_SMTP_TLS_CERT", Text, "Certificate of the SMTP server",
        Converted(&["smtp.tlsenabled", "smtp.tlscert"], conversions::certificate))
        .deprecated(&["smtp-ssl-cert", "MP_SMTP_SSL_CERT"]),
    MailpitOption::new("smtp-tls-key", "MP_SMTP_TLS_KEY", Text, "Private key of the SMTP server",
        Converted(&["smtp.tlsprivkey"], conversions::key)).deprecated(&["smtp-ssl-key", "MP_SMTP_SSL_KEY"]),
    MailpitOption::new("smtp-require-starttls", "MP_SMTP_REQUIRE_STARTTLS", Bool, "Requires STARTTLS",
        Setting("smtp.requirestarttls")).deprecated(&["smtp-tls-required", "MP_SMTP_TLS_REQUIRED"]),
    MailpitOption::new("smtp-require-tls", "MP_SMTP_REQUIRE_TLS", Bool, "Requires TLS from the first byte",
        Setting("smtp.forcetls")),
    MailpitOption::new("smtp-auth-allow-insecure", "MP_SMTP_AUTH_ALLOW_INSECURE", Bool, "Allows logins without TLS",
        Used("required for logins if there is no certificate")),
    MailpitOption::new("smtp-strict-rfc-headers", "MP_SMTP_STRICT_RFC_HEADERS", Bool, "Refuses messages with CR CR LF",
        Ignored("line ends in messages are not checked")).deprecated(&["MP_STRICT_RFC_HEADERS"]),
    MailpitOption::new("smtp-max-recipients", "MP_SMTP_MAX_RECIPIENTS", Int, "Maximum number of recipients",
        Setting("smtp.maxrecipients")),
    MailpitOption::new("smtp-allowed-recipients", "MP_SMTP_ALLOWED_RECIPIENTS", Text,
        "Regular expression that recipients must match", Setting("smtp.allowedrecipients")),
    MailpitOption::new("smtp-ignore-rejected-recipients", "MP_SMTP_IGNORE_REJECTED_RECIPIENTS", Bool,
        "Accepts and drops mail to rejected recipients", Setting("smtp.discardrejected")),
    MailpitOption::new("smtp-disable-rdns", "MP_SMTP_DISABLE_RDNS", Bool, "Disables reverse DNS lookups",
        Always("the addresses of clients are never looked up")),
    // Relay and forwarding
    MailpitOption::new("smtp-relay-config", "MP_SMTP_RELAY_CONFIG", Text, "Configuration file of the relay", Used(RELAY)),
    MailpitOption::new("smtp-relay-all", "MP_SMTP_RELAY_ALL", Bool, "Relays all messages", Used("`relay.forward`")),
    MailpitOption::new("smtp-relay-matching", "MP_SMTP_RELAY_MATCHING", Text, "Relays messages to matching recipients",
        Used("`relay.forward`")),
    relay("MP_SMTP_RELAY_HOST", Text, Used(RELAY)), relay("MP_SMTP_RELAY_PORT", Int, Used(RELAY)),
    relay("MP_SMTP_RELAY_STARTTLS", Bool, Used(RELAY)), relay("MP_SMTP_RELAY_TLS", Bool, Used(RELAY)),
    relay("MP_SMTP_RELAY_ALLOW_INSECURE", Bool, Used(RELAY)), relay("MP_SMTP_RELAY_AUTH", Text, Used(RELAY)),
    relay("MP_SMTP_RELAY_USERNAME", Text, Used(RELAY)), relay("MP_SMTP_RELAY_PASSWORD", Text, Used(RELAY)),
    relay("MP_SMTP_RELAY_SECRET", Text, Used(RELAY)), relay("MP_SMTP_RELAY_RETURN_PATH", Text, Used(RELAY)),
    relay("MP_SMTP_RELAY_OVERRIDE_FROM", Text, Used(RELAY)),
    relay("MP_SMTP_RELAY_ALLOWED_RECIPIENTS", Text, Used(RELAY)),
    relay("MP_SMTP_RELAY_BLOCKED_RECIPIENTS", Text, Used(RELAY)),
    relay("MP_SMTP_RELAY_PRESERVE_MESSAGE_IDS", Bool, Always("messages keep their Message-ID")),
    relay("MP_SMTP_RELAY_FWD_SMTP_ERRORS", Bool, Ignored(SENT_LATER)),
    MailpitOption::new("smtp-forward-config", "MP_SMTP_FORWARD_CONFIG", Text, "Configuration file of forwarding",
        Used(FORWARD)),
    relay("MP_SMTP_FORWARD_HOST", Text, Used(FORWARD)), relay("MP_SMTP_FORWARD_PORT", Int, Used(FORWARD)),
    relay("MP_SMTP_FORWARD_STARTTLS", Bool, Used(FORWARD)), relay("MP_SMTP_FORWARD_TLS", Bool, Used(FORWARD)),
    relay("MP_SMTP_FORWARD_ALLOW_INSECURE", Bool, Used(FORWARD)), relay("MP_SMTP_FORWARD_AUTH", Text, Used(FORWARD)),
    relay("MP_SMTP_FORWARD_USERNAME", Text, Used(FORWARD)), relay("MP_SMTP_FORWARD_PASSWORD", Text, Used(FORWARD)),
    relay("MP_SMTP_FORWARD_SECRET", Text, Used(FORWARD)), relay("MP_SMTP_FORWARD_RETURN_PATH", Text, Used(FORWARD)),
    relay("MP_SMTP_FORWARD_OVERRIDE_FROM", Text, Used(FORWARD)),
    relay("MP_SMTP_FORWARD_TO", Text, Used("`relay.forward`, and the recipients that the target allows")),
    relay("MP_SMTP_FORWARD_FWD_SMTP_ERRORS", Bool, Ignored(SENT_LATER)),
    // Chaos
    MailpitOption::new("enable-chaos", "MP_ENABLE_CHAOS", Bool, "Enables Chaos", Setting("chaos.enabled")),
    MailpitOption::new("chaos-triggers", "MP_CHAOS_TRIGGERS", Text, "Triggers of Chaos", Setting("chaos.triggers")),
    // POP3
    MailpitOption::new("pop3", "MP_POP3_BIND_ADDR", Text, "Address of the POP3 server",
        Used("`pop3.addr`, if there are credentials for POP3")),
    MailpitOption::new("pop3-auth-file", "MP_POP3_AUTH_FILE", Text, "Password file for POP3; it enables POP3",
        Used("`pop3.credentials`")).credential(),
    MailpitOption::new("", "MP_POP3_AUTH", Text, "Users and passwords for POP3; they enable POP3",
        Used("`pop3.credentials`")).credential(),
    MailpitOption::new("pop3-tls-cert", "MP_POP3_TLS_CERT", Text, "Certificate of the POP3 server",
        Converted(&["pop3.tlsenabled", "pop3.forcetls", "pop3.tlscert"], conversions::certificate)),
    MailpitOption::new("pop3-tls-key", "MP_POP3_TLS_KEY", Text, "Private key of the POP3 server",
        Converted(&["pop3.tlsprivkey"], conversions::key)),
    // Tags
    MailpitOption::new("tag", "MP_TAG", Text, "Filters that give tags to messages", Ignored(TAG_RULES)).short('t'),
    MailpitOption::new("tags-config", "MP_TAGS_CONFIG", Text, "File with filters that give tags", Ignored(TAG_RULES)),
    MailpitOption::new("tags-title-case", "MP_TAGS_TITLE_CASE", Bool, "Capitalizes the words of new tags",
        Ignored("tags keep their case")),
    MailpitOption::new("tags-disable", "MP_TAGS_DISABLE", Text, "Disables plus-addresses or x-tags",
        Converted(&["tags.plusaddresses", "tags.plusheader", "tags.header"], conversions::tags_disable)),
    MailpitOption::new("tags-username", "MP_TAGS_USERNAME", Bool, "Tags messages with the user name",
        Ignored("user names do not become tags")),
    // Metrics and webhooks
    MailpitOption::new("enable-prometheus", "MP_ENABLE_PROMETHEUS", Text, "Serves metrics",
        Always("metrics are served at /metrics on the address of the web interface")),
    MailpitOption::new("webhook-url", "MP_WEBHOOK_URL", Text, "URL that is called for new messages",
        Converted(&["webhook.urls", "webhook.private"], conversions::webhook_url)),
    MailpitOption::new("webhook-limit", "MP_WEBHOOK_LIMIT", Int, "Maximum number of webhook requests per second",
        Ignored("webhooks are not limited")),
    MailpitOption::new("webhook-delay", "MP_WEBHOOK_DELAY", Int, "Delay of webhook requests in seconds",
        Ignored("webhooks are not delayed")),
    MailpitOption::new("disable-html-check", "MP_DISABLE_HTML_CHECK", Bool, "Has no effect in Mailpit either",
        Ignored("it has no effect in Mailpit either")),
    MailpitOption::new("", "MP_DEMO_MODE", Bool, "Disables relaying, link check and send API",
        Used("messages are not relayed or forwarded; the rest of the demo mode does not exist")),
    // The sendmail command
    MailpitOption::new("", "MP_SENDMAIL_SMTP_ADDR", Text, "SMTP server of the sendmail command", Used("`mailpit sendmail`, `sendmail`")),
    MailpitOption::new("", "MP_SENDMAIL_FROM", Text, "Sender of the sendmail command", Used("`mailpit sendmail`, `sendmail`")),
];

/// A variable of relaying or forwarding.
const fn relay(variable: &'static str, kind: Kind, effect: Effect) -> MailpitOption {
    MailpitOption::new("", variable, kind, "Setting of a relay", effect)
}
