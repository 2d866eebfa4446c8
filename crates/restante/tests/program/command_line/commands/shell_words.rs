//! Finds the commands in a shell script, without running it. It supports what the examples in the documentation use:
//! quotes, comments, pipes, lists, redirections, command substitutions outside of quotes, and variables before a command.

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// The variables that are set for the command.
    pub(super) variables: Vec<(String, String)>,
    /// The program and its arguments.
    pub(super) words: Vec<String>,
}

/// Words that are followed by a command.
const PREFIXES: [&[&str]; 4] = [&["if"], &["then"], &["xargs", "-r"], &["sudo", "-u", "mail"]];

impl ShellCommand {
    /// Returns the call of this program, if the command is one.
    pub(super) fn of_program(mut self, program: &str) -> Option<Self> {
        while self.words.first()? != program {
            let is_first = |prefix: &&&[&str]| self.words.iter().zip(**prefix).all(|(word, expected)| word == expected);
            let length = PREFIXES.iter().find(is_first)?.len().min(self.words.len());
            // xargs adds arguments.
            if self.words[0] == "xargs" {
                self.words.push("1".to_owned());
            }
            self.words.drain(..length);
        }
        Some(self)
    }

    fn add(&mut self, word: String) {
        match word.split_once('=') {
            Some((name, value)) if self.words.is_empty() && is_variable(name) => {
                self.variables.push((name.to_owned(), value.to_owned()));
            }
            _ => self.words.push(word),
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Returns the commands of a script.
pub(super) fn shell_commands(script: &str) -> Vec<ShellCommand> {
    let mut commands = vec![ShellCommand::default()];
    let mut word: Option<String> = None;
    let mut is_redirected = false;
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        let is_substitution = c == '$' && chars.peek() == Some(&'(');
        match c {
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let text = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    text.extend(if c == '\\' { chars.next() } else { Some(c) });
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' | '<' | '>' => {
                let ended = word.take();
                // The file of a redirection, or the descriptor before it, is not an argument.
                let is_descriptor =
                    c == '>' && ended.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
                let is_file = is_redirected && ended.is_some();
                if let Some(word) = ended.filter(|_| !is_file && !is_descriptor) {
                    commands.last_mut().expect("the list is not empty").add(word);
                }
                is_redirected = matches!(c, '<' | '>') || is_redirected && !is_file;
                if !matches!(c, ' ' | '\t' | '<' | '>') {
                    commands.push(ShellCommand::default());
                    is_redirected = false;
                }
            }
            _ if is_substitution => {
                word = None;
                chars.next();
                commands.push(ShellCommand::default());
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(word) = word {
        commands.last_mut().expect("the list is not empty").add(word);
    }
    commands.retain(|command| !command.words.is_empty());
    commands
}

#[test]
fn finds_commands() {
    let table: [(&str, &[&[&str]]); 8] = [
        ("a 'b c' \"d \\\" $e\" # f\n", &[&["a", "b c", "d \" $e"]]),
        ("a | b && c; d &\ne\n", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
        ("x=$(a b) || exit 1", &[&["a", "b"], &["exit", "1"]]),
        ("a < in > out 2> log b", &[&["a", "b"]]),
        ("a \\\n  b", &[&["a", "b"]]),
        ("if a --x; then b; fi", &[&["if", "a", "--x"], &["then", "b"], &["fi"]]),
        ("a \"${b:-0}\" ''", &[&["a", "${b:-0}", ""]]),
        ("# nothing", &[]),
    ];
    for (script, expected) in table {
        let found: Vec<Vec<String>> = shell_commands(script).into_iter().map(|command| command.words).collect();
        assert_eq!(found, expected, "{script}");
    }
    let found = shell_commands("A_1=x B=y restante --z; xargs -r restante delete; docker run restante");
    let found: Vec<ShellCommand> = found.into_iter().filter_map(|command| command.of_program("restante")).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].variables, [("A_1".to_owned(), "x".to_owned()), ("B".to_owned(), "y".to_owned())]);
    assert_eq!(found[1].words, ["restante", "delete", "1"]);
}
