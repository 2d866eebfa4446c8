//! Parses LIST with the extensions of RFC 5258, and LSUB.

use super::super::command::{Command, ListRequest, ListReturn, ListSelection};
use super::tokens::{Parsed, Parser};

/// The maximum number of patterns.
const MAX_PATTERNS: usize = 100;
/// The maximum number of return options.
const MAX_RETURNS: usize = 10;

impl Parser<'_> {
    pub(super) fn list_request(&mut self) -> Parsed<ListRequest> {
        let mut request = ListRequest::default();
        if self.peek() == Some(b'(') {
            request.is_extended = true;
            request.select = self.list_selection()?;
            self.space()?;
        }
        request.reference = self.mailbox()?;
        self.space()?;
        if self.peek() == Some(b'(') {
            request.is_extended = true;
            request.patterns = self.list(Self::pattern)?;
        } else {
            request.patterns.push(self.pattern()?);
        }
        if request.patterns.len() > MAX_PATTERNS {
            return Err("Too many patterns");
        }
        if self.take_text(" RETURN ") {
            request.is_extended = true;
            request.returns = if self.take_text("()") { Vec::new() } else { self.list(Self::list_return)? };
        }
        if request.returns.len() > MAX_RETURNS {
            return Err("Too many return options");
        }
        Ok(request)
    }

    pub(super) fn lsub(&mut self) -> Parsed<Command> {
        let reference = self.mailbox()?;
        self.space()?;
        Ok(Command::Lsub { reference, pattern: self.pattern()? })
    }

    fn list_selection(&mut self) -> Parsed<Vec<ListSelection>> {
        if self.take_text("()") {
            return Ok(Vec::new());
        }
        let mut selection = Vec::new();
        self.list(|parser| {
            let option = match parser.word()?.as_str() {
                "SUBSCRIBED" => ListSelection::Subscribed,
                "REMOTE" => ListSelection::Remote,
                "RECURSIVEMATCH" => ListSelection::RecursiveMatch,
                "SPECIAL-USE" => ListSelection::SpecialUse,
                _ => return Err("Unknown selection option of LIST"),
            };
            if !selection.contains(&option) {
                selection.push(option);
            }
            Ok(())
        })?;
        let selects = |option: &ListSelection| matches!(option, ListSelection::Subscribed | ListSelection::SpecialUse);
        if selection.contains(&ListSelection::RecursiveMatch) && !selection.iter().any(selects) {
            return Err("RECURSIVEMATCH needs another selection option");
        }
        Ok(selection)
    }

    fn list_return(&mut self) -> Parsed<ListReturn> {
        Ok(match self.word()?.as_str() {
            "SUBSCRIBED" => ListReturn::Subscribed,
            "CHILDREN" => ListReturn::Children,
            "SPECIAL-USE" => ListReturn::SpecialUse,
            "STATUS" => {
                self.space()?;
                ListReturn::Status(self.status_items()?)
            }
            _ => return Err("Unknown return option of LIST"),
        })
    }
}
