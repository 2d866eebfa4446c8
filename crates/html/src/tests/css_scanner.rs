//! A scanner that finds the URLs that a style sheet loads. It shares no code with the sanitizer or with `cssparser`, so
//! that a mistake in either of them shows in the tests. It follows CSS Syntax, section 4, except that numbers are read
//! as names.

use super::styles::{ANY_URL, LOADING_FUNCTIONS};

/// Returns everything in a style sheet that could be loaded.
pub(super) fn loaded_urls(css: &str) -> Vec<String> {
    let mut scanner = Scanner { chars: css.chars().collect(), at: 0 };
    let mut found = Vec::new();
    // The closing character of each open block, and whether a string in the block is loaded.
    let mut open: Vec<(char, bool)> = Vec::new();
    while let Some(c) = scanner.peek() {
        let is_loading = open.last().is_some_and(|&(_, is_loading)| is_loading);
        match c {
            '/' if scanner.skip("/*") => {
                while scanner.peek().is_some() && !scanner.skip("*/") {
                    scanner.at += 1;
                }
            }
            '<' if scanner.skip("<!--") => {}
            '"' | '\'' => {
                let text = scanner.string();
                found.extend(is_loading.then_some(text));
            }
            '@' => {
                scanner.at += 1;
                found.extend((scanner.name() == "import").then(|| ANY_URL.to_owned()));
            }
            '#' => {
                scanner.at += 1;
                scanner.name();
            }
            _ => {
                let name = scanner.name();
                match scanner.peek() {
                    Some('(') if name == "url" => {
                        scanner.at += 1;
                        found.extend(scanner.bare_url());
                        open.push((')', true));
                    }
                    Some('(') => {
                        let is_substitution = matches!(name.as_str(), "var" | "attr" | "env" | "if");
                        found.extend((is_loading && is_substitution).then(|| ANY_URL.to_owned()));
                        let is_known = LOADING_FUNCTIONS.split(' ').any(|known| known == name);
                        open.push((')', is_known || (is_loading && name != "type")));
                        scanner.at += 1;
                    }
                    _ if !name.is_empty() => {}
                    _ => {
                        match c {
                            '[' => open.push((']', is_loading)),
                            '{' => open.push(('}', is_loading)),
                            _ => drop(open.pop_if(|(closing, _)| *closing == c)),
                        }
                        scanner.at += 1;
                    }
                }
            }
        }
    }
    found
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
}

impl Scanner {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn skip(&mut self, text: &str) -> bool {
        let is_next = text.chars().eq(self.chars[self.at..].iter().copied().take(text.len()));
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    /// Reads a name and returns it in lower case; empty if there is none.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' if !self.chars.get(self.at + 1).is_some_and(|&c| is_newline(c)) => {
                    self.at += 1;
                    name.push(self.escape());
                    continue;
                }
                '-' | '_' | '\0' => name.push(c),
                _ if c.is_ascii_alphanumeric() || !c.is_ascii() => name.push(c.to_ascii_lowercase()),
                _ => break,
            }
            self.at += 1;
        }
        name.to_ascii_lowercase()
    }

    /// Reads a string from its quote on. A line break ends it.
    fn string(&mut self) -> String {
        let quote = self.next();
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|&c| !is_newline(c)) {
            self.at += 1;
            match c {
                _ if Some(c) == quote => break,
                '\\' if self.peek().is_some_and(is_newline) => self.at += 1,
                '\\' => text.push(self.escape()),
                _ => text.push(c),
            }
        }
        text
    }

    /// Reads the address of `url(…)` up to its closing parenthesis. Returns `None` if it is quoted.
    fn bare_url(&mut self) -> Option<String> {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
        if matches!(self.peek(), Some('"' | '\'')) {
            return None;
        }
        let mut url = String::new();
        while let Some(c) = self.peek().filter(|&c| c != ')') {
            self.at += 1;
            url.push(if c == '\\' { self.escape() } else { c });
        }
        Some(url)
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self) -> char {
        let digits = self.chars[self.at..].iter().take(6).take_while(|c| c.is_ascii_hexdigit()).count();
        if digits == 0 {
            return self.next().unwrap_or('\u{fffd}');
        }
        let number: String = self.chars[self.at..self.at + digits].iter().collect();
        self.at += digits;
        if !self.skip("\r\n") && self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
        let c = u32::from_str_radix(&number, 16).ok().and_then(char::from_u32);
        c.filter(|&c| c != '\0').unwrap_or('\u{fffd}')
    }
}

fn is_newline(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{c}')
}
