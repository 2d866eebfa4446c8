//! CPU time and memory of a process and all its descendants, for servers with several processes.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use crate::error::Error;

/// A process and the fields of /proc/PID/stat that are used.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    /// User and system time of the process and of its children that have ended, in clock ticks.
    ticks: u64,
}

/// Returns the CPU time of all processes, including those that have ended.
pub(crate) fn cpu_time(root: u32) -> Result<Duration, Error> {
    // The kernel reports in units of USER_HZ, which is 100 on every architecture that Rust's std supports on Linux.
    const MILLIS_PER_TICK: u64 = 10;
    Ok(Duration::from_millis(processes(root)?.iter().map(|process| process.ticks).sum::<u64>() * MILLIS_PER_TICK))
}

/// The memory of several processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// The number of processes.
    pub(crate) processes: usize,
    /// Their proportional set size in bytes: a page that n processes share counts as 1/n in each of them.
    pub(crate) pss: u64,
}

/// Returns the memory of all processes.
pub(crate) fn memory(root: u32) -> Result<Memory, Error> {
    let mut memory = Memory::default();
    for process in processes(root)? {
        // A process may have ended in the meantime.
        let Ok(text) = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.id)) else { continue };
        memory.processes += 1;
        memory.pss += parse_pss(&text).unwrap_or(0);
    }
    if memory.pss == 0 {
        return Err(Error::Usage(format!("cannot read the memory of process {root}: is it of another user?")));
    }
    Ok(memory)
}

/// Returns a process and its descendants.
fn processes(root: u32) -> Result<Vec<Process>, Error> {
    let entries = fs::read_dir("/proc").map_err(|error| Error::Io("listing the processes", error))?;
    let mut children: HashMap<u32, Vec<Process>> = HashMap::new();
    let mut found = Vec::new();
    for id in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        match parse_stat(id, &stat) {
            Some(process) if id == root => found.push(process),
            Some(process) => children.entry(process.parent).or_default().push(process),
            None => {}
        }
    }
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(children.remove(&process.id).unwrap_or_default());
        next += 1;
    }
    if found.is_empty() { Err(Error::Usage(format!("process {root} does not exist"))) } else { Ok(found) }
}

/// Parses the text of /proc/PID/stat (proc(5)).
fn parse_stat(id: u32, stat: &str) -> Option<Process> {
    // The program name, in parentheses, may contain anything. The fields after it begin with the state and the parent; utime,
    // stime, cutime and cstime are fields 14 to 17, counted from 1 with the name as field 2.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let ticks = fields.skip(9).take(4).map(|ticks| ticks.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Process { id, parent, ticks })
}

/// Parses the text of /proc/PID/smaps_rollup.
fn parse_pss(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn parses_the_files_of_a_process() {
        let stat = "42 (a) b) (c) S 1 42 42 0 -1 4194560 500 0 0 0 150 50 20 3 20 0 1 0 100";
        assert_eq!(parse_stat(42, stat), Some(Process { id: 42, parent: 1, ticks: 223 }));
        assert_eq!(parse_stat(42, "42 (a) S 1 42"), Some(Process { id: 42, parent: 1, ticks: 0 }));
        assert_eq!(parse_stat(42, ""), None);
        assert_eq!(
            parse_pss("55e-7ff ---p 0 00:00 0 [rollup]\nRss:     900 kB\nPss:     120 kB\nPss_Anon: 7 kB\n"),
            Some(122_880)
        );
    }

    #[test]
    fn children_count() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep is installed");
        let memory = memory(std::process::id()).expect("proc is mounted");
        child.kill().and_then(|()| child.wait()).expect("a child");
        assert!(memory.processes >= 2 && memory.pss > 0, "{memory:?}");
        cpu_time(std::process::id()).expect("proc is mounted");
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        assert!(cpu_time(u32::MAX).is_err() && memory(u32::MAX).is_err());
    }
}
