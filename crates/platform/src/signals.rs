//! Signals of the system that end or reload the server.

pub use imp::{Interrupts, SystemSignals, interrupts};

/// The meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGTERM or SIGINT. On Windows: Ctrl-C, Ctrl-Break, or the end of the console, the login session or the system.
    Shutdown,
    /// SIGHUP. Windows has no such signal.
    Reload,
}

#[cfg(unix)]
mod imp {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::SignalRequest;

    /// Receives Ctrl-C.
    pub type Interrupts = Signal;

    /// The signals that the server handles.
    pub struct SystemSignals {
        terminate: Signal,
        interrupt: Signal,
        hangup: Signal,
    }

    impl SystemSignals {
        /// Registers the signal handlers. Signals that arrive before they are awaited are not lost. Must be called
        /// within a runtime.
        pub fn listen() -> io::Result<Self> {
            Ok(Self {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: signal(SignalKind::hangup())?,
            })
        }

        /// Waits for a request to shut down. A request to reload in the meantime is returned by [`SystemSignals::next`].
        pub async fn wait_for_shutdown(&mut self) {
            tokio::select! {
                _ = self.terminate.recv() => {},
                _ = self.interrupt.recv() => {},
            }
        }

        /// Waits for the next signal.
        pub async fn next(&mut self) -> SignalRequest {
            tokio::select! {
                _ = self.terminate.recv() => SignalRequest::Shutdown,
                _ = self.interrupt.recv() => SignalRequest::Shutdown,
                _ = self.hangup.recv() => SignalRequest::Reload,
            }
        }
    }

    /// Listens for Ctrl-C. Must be called within a runtime.
    pub fn interrupts() -> io::Result<Interrupts> {
        signal(SignalKind::interrupt())
    }
}

#[cfg(windows)]
mod imp {
    use std::io;

    use tokio::signal::windows::{
        CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff,
        ctrl_shutdown,
    };

    use super::SignalRequest;

    /// Receives Ctrl-C.
    pub type Interrupts = CtrlC;

    /// The console events that the server handles. After the last three, Windows ends the process within a few seconds.
    pub struct SystemSignals {
        interrupt: CtrlC,
        terminate: CtrlBreak,
        close: CtrlClose,
        logoff: CtrlLogoff,
        system_shutdown: CtrlShutdown,
    }

    impl SystemSignals {
        /// Registers the handlers. Events that arrive before they are awaited are not lost. Must be called within a
        /// runtime.
        pub fn listen() -> io::Result<Self> {
            Ok(Self {
                interrupt: ctrl_c()?,
                terminate: ctrl_break()?,
                close: ctrl_close()?,
                logoff: ctrl_logoff()?,
                system_shutdown: ctrl_shutdown()?,
            })
        }

        /// Waits for a request to shut down. A request to reload in the meantime is returned by [`SystemSignals::next`].
        pub async fn wait_for_shutdown(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {},
                _ = self.terminate.recv() => {},
                _ = self.close.recv() => {},
                _ = self.logoff.recv() => {},
                _ = self.system_shutdown.recv() => {},
            }
        }

        /// Waits for the next event.
        pub async fn next(&mut self) -> SignalRequest {
            self.wait_for_shutdown().await;
            SignalRequest::Shutdown
        }
    }

    /// Listens for Ctrl-C. Must be called within a runtime.
    pub fn interrupts() -> io::Result<Interrupts> {
        ctrl_c()
    }
}
