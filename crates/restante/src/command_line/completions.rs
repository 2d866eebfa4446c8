//! The commands that print generated texts: completions, man pages and reference pages.

use std::path::PathBuf;

use clap::{Command, Subcommand};
pub use clap_complete::Shell;

/// A command that prints a generated text.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum GeneratedDocs {
    /// Prints the completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Prints the man page of a command, or writes all man pages to a directory
    Man {
        /// A command, such as send or config check
        #[arg(num_args = 0..)]
        command: Vec<String>,
        /// Writes all pages to this directory, which must exist
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        out: Option<PathBuf>,
    },
    /// Prints the reference page of all commands in Markdown
    #[command(hide = true)]
    Docs {
        /// Another page.
        #[command(subcommand)]
        page: Option<DocsPage>,
    },
}

/// A further page of `restante docs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum DocsPage {
    /// Prints the OpenAPI 3.1 description of the HTTP API
    Openapi,
}

pub(super) fn commands() -> Vec<Command> {
    // The order in the help is that of the whole program.
    let commands = GeneratedDocs::augment_subcommands(Command::default().next_display_order(None));
    commands.get_subcommands().cloned().collect()
}
