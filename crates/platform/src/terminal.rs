//! Passwords and colors on the terminal.

pub use imp::{read_passwords, shows_colors};

/// The maximum length of a password that is read, in bytes.
const MAX_PASSWORD_BYTES: usize = 1024;

#[cfg(unix)]
mod imp {
    use std::io::{self, Read as _, Write as _};

    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

    use super::MAX_PASSWORD_BYTES;

    const CTRL_C: u8 = 3;

    /// Prompts for passwords on the terminal, without echo. Standard input must be a terminal. Ctrl-C is an error of the
    /// kind [`io::ErrorKind::Interrupted`].
    pub fn read_passwords<const N: usize>(prompts: [&str; N]) -> io::Result<[String; N]> {
        let _echo_off = EchoOff::start()?;
        let mut passwords = [const { String::new() }; N];
        for (prompt, password) in prompts.into_iter().zip(&mut passwords) {
            write!(io::stderr(), "{prompt}")?;
            let line = read_line();
            writeln!(io::stderr())?;
            *password = line?;
        }
        Ok(passwords)
    }

    fn read_line() -> io::Result<String> {
        // A terminal returns one line at a time, whatever ends it.
        let mut line = vec![0; MAX_PASSWORD_BYTES];
        let length = io::stdin().lock().read(&mut line)?;
        line.truncate(length);
        if line.contains(&CTRL_C) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let line = String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Turns off the echo of the terminal until it is dropped. Ctrl-C only ends the line: terminating the program would
    /// leave the echo off.
    struct EchoOff(Termios);

    impl EchoOff {
        fn start() -> io::Result<Self> {
            let original = tcgetattr(io::stdin())?;
            let mut without_echo = original.clone();
            without_echo.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
            without_echo.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
            tcsetattr(io::stdin(), OptionalActions::Flush, &without_echo)?;
            Ok(Self(original))
        }
    }

    impl Drop for EchoOff {
        fn drop(&mut self) {
            // There is nothing else to try.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        }
    }

    /// Returns true if a terminal shows colors by escape sequences, as far as the environment tells.
    pub fn shows_colors() -> bool {
        std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }
}

#[cfg(windows)]
mod imp {
    use std::io;

    use super::MAX_PASSWORD_BYTES;

    /// Prompts for passwords on the terminal, without echo. Standard input must be a terminal. Ctrl-C is an error of the
    /// kind [`io::ErrorKind::Interrupted`].
    pub fn read_passwords<const N: usize>(prompts: [&str; N]) -> io::Result<[String; N]> {
        let mut passwords = [const { String::new() }; N];
        for (prompt, password) in prompts.into_iter().zip(&mut passwords) {
            *password = rpassword::prompt_password(prompt)?;
            if password.len() > MAX_PASSWORD_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(passwords)
    }

    /// Returns true if a terminal shows colors by escape sequences, as far as the environment tells. The old console
    /// shows them as text. Windows Terminal and the terminals of editors and Unix shells have a variable.
    pub fn shows_colors() -> bool {
        ["WT_SESSION", "TERM_PROGRAM"].into_iter().any(|name| std::env::var_os(name).is_some())
            || std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }
}
