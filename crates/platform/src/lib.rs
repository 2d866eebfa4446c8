//! What differs between Linux, macOS and Windows. Each module is one topic, with the same interface on all systems, so
//! that the other crates need no conditional compilation.

mod files;
mod foreground_command;
mod host;
mod limits;
mod process_group;
mod process_stats;
mod program;
mod signals;
mod terminal;
mod trusted_file;
pub mod unix_socket;
mod users;

pub use files::{
    Access, DiskSpace, FileExt, FileId, FileSystem, check_access, disk_space, file_id, private_dir, private_file,
    punch_hole, sync_dir, sync_file,
};
pub use foreground_command::{exit_code, run_in_foreground};
pub use host::host_name;
pub use limits::{ThreadPriority, lower_thread_priority, raise_file_limit};
pub use process_group::{ProcessGroup, shell};
pub use process_stats::ProcessFiles;
pub use program::program_name;
pub use signals::{Interrupts, SignalRequest, SystemSignals, interrupts};
pub use terminal::{read_passwords, shows_colors};
pub use trusted_file::{UntrustedFile, open_trusted};
pub use users::{current_user, current_user_name, file_owner};
