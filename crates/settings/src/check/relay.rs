//! Checks of the relay: whether rules name existing targets and the files of targets can be read. Warns about targets
//! that nothing can be sent to, and about unprotected connections.

use restante_http_client::{has_private_host, parse_url};
use restante_relay::{Password, Settings, Target, Verification};

use super::Checker;
use crate::ReadFile;
use crate::setting::Setting;
use crate::table::row;

const TARGETS: &Setting = row("relay.targets");
const FORWARD: &Setting = row("relay.forward");
const PRIVATE: &Setting = row("relay.private");

impl Checker<'_> {
    /// Checks rules and files. Messages do not contain the paths: the setting is secret.
    pub(super) fn check_relay(&mut self, relay: &Settings, read_file: ReadFile<'_>) {
        let Settings { targets, rules, .. } = relay;
        if !self.is_valid(TARGETS) {
            return;
        }
        for (rule, number) in rules.iter().zip(1_usize..) {
            if !targets.iter().any(|target| target.name == rule.target) {
                self.add(FORWARD, &format!("entry {number} names a target that is not in {}", TARGETS.key));
            }
        }
        for (target, number) in targets.iter().zip(1_usize..) {
            if let Verification::Ca(path) = &target.verification {
                let pem = read_file(path).map_err(|error| format!("cannot be read: {error}"));
                if let Err(error) = pem.and_then(|pem| restante_net::Tls::parse_chain(&pem)) {
                    self.add(TARGETS, &format!("the file after ca= of entry {number} {error}"));
                }
            }
            if let Some(Password::File(path)) = target.login.as_ref().map(|login| &login.password)
                && let Err(error) = read_file(path)
            {
                self.add(TARGETS, &format!("the file after passwordfile= of entry {number} cannot be read: {error}"));
            }
        }
    }
}

/// Returns warnings about valid targets.
pub(super) fn warnings(relay: &Settings) -> Vec<String> {
    let names = |applies: &dyn Fn(&Target) -> bool| {
        let names = relay.targets.iter().filter(|target| applies(target)).map(|target| target.name.as_str());
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    let is_unreachable = |target: &Target| !relay.allow_private_addresses && has_private_address(target);
    let allows_unencrypted = |target: &Target| target.login.as_ref().is_some_and(|login| login.allow_unencrypted);
    let (key, private) = (TARGETS.key, PRIVATE.key);
    let never_sent = relay.rules.iter().zip(1_usize..).filter(|(rule, _)| {
        let target = relay.targets.iter().find(|target| target.name == rule.target);
        target.is_some_and(|target| rule.to.iter().any(|to| !target.allows(&to.text())))
    });
    let never_sent: Vec<String> = never_sent.map(|(_, number)| number.to_string()).collect();
    let never_sent = (!never_sent.is_empty()).then(|| {
        let entries = never_sent.join(", ");
        format!(
            "the target does not allow an address after to=, so nothing is sent to it: {}, entry {entries}",
            FORWARD.key
        )
    });
    let warnings = [
        never_sent,
        names(&|target| target.allowed.is_empty())
            .map(|names| format!("nothing is sent to targets without the option allow: {key}, {names}")),
        names(&is_unreachable)
            .map(|names| format!("nothing is sent to private addresses unless {private} is true: {key}, {names}")),
        names(&|target| target.verification == Verification::None)
            .map(|names| format!("the certificates of targets are not verified: {key}, {names}")),
        names(&allows_unencrypted).map(|names| format!("passwords of targets may be sent unencrypted: {key}, {names}")),
    ];
    warnings.into_iter().flatten().collect()
}

/// Returns true if the host is evidently at a private address. The addresses of host names are not known here.
fn has_private_address(target: &Target) -> bool {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    parse_url(&format!("http://{host}/")).is_ok_and(|url| has_private_host(&url))
}
