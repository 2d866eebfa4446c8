//! From pieces to a question. `or` binds looser than standing side by side; parentheses group. What is open is on a stack of its
//! own, so that nesting costs no stack of the thread, and all of it is bounded.

use jiff::Timestamp;

use super::lexer::{Lexer, Token, TokenKind};
use super::{Query, QueryError, Step, term};

/// How long a question may be, in bytes.
const MAX_QUERY_BYTES: usize = 4096;
/// How many terms it may have.
const MAX_TERMS: usize = 64;
/// How deep parentheses may be nested.
const MAX_DEPTH: usize = 16;

/// A pair of parentheses, or the whole question, while it is read.
#[derive(Default)]
struct Group {
    /// Where it was opened.
    offset: usize,
    /// Whether a minus sign stands before it.
    is_negated: bool,
    /// Whether there is an alternative before the one that is read.
    has_alternative: bool,
    /// Whether there is something in the alternative that is read.
    has_operand: bool,
}

struct Parser<'a> {
    text: &'a str,
    steps: Vec<Step>,
    term_count: usize,
    /// The group that is read, and those around it.
    group: Group,
    outer: Vec<Group>,
    /// The minus sign that was read last, if it is still to be used.
    pending_minus: Option<usize>,
}

/// Reads a question that is asked now.
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Query, QueryError> {
    if text.len() > MAX_QUERY_BYTES {
        return Err(QueryError::new(text, MAX_QUERY_BYTES, format!("a query has at most {MAX_QUERY_BYTES} bytes")));
    }
    let mut parser = Parser {
        text,
        steps: Vec::new(),
        term_count: 0,
        group: Group::default(),
        outer: Vec::new(),
        pending_minus: None,
    };
    let mut lexer = Lexer::new(text);
    while let Some(token) = lexer.next()? {
        parser.push_token(&token, now)?;
    }
    parser.finish()
}

impl Parser<'_> {
    fn push_token(&mut self, token: &Token<'_>, now: Timestamp) -> Result<(), QueryError> {
        let at = token.offset;
        match &token.kind {
            TokenKind::Minus if self.pending_minus.is_some() => Err(self.error(at, "one minus sign is enough")),
            TokenKind::Minus => {
                self.pending_minus = Some(at);
                Ok(())
            }
            TokenKind::Open => self.open(at),
            TokenKind::Close => self.close(at),
            TokenKind::Or => self.or(at),
            TokenKind::Term(raw) => {
                // Punctuation between words says nothing.
                let Some(term) = term::parse(self.text, at, raw, now)? else {
                    return self
                        .pending_minus
                        .map_or(Ok(()), |at| Err(self.error(at, "a word must follow this minus sign")));
                };
                self.term_count += 1;
                if self.term_count > MAX_TERMS {
                    return Err(self.error(at, &format!("a query has at most {MAX_TERMS} terms")));
                }
                self.steps.push(Step::Term(term));
                let is_negated = self.pending_minus.take().is_some();
                self.push_operand(is_negated);
                Ok(())
            }
        }
    }

    /// Something that can be asked was read, and its steps are there.
    fn push_operand(&mut self, is_negated: bool) {
        if is_negated {
            self.steps.push(Step::Not);
        }
        if self.group.has_operand {
            self.steps.push(Step::And);
        }
        self.group.has_operand = true;
    }

    fn open(&mut self, at: usize) -> Result<(), QueryError> {
        if self.outer.len() == MAX_DEPTH {
            return Err(self.error(at, &format!("parentheses are nested at most {MAX_DEPTH} deep")));
        }
        let group = Group { offset: at, is_negated: self.pending_minus.take().is_some(), ..Group::default() };
        self.outer.push(std::mem::replace(&mut self.group, group));
        Ok(())
    }

    fn close(&mut self, at: usize) -> Result<(), QueryError> {
        let Some(outer) = self.outer.pop() else {
            return Err(self.error(at, "this parenthesis was never opened"));
        };
        self.end_group(at, "there must be something in parentheses")?;
        let group = std::mem::replace(&mut self.group, outer);
        self.push_operand(group.is_negated);
        Ok(())
    }

    fn or(&mut self, at: usize) -> Result<(), QueryError> {
        if self.pending_minus.is_some() {
            return Err(self.error(at, "a minus sign stands before a term; the word itself is written in quotes"));
        }
        if !self.group.has_operand {
            return Err(self.error(at, "something must stand before this or; the word itself is written in quotes"));
        }
        if self.group.has_alternative {
            self.steps.push(Step::Or);
        }
        self.group.has_alternative = true;
        self.group.has_operand = false;
        Ok(())
    }

    /// The last alternative of the group ends.
    fn end_group(&mut self, at: usize, when_empty: &str) -> Result<(), QueryError> {
        match (self.group.has_alternative, self.group.has_operand) {
            (true, false) => Err(self.error(at, "something must follow the or; the word itself is written in quotes")),
            (false, false) => Err(self.error(at, when_empty)),
            (true, true) => {
                self.steps.push(Step::Or);
                Ok(())
            }
            (false, true) => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Query, QueryError> {
        if !self.outer.is_empty() {
            return Err(self.error(self.group.offset, "this parenthesis is never closed"));
        }
        if self.steps.is_empty() && !self.group.has_alternative {
            return Ok(Query::default());
        }
        self.end_group(self.text.len(), "there must be something to look for")?;
        Ok(Query { steps: self.steps })
    }

    fn error(&self, at: usize, problem: &str) -> QueryError {
        QueryError::new(self.text, at, problem)
    }
}
