//! Parses tokens into a query. Terms next to each other are combined with "and", which binds more tightly than `or`.
//! Open groups are on an explicit stack, so nesting does not use the stack of the thread. All sizes are limited.

use jiff::Timestamp;

use super::lexer::{Lexer, Token, TokenKind};
use super::{Query, QueryError, Step, term};

/// The maximum length of a query in bytes.
const MAX_QUERY_BYTES: usize = 4096;
/// The maximum number of terms.
const MAX_TERMS: usize = 64;
/// The maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 16;

/// The state of a pair of parentheses, or of the whole query.
#[derive(Default)]
struct Group {
    /// The byte where the group was opened.
    offset: usize,
    /// True if a minus sign precedes the group.
    is_negated: bool,
    /// True if the current alternative is not the first one.
    has_alternative: bool,
    /// True if the current alternative has an operand.
    has_operand: bool,
}

struct Parser<'a> {
    text: &'a str,
    steps: Vec<Step>,
    term_count: usize,
    /// The current group, and the groups around it.
    group: Group,
    outer: Vec<Group>,
    /// The position of a minus sign that applies to the next operand.
    pending_minus: Option<usize>,
}

/// Parses a query. Relative times are relative to `now`.
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
        let offset = token.offset;
        match &token.kind {
            TokenKind::Minus if self.pending_minus.is_some() => {
                Err(self.error(offset, "only one minus sign is allowed here"))
            }
            TokenKind::Minus => {
                self.pending_minus = Some(offset);
                Ok(())
            }
            TokenKind::Open => self.open(offset),
            TokenKind::Close => self.close(offset),
            TokenKind::Or => self.or(offset),
            TokenKind::Term(raw) => {
                // Punctuation between words is ignored.
                let Some(term) = term::parse(self.text, offset, raw, now)? else {
                    return self
                        .pending_minus
                        .map_or(Ok(()), |offset| Err(self.error(offset, "a word must follow this minus sign")));
                };
                self.term_count += 1;
                if self.term_count > MAX_TERMS {
                    return Err(self.error(offset, &format!("a query has at most {MAX_TERMS} terms")));
                }
                self.steps.push(Step::Term(term));
                let is_negated = self.pending_minus.take().is_some();
                self.push_operand(is_negated);
                Ok(())
            }
        }
    }

    /// Adds an operand whose steps were already pushed.
    fn push_operand(&mut self, is_negated: bool) {
        if is_negated {
            self.steps.push(Step::Not);
        }
        if self.group.has_operand {
            self.steps.push(Step::And);
        }
        self.group.has_operand = true;
    }

    fn open(&mut self, offset: usize) -> Result<(), QueryError> {
        if self.outer.len() == MAX_DEPTH {
            return Err(self.error(offset, &format!("parentheses may be nested at most {MAX_DEPTH} levels deep")));
        }
        let group = Group { offset, is_negated: self.pending_minus.take().is_some(), ..Group::default() };
        self.outer.push(std::mem::replace(&mut self.group, group));
        Ok(())
    }

    fn close(&mut self, offset: usize) -> Result<(), QueryError> {
        let Some(outer) = self.outer.pop() else {
            return Err(self.error(offset, "this parenthesis was never opened"));
        };
        self.end_group(offset, "the parentheses are empty")?;
        let group = std::mem::replace(&mut self.group, outer);
        self.push_operand(group.is_negated);
        Ok(())
    }

    fn or(&mut self, offset: usize) -> Result<(), QueryError> {
        if self.pending_minus.is_some() {
            return Err(self.error(
                offset,
                "a minus sign must be followed by a term; put the word \"or\" in quotes to search for it",
            ));
        }
        if !self.group.has_operand {
            return Err(
                self.error(offset, "a term must precede this \"or\"; put the word \"or\" in quotes to search for it")
            );
        }
        if self.group.has_alternative {
            self.steps.push(Step::Or);
        }
        self.group.has_alternative = true;
        self.group.has_operand = false;
        Ok(())
    }

    /// Completes the last alternative of the group.
    fn end_group(&mut self, offset: usize, when_empty: &str) -> Result<(), QueryError> {
        match (self.group.has_alternative, self.group.has_operand) {
            (true, false) => {
                Err(self
                    .error(offset, "a term must follow this \"or\"; put the word \"or\" in quotes to search for it"))
            }
            (false, false) => Err(self.error(offset, when_empty)),
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
        self.end_group(self.text.len(), "the query contains no term")?;
        Ok(Query { steps: self.steps })
    }

    fn error(&self, offset: usize, message: &str) -> QueryError {
        QueryError::new(self.text, offset, message)
    }
}
