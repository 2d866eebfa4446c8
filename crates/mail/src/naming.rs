//! Mapping of addresses to mailbox names: a pure function of the address and the setting *mailbox naming*. The same
//! function maps the names in queries, so a query finds the mailbox that a recipient was delivered to.
//!
//! A mailbox can be in a project. Then its name begins with that of the project and a colon: `shop:bob` is the mailbox
//! `bob` in the project `shop`. No address is mapped to such a name.
//!
//! A mailbox can have folders, which are mailboxes too. The name of a folder is that of its owner, a comma, and a name of
//! its own: `shop:bob,Archive/2024` is a folder of `shop:bob`. No address is mapped to such a name.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use crate::address::{self, Address, AddressError, Alphabet, MAX_DOMAIN_CHARS, MAX_MAILBOX_NAME_CHARS};
use crate::named_enum;

/// The character between the name of a project and that of a mailbox in it.
const PROJECT_SEPARATOR: char = ':';
/// The maximum length of the name of a project in characters.
pub const MAX_PROJECT_CHARS: usize = 63;
/// The character between the name of a mailbox and that of a folder of it. Neither half of an address contains it, unless the
/// local part needs quotes.
const FOLDER_SEPARATOR: char = ',';
/// The character between the levels in the name of a folder.
pub const FOLDER_LEVEL_SEPARATOR: char = '/';
/// The maximum length of the name of a folder, without its owner, in bytes.
pub const MAX_FOLDER_BYTES: usize = 200;

/// The name of a mailbox in canonical form, as [`Naming`] creates it, with its project if it is in one. Cheap to clone.
#[derive(Clone)]
pub struct MailboxName {
    text: Arc<str>,
    /// Whether responses leave out the project, because it is the home of the client.
    is_relative: bool,
}

/// The name of a project: letters a to z, digits and hyphens, not at the ends. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Project(Arc<str>);

/// The text is not the name of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a project has 1 to {MAX_PROJECT_CHARS} letters a to z, digits and hyphens, and no hyphen at its ends"
)]
pub struct ProjectError;

impl Project {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the start of the names of all mailboxes in this project.
    pub fn prefix(&self) -> String {
        format!("{self}{PROJECT_SEPARATOR}")
    }

    /// Returns the start of the names of all mailboxes in this project, and the first text after all of them.
    pub fn mailbox_range(&self) -> [String; 2] {
        // The character after the separator.
        [self.prefix(), format!("{self};")]
    }
}

impl FromStr for Project {
    type Err = ProjectError;

    fn from_str(text: &str) -> Result<Self, ProjectError> {
        if is_project(text) { Ok(Self(text.into())) } else { Err(ProjectError) }
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

named_enum! {
    /// The rule that maps an address to a mailbox name.
    #[derive(Default)]
    pub enum Naming {
        /// `James+Spam@X.org` is mailbox `james`.
        #[default]
        Local = "local",
        /// `James+Spam@X.org` is mailbox `james@x.org`.
        Full = "full",
        /// `James+Spam@X.org` is mailbox `x.org`.
        Domain = "domain",
    }
}

/// The reason why an address or a text cannot be mapped to a mailbox name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is not a valid address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The local part contains characters that need quotes. Such a name could not be used in a query.
    #[error("the mailbox name has a character that needs quotes")]
    NeedsQuotes,
    /// The name is too long after conversion to lower case.
    #[error("the mailbox name is too long")]
    TooLong,
    /// The text after the comma is not the name of a folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// The reason why a text is not the name of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    /// It is empty or has more than [`MAX_FOLDER_BYTES`] bytes.
    #[error("the name of a folder has 1 to {max} bytes", max = MAX_FOLDER_BYTES)]
    Length,
    /// A level is empty, or starts or ends with a space.
    #[error("a level of the name of a folder is empty, or starts or ends with a space")]
    Level,
    /// It has a character that is not allowed.
    #[error("the name of a folder has a control character, or one of * %")]
    Character,
    /// The first level is INBOX, which is the owner.
    #[error("INBOX is the mailbox itself and cannot have folders of its own")]
    Inbox,
}

impl MailboxName {
    /// Returns the name as text, with its project.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the project of the mailbox.
    pub fn project(&self) -> Option<Project> {
        split_project(&self.text).map(|(project, _)| Project(project.into()))
    }

    /// Returns whether the mailbox is in this project.
    pub fn is_in(&self, project: &Project) -> bool {
        let rest = self.text.strip_prefix(project.as_str());
        rest.is_some_and(|rest| rest.starts_with(PROJECT_SEPARATOR))
    }

    /// Returns the name without its project.
    pub fn without_project(&self) -> &str {
        split_project(&self.text).map_or(&self.text, |(_, name)| name)
    }

    /// Returns the mailbox of this name in a project. The name must not be in one.
    #[must_use]
    pub fn in_project(&self, project: &Project) -> Self {
        format!("{project}{PROJECT_SEPARATOR}{}", self.text).into()
    }

    /// Returns the mailbox that this folder belongs to, or the same mailbox if it is not a folder.
    #[must_use]
    pub fn owner(&self) -> Self {
        match split_folder(&self.text) {
            Some((owner, _)) => Self { text: owner.into(), is_relative: self.is_relative },
            None => self.clone(),
        }
    }

    /// Returns the name of [`Self::owner`], with its project. Grants, limits and filters are looked up by this name.
    pub fn owner_name(&self) -> &str {
        split_folder(&self.text).map_or(&self.text, |(owner, _)| owner)
    }

    /// Returns the name of the folder without its owner. `None` if the mailbox is not a folder.
    pub fn folder(&self) -> Option<&str> {
        split_folder(&self.text).map(|(_, folder)| folder)
    }

    /// Returns a folder of this mailbox, or of the owner of this folder. The name is converted to NFC; upper and lower case
    /// differ.
    pub fn in_folder(&self, folder: &str) -> Result<Self, FolderError> {
        let folder = canonical_folder(folder)?;
        let text = format!("{}{FOLDER_SEPARATOR}{folder}", self.owner_name()).into();
        Ok(Self { text, is_relative: self.is_relative })
    }

    /// Returns the same mailbox, whose name [`Self::shown`] writes without its project if that is this home. Names are
    /// equal independently of it.
    #[must_use]
    pub fn relative_to(&self, home: Option<&Project>) -> Self {
        let is_relative = home.is_some_and(|home| self.is_in(home));
        Self { text: self.text.clone(), is_relative }
    }

    /// Returns whether responses leave out the project of this name.
    pub fn is_relative(&self) -> bool {
        self.is_relative
    }

    /// Returns the name as a response contains it. A client with the same home can use it in a request.
    pub fn shown(&self) -> &str {
        if self.is_relative { self.without_project() } else { &self.text }
    }

    /// Returns the name as a response to a client with this home contains it.
    pub fn shown_in(&self, home: Option<&Project>) -> &str {
        if home.is_some_and(|home| self.is_in(home)) { self.without_project() } else { &self.text }
    }
}

/// Returns the project and the rest of a name, if it is in a project. IPv6 addresses contain colons too, but never after a
/// text that could be the name of a project.
fn split_project(name: &str) -> Option<(&str, &str)> {
    name.split_once(PROJECT_SEPARATOR).filter(|(project, _)| is_project(project))
}

/// Returns the owner and the folder of a name, if it is that of a folder.
fn split_folder(name: &str) -> Option<(&str, &str)> {
    name.split_once(FOLDER_SEPARATOR)
}

/// Checks the name of a folder and converts it to NFC.
fn canonical_folder(text: &str) -> Result<String, FolderError> {
    // Check the length before copying anything. The decomposed form of a character is at most four times as long.
    if text.len() > 4 * MAX_FOLDER_BYTES {
        return Err(FolderError::Length);
    }
    let name: String = text.nfc().collect();
    if name.is_empty() || name.len() > MAX_FOLDER_BYTES {
        return Err(FolderError::Length);
    }
    if name.chars().any(|c| c.is_control() || matches!(c, '*' | '%')) {
        return Err(FolderError::Character);
    }
    let mut levels = name.split(FOLDER_LEVEL_SEPARATOR);
    if levels.clone().any(|level| level.is_empty() || level.trim() != level) {
        return Err(FolderError::Level);
    }
    if levels.next().is_some_and(|first| first.eq_ignore_ascii_case("INBOX")) {
        return Err(FolderError::Inbox);
    }
    Ok(name)
}

/// Splits a text in a query into a project, if it names one in any case of letters, and the name or address of a mailbox.
pub fn split_requested_project(text: &str) -> (Option<Project>, &str) {
    let split = text.split_once(PROJECT_SEPARATOR);
    match split.and_then(|(project, name)| Some((project.to_ascii_lowercase().parse().ok()?, name))) {
        Some((project, name)) => (Some(project), name),
        None => (None, text),
    }
}

fn is_project(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_hyphen_at_end = text.starts_with('-') || text.ends_with('-');
    !text.is_empty() && text.len() <= MAX_PROJECT_CHARS && !has_hyphen_at_end && text.bytes().all(is_valid)
}

impl fmt::Debug for MailboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MailboxName").field(&self.text).finish()
    }
}

impl fmt::Display for MailboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::borrow::Borrow<str> for MailboxName {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl PartialEq for MailboxName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for MailboxName {}

impl Hash for MailboxName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for MailboxName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MailboxName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl FromStr for Naming {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_name(&text.to_ascii_lowercase()).ok_or_else(|| "one of local, full, domain".to_owned())
    }
}

impl Naming {
    /// Returns the mailbox of a recipient.
    pub fn mailbox_for(self, address: &Address) -> Result<MailboxName, NameError> {
        self.mailbox_name(address.local(), Some(address.domain()))
    }

    /// Returns the mailbox for a text in a query, which is an address or only a name, both with or without a project and a
    /// folder. With [`Naming::Domain`] a text without `@` is a domain.
    pub fn parse_mailbox(self, text: &str) -> Result<MailboxName, NameError> {
        self.parse_mailbox_in(None, text)
    }

    /// Returns the mailbox for a text in a query of a client with this home: a text without a project is a mailbox in the
    /// home. The name is relative to the home.
    pub fn parse_mailbox_in(self, home: Option<&Project>, text: &str) -> Result<MailboxName, NameError> {
        let (project, name) = split_requested_project(text);
        let mailbox = self.parse_name(name)?;
        Ok(match project.as_ref().or(home) {
            Some(project) => mailbox.in_project(project).relative_to(home),
            None => mailbox,
        })
    }

    /// Returns the mailbox for a text without a project.
    fn parse_name(self, text: &str) -> Result<MailboxName, NameError> {
        // The commas of a source route, which ends in a colon, do not separate a folder.
        let start = if text.starts_with('@') { text.find(':').unwrap_or(text.len()) } else { 0 };
        match text[start..].find(FOLDER_SEPARATOR).map(|at| text.split_at(start + at)) {
            Some((owner, folder)) => Ok(self.parse_owner(owner)?.in_folder(&folder[1..])?),
            None => self.parse_owner(text),
        }
    }

    /// Returns the mailbox for a text without a project and without a folder.
    fn parse_owner(self, text: &str) -> Result<MailboxName, NameError> {
        if self == Self::Domain && text.starts_with('[') {
            address::check_domain(text)?;
            return domain_name(text).map(Into::into);
        }
        let (local, domain) = address::split(text, Alphabet::Utf8)?;
        // With local naming the domain is not used, so it may be invalid.
        let domain = domain.filter(|_| self != Self::Local);
        if let Some(domain) = &domain {
            address::check_domain(domain)?;
        }
        self.mailbox_name(&local, domain.as_deref())
    }

    /// Returns an address that is delivered to this mailbox, apart from its project. `domain` is used if the name contains
    /// no domain. Returns `None` if no address maps to the name, for example for a name without a domain with
    /// [`Naming::Full`], or for a folder.
    pub fn address_for(self, mailbox: &MailboxName, domain: &str) -> Option<Address> {
        if mailbox.folder().is_some() {
            return None;
        }
        let name = mailbox.without_project();
        let text = match self {
            Self::Local => format!("{name}@{domain}"),
            Self::Full => name.to_owned(),
            Self::Domain => format!("postmaster@{name}"),
        };
        let address = Address::parse(&text, Alphabet::Utf8).ok()?;
        self.mailbox_for(&address).is_ok_and(|found| found.as_str() == name).then_some(address)
    }

    fn mailbox_name(self, local: &str, domain: Option<&str>) -> Result<MailboxName, NameError> {
        let local = local_name(local)?;
        match (self, domain) {
            (Self::Local, _) | (Self::Full, None) => Ok(local.into()),
            (Self::Full, Some(domain)) => Ok(format!("{local}@{}", domain_name(domain)?).into()),
            (Self::Domain, Some(domain)) => domain_name(domain).map(Into::into),
            (Self::Domain, None) => {
                address::check_domain(&local)?;
                Ok(local.into())
            }
        }
    }
}

impl From<String> for MailboxName {
    fn from(canonical: String) -> Self {
        Self { text: canonical.into(), is_relative: false }
    }
}

/// Returns the local half of a name: in lower case, without the first `+` and what follows it. If the `+` is the first
/// character, it is part of the name. Fails if the local part needs quotes.
fn local_name(local: &str) -> Result<String, NameError> {
    if !address::is_dot_string(local) {
        return Err(NameError::NeedsQuotes);
    }
    let lower = canonicalize(local, MAX_MAILBOX_NAME_CHARS)?;
    let name = match lower.split_once('+') {
        Some((name, _)) if !name.is_empty() => name,
        _ => &lower,
    };
    // "a.+b" is a valid local part, but "a." is not.
    Ok(name.trim_end_matches('.').to_owned())
}

fn domain_name(domain: &str) -> Result<String, NameError> {
    canonicalize(address::strip_final_dot(domain), MAX_DOMAIN_CHARS)
}

/// Converts a text to lower case and NFC. Conversion to lower case can add characters, so the limit is checked again.
fn canonicalize(text: &str, max_chars: usize) -> Result<String, NameError> {
    let lower = lowercase_nfc(text);
    if !lower.is_ascii() && lower.chars().count() > max_chars {
        return Err(NameError::TooLong);
    }
    Ok(lower)
}

/// Converts the start of a mailbox name, as a client writes it, to the form in which names are stored: lower case, in NFC.
/// The name of a folder keeps its case.
pub fn canonical_prefix(text: &str) -> String {
    match split_folder(text) {
        Some((owner, folder)) => format!("{}{FOLDER_SEPARATOR}{}", lowercase_nfc(owner), folder.nfc()),
        None => lowercase_nfc(text),
    }
}

/// Converts a text to the form in which domains and mailbox names are compared: lower case, in NFC. For mailbox names that
/// can be those of folders, use [`canonical_prefix`].
pub fn lowercase_nfc(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_and_addresses_of_queries() {
        // The input, then the name under local, full and domain naming; "" if the input is rejected.
        let table = [
            ("james", "james", "james", "james"),
            ("First.Last", "first.last", "first.last", "first.last"),
            ("user+label", "user", "user", "user"),
            ("chars!#$%", "chars!#$%", "chars!#$%", ""),
            ("chars_`.{|}~", "chars_`.{|}~", "chars_`.{|}~", ""),
            ("James+Spam@X.org", "james", "james@x.org", "x.org"),
            ("chars&'*-@example.co.uk", "chars&'*-", "chars&'*-@example.co.uk", "example.co.uk"),
            ("a@[192.0.2.1]", "a", "a@[192.0.2.1]", "[192.0.2.1]"),
            ("a@[IPv6:2001:DB8::1]", "a", "a@[ipv6:2001:db8::1]", "[ipv6:2001:db8::1]"),
            ("[192.0.2.1]", "", "", "[192.0.2.1]"),
            ("Jöran@Bücher.example", "jöran", "jöran@bücher.example", "bücher.example"),
            ("\"james\"@x.org", "james", "james@x.org", "x.org"),
            ("a.+b@x.org", "a", "a@x.org", "x.org"),
            ("", "", "", ""),
            ("+label@x.org", "+label", "+label@x.org", "x.org"),
            ("james.", "james", "james", "james"),
            ("james@x.org.", "james", "james@x.org", "x.org"),
            ("x.org.", "x.org", "x.org", "x.org"),
            ("a@", "a", "", ""),
            ("a@x_ y", "a", "", ""),
            ("a@[::1]", "a", "a@[::1]", "[::1]"),
            ("first last", "", "", ""),
            ("\"first last\"@x.org", "", "", ""),
            ("first\"last", "", "", ""),
            ("first\nlast", "", "", ""),
            ("..", "", "", ""),
            ("a@b@x.org", "a", "", ""),
            ("a@x--y.org", "a", "", ""),
            (".", "", "", ""),
            ("a..", "", "", ""),
            ("James,Sent", "james,Sent", "james,Sent", "james,Sent"),
            ("james+x@X.org,Sent Items", "james,Sent Items", "james@x.org,Sent Items", "x.org,Sent Items"),
            ("a@[IPv6:2001:DB8::1],A:b", "a,A:b", "a@[ipv6:2001:db8::1],A:b", "[ipv6:2001:db8::1],A:b"),
            ("[192.0.2.1],Sent", "", "", "[192.0.2.1],Sent"),
            ("james@,Sent", "james,Sent", "", ""),
            ("\"james\"@x.org,a@b,C", "james,a@b,C", "james@x.org,a@b,C", "x.org,a@b,C"),
            ("@a.test,@b.test:james@x.org", "james", "james@x.org", "x.org"),
            ("@a.test,@b.test:james@x.org,Sent", "james,Sent", "james@x.org,Sent", "x.org,Sent"),
            ("\"a,b\"@x.org", "", "", ""),
            ("a\\,b@x.org", "", "", ""),
            ("@a.test,@b.test", "", "", ""),
            ("james,", "", "", ""),
            (",Sent", "", "", ""),
            (",", "", "", ""),
            ("a..b,Sent", "", "", ""),
            ("james,inbox/x", "", "", ""),
        ];
        for (text, local, full, domain) in table {
            for (naming, expected) in Naming::ALL.into_iter().zip([local, full, domain]) {
                let name = naming.parse_mailbox(text);
                let name = name.as_ref().map_or("", MailboxName::as_str);
                assert_eq!(name, expected, "{text:?} under {naming}");
            }
        }
    }

    #[test]
    fn parses_names_with_projects() {
        // The text, then the mailbox and its form in responses without a home, and with the home `shop`.
        let table = [
            ("bob", "bob", "bob", "shop:bob", "bob"),
            ("shop:Bob", "shop:bob", "shop:bob", "shop:bob", "bob"),
            ("SHOP:bob+x@x.org", "shop:bob", "shop:bob", "shop:bob", "bob"),
            ("acme:bob", "acme:bob", "acme:bob", "acme:bob", "acme:bob"),
            (":bob", "", "", "", ""),
            ("-shop:bob", "", "", "", ""),
            ("sh_op:bob", "", "", "", ""),
            ("shop:", "", "", "", ""),
            (":", "", "", "", ""),
            ("shop:acme:bob", "", "", "", ""),
            ("::bob", "", "", "", ""),
            ("SHOP:Bob@x.org,A/b", "shop:bob,A/b", "shop:bob,A/b", "shop:bob,A/b", "bob,A/b"),
            ("bob,shop:x", "bob,shop:x", "bob,shop:x", "shop:bob,shop:x", "bob,shop:x"),
        ];
        let shop: Project = "shop".parse().unwrap();
        for (text, plain, plain_shown, in_home, in_home_shown) in table {
            for (home, expected, shown) in [(None, plain, plain_shown), (Some(&shop), in_home, in_home_shown)] {
                let name = Naming::Local.parse_mailbox_in(home, text);
                assert_eq!(name.as_ref().map_or("", MailboxName::as_str), expected, "{text:?} {home:?}");
                if let Ok(name) = name {
                    assert_eq!(name.shown(), shown, "{text:?} {home:?}");
                    assert_eq!(Naming::Local.parse_mailbox_in(home, name.shown()), Ok(name));
                }
            }
        }
        let literal = Naming::Full.parse_mailbox("shop:a@[IPv6:2001:DB8::1]").unwrap();
        assert_eq!(
            (literal.as_str(), literal.without_project()),
            ("shop:a@[ipv6:2001:db8::1]", "a@[ipv6:2001:db8::1]")
        );
        assert_eq!(literal.project(), Some(shop));
        assert_eq!(Naming::Domain.parse_mailbox("[IPv6:2001:DB8::1]").unwrap().project(), None);
    }

    #[test]
    fn checks_names_of_projects() {
        for valid in ["shop", "a", "7", "run-x1", &"x".repeat(MAX_PROJECT_CHARS)] {
            assert_eq!(valid.parse::<Project>().map(|project| project.prefix()), Ok(format!("{valid}:")));
        }
        for invalid in ["", "-", "a-", "-a", "Shop", "a.b", "a:b", "jö", "a b", &"x".repeat(MAX_PROJECT_CHARS + 1)] {
            assert_eq!(invalid.parse::<Project>(), Err(ProjectError), "{invalid:?}");
        }
    }

    #[test]
    fn checks_names_of_folders() {
        use FolderError as E;
        let long = "x".repeat(MAX_FOLDER_BYTES);
        let table: &[(&str, Result<&str, E>)] = &[
            ("Sent", Ok("Sent")),
            ("Archive/2024/a b", Ok("Archive/2024/a b")),
            ("Entwu\u{308}rfe", Ok("Entwürfe")),
            ("a,b:c@d&e", Ok("a,b:c@d&e")),
            ("INBOXES", Ok("INBOXES")),
            ("a/inbox", Ok("a/inbox")),
            ("..", Ok("..")),
            (&long, Ok(&long)),
            ("", Err(E::Length)),
            (&format!("{long}x"), Err(E::Length)),
            (&"x".repeat(5000), Err(E::Length)),
            ("/a", Err(E::Level)),
            ("a/", Err(E::Level)),
            ("a//b", Err(E::Level)),
            (" a", Err(E::Level)),
            ("a /b", Err(E::Level)),
            ("a/\u{2003}b", Err(E::Level)),
            ("a*", Err(E::Character)),
            ("%", Err(E::Character)),
            ("a\"b\\c", Ok("a\"b\\c")),
            ("a\r\nb", Err(E::Character)),
            ("a\u{85}b", Err(E::Character)),
            ("INBOX", Err(E::Inbox)),
            ("Inbox/a", Err(E::Inbox)),
        ];
        let shop: Project = "shop".parse().unwrap();
        let owner = Naming::Local.parse_mailbox_in(Some(&shop), "bob").unwrap();
        assert_eq!((owner.owner(), owner.folder()), (owner.clone(), None));
        for (name, expected) in table {
            let folder = owner.in_folder(name);
            assert_eq!(folder.as_ref().map(|folder| folder.folder().unwrap()), expected.as_deref(), "{name:?}");
            let Ok(folder) = folder else { continue };
            assert_eq!((folder.owner(), folder.owner_name()), (owner.clone(), "shop:bob"));
            assert_eq!((folder.project(), folder.owner().shown()), (Some(shop.clone()), "bob"));
            assert_eq!(folder.shown(), format!("bob,{}", folder.folder().unwrap()));
            assert_eq!(folder.in_folder("Sent").unwrap().as_str(), "shop:bob,Sent");
            assert_eq!(Naming::Local.parse_mailbox(folder.as_str()), Ok(folder));
        }
    }

    #[test]
    fn canonical_prefix_keeps_the_case_of_folders() {
        for (text, expected) in [("JAM", "jam"), ("JÖ", "jö"), ("Bob,", "bob,"), ("BOB,SentU\u{308},B", "bob,SentÜ,B")]
        {
            assert_eq!(canonical_prefix(text), expected);
        }
    }

    #[test]
    fn recipient_and_query_map_to_the_same_mailbox() {
        let address = Address::parse("James+Spam@X.org", Alphabet::Ascii).unwrap();
        for naming in Naming::ALL {
            let delivered = naming.mailbox_for(&address).unwrap();
            assert_eq!(delivered, naming.parse_mailbox("james@x.org").unwrap());
        }
    }

    #[test]
    fn returns_an_address_of_a_mailbox() {
        // The name, then the address under local, full and domain naming; "" if there is none.
        let table = [
            ("james", "james@mx.test", "", "postmaster@james"),
            ("jöran", "jöran@mx.test", "", "postmaster@jöran"),
            ("james@x.org", "", "james@x.org", ""),
            ("x.org", "x.org@mx.test", "", "postmaster@x.org"),
            ("[192.0.2.1]", "", "", "postmaster@[192.0.2.1]"),
            ("shop:james", "james@mx.test", "", "postmaster@james"),
            ("james,Sent", "", "", ""),
            ("james@x.org,x.org", "", "", ""),
        ];
        for (name, local, full, domain) in table {
            for (naming, expected) in Naming::ALL.into_iter().zip([local, full, domain]) {
                let address = naming.address_for(&name.to_owned().into(), "mx.test");
                assert_eq!(address.map(|address| address.to_string()).unwrap_or_default(), expected, "{name} {naming}");
            }
        }
    }

    #[test]
    fn rejects_name_that_is_too_long_in_lower_case() {
        // The lower case of U+0130 is two characters.
        let name = "\u{130}".repeat(MAX_MAILBOX_NAME_CHARS);
        assert_eq!(Naming::Local.parse_mailbox(&name), Err(NameError::TooLong));
    }

    #[test]
    fn rejects_name_over_limit() {
        let name = |length| Naming::Local.parse_mailbox(&"x".repeat(length)).map(|name| name.as_str().len());
        assert_eq!(name(MAX_MAILBOX_NAME_CHARS), Ok(MAX_MAILBOX_NAME_CHARS));
        assert_eq!(name(MAX_MAILBOX_NAME_CHARS + 1), Err(AddressError::Local("has more than 255 characters").into()));
    }

    proptest::proptest! {
        #[test]
        fn no_recipient_chooses_a_project_or_folder(local in "[a-z:,\\-\"]{1,12}|.{1,20}", domain in "[a-z:,.\\-]{1,12}|\\[IPv6:[0-9a-f:]{2,20}\\]|\\[[a-z]{1,8}:[ -~]{1,12}\\]") {
            let texts = [format!("{local}@{domain}"), format!("\"{local}\"@{domain}"), format!("<@a,@b:{local}@{domain}>")];
            for text in texts {
                let Ok(address) = Address::parse(&text, Alphabet::Utf8) else { continue };
                for naming in Naming::ALL {
                    if let Ok(mailbox) = naming.mailbox_for(&address) {
                        proptest::prop_assert_eq!(mailbox.project(), None, "{} {}", text, naming);
                        proptest::prop_assert_eq!(mailbox.folder(), None, "{} {}", text, naming);
                    }
                }
            }
        }

        #[test]
        fn parsing_a_mailbox_name_is_idempotent(text in "[a-zA-Z+.\\-\\[\\]\"@İßΣ\u{300}-\u{310}]{1,30}|.{1,30}|[a-zA-ZΣİ+]{1,8}@[a-zA-Z.]{1,8}|[a-zA-Z@:]{1,6},[A-Za-z,/: İΣ\u{300}-\u{310}\u{37e}]{1,8}") {
            for naming in Naming::ALL {
                if let Ok(name) = naming.parse_mailbox(&text) {
                    proptest::prop_assert_eq!(naming.parse_mailbox(name.as_str()), Ok(name));
                }
            }
        }
    }
}
