//! The steps of a run.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::time::sleep;

use super::run::{MAX_PAGE_MS, MAX_PAUSE_MS, MAX_SEARCH_MS, MAX_START_MS, POLL_INTERVAL, Run, megabytes};
use crate::Verdict;
use crate::error::Error;
use crate::http::Client;
use crate::measure::{Latencies, Sample, millis, ratio, to_f64};
use crate::message::{Envelope, mailbox_name};
use crate::rest;
use crate::search;
use crate::server_process::ServerProcess;
use crate::smtp::{CommandMode, Sender};
use crate::words::QUERY_KINDS;

const PREFIX: &str = "large";
/// The file with all exported messages.
const BACK_UP: &str = "back-up.mbox";
/// The number of messages after which progress is printed.
const PROGRESS_MESSAGES: usize = 250_000;
/// The number of mailboxes after which progress is printed.
const PROGRESS_MAILBOXES: usize = 5_000;
/// Of five mailboxes, how many are deleted, so that less than half of every segment is in use.
const PURGED_OF_FIVE: usize = 3;
/// The maximum time without progress of the retention.
const EXPIRY_TIMEOUT: Duration = Duration::from_mins(10);

impl Run<'_> {
    /// Stores all messages. Returns when those that the retention will delete were stored.
    pub(super) async fn fill(&mut self, server: &ServerProcess) -> Result<Instant, Error> {
        let (messages, expired) = (self.options.messages, self.options.expired);
        let (mailboxes, connections) = (self.options.mailboxes, self.options.connections);
        let load = search::build_load(self.addresses.clone(), &self.generator, PREFIX, mailboxes, connections);
        let start = Instant::now();
        let mut oldest_stored = start;
        let mut sent = 0;
        while sent < messages {
            // A part ends where the expired messages end.
            let part_end = if sent < expired { expired } else { messages };
            let end = part_end.min(sent + PROGRESS_MESSAGES);
            load.send_all(sent..end).await?;
            sent = end;
            if sent == expired {
                oldest_stored = Instant::now();
            }
            let (seconds, memory) = (start.elapsed().as_secs_f64(), megabytes(Sample::read(server.id())?.resident));
            eprintln!("restante-bench: {sent} messages in {seconds:.0} s, memory of the server {memory:.0} MB");
        }
        let seconds = start.elapsed().as_secs_f64();
        self.figure("fill", "messages", to_f64(messages), "", None);
        self.figure("fill", "duration", seconds, "s", None);
        self.figure("fill", "rate", ratio(to_f64(messages), seconds), "per s", None);
        search::wait_for_index(&mut self.client()).await?;
        self.figure("fill", "until all are indexed", start.elapsed().as_secs_f64() - seconds, "s", None);
        let cpu = Sample::read(server.id())?.cpu_seconds;
        self.figure("fill", "CPU per message", ratio(cpu * 1e6, to_f64(messages)), "us", None);
        self.report_memory("fill", server)?;
        self.report_sizes("fill");
        let index = file_bytes(&self.path("data/search.db"));
        self.figure("fill", "size of the search index", megabytes(index), "MB", None);
        Ok(oldest_stored)
    }

    /// Returns the size of the segments and of the database.
    fn data_bytes(&self) -> (u64, u64) {
        (directory_bytes(&self.path("data/segments")), file_bytes(&self.path("data/restante.db")))
    }

    fn report_sizes(&mut self, step: &'static str) {
        let (segments, database) = self.data_bytes();
        self.figure(step, "size of the segments", megabytes(segments), "MB", None);
        self.figure(step, "size of the database", megabytes(database), "MB", None);
    }

    /// Starts the server again: after SIGTERM, and after a kill.
    pub(super) async fn restart(&mut self, server: ServerProcess) -> Result<ServerProcess, Error> {
        let data = self.path("data");
        self.stop("fill", server)?;
        let (server, greeted) = self.start_on(&data, "0")?;
        self.figure("restart", "start to greeting", millis(greeted), "ms", Some(MAX_START_MS));
        self.report_first_delivery("first delivery").await?;
        // The index is complete, but it is not marked as complete, because it has changed since the start.
        search::wait_for_index(&mut self.client()).await?;
        // Dropping the server kills it.
        drop(server);
        let (server, greeted) = self.start_on(&data, "0")?;
        self.figure("restart", "start to greeting after a kill", millis(greeted), "ms", Some(MAX_START_MS));
        self.report_first_delivery("first delivery after a kill").await?;
        self.report_memory("restart", &server)?;
        let start = Instant::now();
        search::wait_for_index(&mut self.client()).await?;
        self.figure("restart", "until the index is verified after a kill", start.elapsed().as_secs_f64(), "s", None);
        self.stop("restart", server)?;
        self.start("0")
    }

    async fn report_first_delivery(&mut self, what: &str) -> Result<(), Error> {
        let start = Instant::now();
        self.deliver(&mut Sender::new(&self.addresses)).await?;
        self.figure("restart", what, millis(start.elapsed()), "ms", None);
        Ok(())
    }

    async fn deliver(&self, sender: &mut Sender) -> Result<(), Error> {
        let envelope = Envelope::to([PREFIX]);
        sender.send(&envelope, &self.generator.message(0), CommandMode::Pipelined).await
    }

    /// Requests lists and messages.
    pub(super) async fn list(&mut self) -> Result<(), Error> {
        const FIRST_PAGE: &str = "/api/v2/messages?limit=50";
        let mut client = self.client();
        let start = Instant::now();
        client.request("GET", FIRST_PAGE).await?;
        self.figure("list", "first request: first page of all", millis(start.elapsed()), "ms", None);
        let mut sender = Sender::new(&self.addresses);
        let mut first_page = Latencies::default();
        for _ in 0..self.options.operations {
            // A delivery makes the cached page outdated.
            self.deliver(&mut sender).await?;
            first_page.push(time_request(&mut client, FIRST_PAGE).await?);
        }
        self.latencies("list", "first page of all after a delivery", first_page, Some(MAX_PAGE_MS));

        let (mut mailbox, mut deep, mut message) = <(Latencies, Latencies, Latencies)>::default();
        for number in 0..self.options.operations {
            let name = mailbox_name(PREFIX, number * self.options.mailboxes / self.options.operations);
            let path = format!("/api/v1/mailbox/{name}?limit=50");
            mailbox.push(time_request(&mut client, &path).await?);
            let Some(entry) = client.get_json::<Vec<rest::ListEntry>>(&path).await?.into_iter().next() else {
                continue;
            };
            deep.push(time_request(&mut client, &format!("/api/v2/messages?limit=50&before={}", entry.id)).await?);
            message.push(time_request(&mut client, &rest::message_path(&name, &entry.id)).await?);
        }
        self.latencies("list", "first page of a mailbox", mailbox, Some(MAX_PAGE_MS));
        self.latencies("list", "other page of all", deep, Some(MAX_PAGE_MS));
        self.latencies("list", "one message", message, None);
        Ok(())
    }

    /// Searches for two words.
    pub(super) async fn search(&mut self) -> Result<(), Error> {
        let mut client = self.client();
        for kind in &QUERY_KINDS {
            let (messages, operations) = (self.options.messages, self.options.operations);
            let (latencies, _) = search::run_queries(&mut client, &self.generator, kind, messages, operations).await?;
            self.latencies("search", kind.name, latencies, Some(MAX_SEARCH_MS));
        }
        Ok(())
    }

    /// Delivers without other work.
    pub(super) async fn baseline(&mut self) -> Result<(), Error> {
        let stream = self.start_stream();
        sleep(Duration::from_secs(self.options.settle)).await;
        self.stop_stream("baseline", stream, None).await;
        Ok(())
    }

    /// Exports all messages while the server runs.
    pub(super) async fn back_up(&mut self, server: &ServerProcess) -> Result<(), Error> {
        let stream = self.start_stream();
        self.transfer("back-up", "export", "data", BACK_UP).await?;
        self.stop_stream("back-up", stream, None).await;
        self.figure("back-up", "size", megabytes(file_bytes(&self.path(BACK_UP))), "MB", None);
        self.report_memory("back-up", server)
    }

    /// Imports all messages into another data directory while the server runs.
    pub(super) async fn restore(&mut self, server: &ServerProcess) -> Result<(), Error> {
        let stream = self.start_stream();
        self.transfer("restore", "import", "restored", BACK_UP).await?;
        self.stop_stream("restore", stream, None).await;
        self.report_memory("restore", server)
    }

    /// Counts the restored messages, and deletes the back-up and the restored directory.
    pub(super) async fn check_restored(&mut self) -> Result<(), Error> {
        let restored = self.path("restored");
        let (server, greeted) = self.start_on(&restored, "0")?;
        self.figure("restore", "start to greeting", millis(greeted), "ms", Some(MAX_START_MS));
        let count = usage(&mut self.client()).await?.messages;
        self.figure("restore", "messages", to_f64(count), "", None);
        // The messages of the steady stream are added.
        if count < self.options.messages as u64 {
            eprintln!("restante-bench: {count} of {} messages were restored", self.options.messages);
            self.check(Verdict::Faulty);
        }
        drop(server);
        let removing = |error| Error::Io("removing the back-up", error);
        fs::remove_dir_all(&restored).map_err(removing)?;
        fs::remove_file(self.path(BACK_UP)).map_err(removing)
    }

    /// Starts the server with a retention period that deletes the oldest messages.
    pub(super) async fn expire(&mut self, oldest_stored: Instant) -> Result<ServerProcess, Error> {
        let seconds = oldest_stored.elapsed().as_secs().max(1);
        let server = self.start(&format!("{seconds}s"))?;
        let start = Instant::now();
        let stream = self.start_stream();
        let mut client = self.client();
        let (mut deleted, mut progress) = (0, start);
        while deleted < self.options.expired as u64 {
            sleep(POLL_INTERVAL).await;
            let now_deleted = deleted_messages(&mut client, "age").await?;
            if now_deleted > deleted {
                progress = Instant::now();
            } else if progress.elapsed() > EXPIRY_TIMEOUT {
                return Err(Error::Timeout);
            }
            deleted = now_deleted;
        }
        let elapsed = start.elapsed().as_secs_f64();
        self.stop_stream("expiry", stream, Some(MAX_PAUSE_MS)).await;
        self.figure("expiry", "deleted messages", to_f64(deleted), "", None);
        self.figure("expiry", "duration", elapsed, "s", None);
        Ok(server)
    }

    /// Deletes most mailboxes, so that the segments are compacted.
    pub(super) async fn compact(&mut self, server: &ServerProcess) -> Result<(), Error> {
        let mut client = self.client();
        let stream = self.start_stream();
        let start = Instant::now();
        for number in (0..self.options.mailboxes).filter(|number| number % 5 < PURGED_OF_FIVE) {
            rest::purge(&mut client, &mailbox_name(PREFIX, number)).await?;
            if number % PROGRESS_MAILBOXES == 0 {
                let (seconds, mailboxes) = (start.elapsed().as_secs_f64(), self.options.mailboxes);
                eprintln!("restante-bench: deleted mailboxes up to {number} of {mailboxes} in {seconds:.0} s");
            }
        }
        self.figure("compaction", "deletion of mailboxes", start.elapsed().as_secs_f64(), "s", None);
        let deleted = deleted_messages(&mut client, "request").await?;
        self.figure("compaction", "deleted messages", to_f64(deleted), "", None);
        // First the database becomes smaller, then the segments. Deliveries add messages to both.
        let settle = Duration::from_secs(self.options.settle);
        let (mut sizes, mut changed) = (self.data_bytes(), Instant::now());
        while changed.elapsed() < settle {
            sleep(POLL_INTERVAL).await;
            let now = self.data_bytes();
            if now.0 < sizes.0 || now.1 < sizes.1 {
                changed = Instant::now();
            }
            sizes = now;
        }
        self.figure("compaction", "duration", (changed - start).as_secs_f64(), "s", None);
        self.stop_stream("compaction", stream, None).await;
        self.report_sizes("compaction");
        self.report_memory("compaction", server)
    }
}

async fn time_request(client: &mut Client, path: &str) -> Result<Duration, Error> {
    let start = Instant::now();
    client.request("GET", path).await?;
    Ok(start.elapsed())
}

/// The number of messages.
#[derive(Deserialize)]
struct Usage {
    messages: u64,
}

async fn usage(client: &mut Client) -> Result<Usage, Error> {
    client.get_json("/api/v2/usage").await
}

/// Returns the number of messages that were deleted for this cause since the server was started.
async fn deleted_messages(client: &mut Client, cause: &str) -> Result<u64, Error> {
    let name = format!("restante_messages_deleted_total{{cause=\"{cause}\"}} ");
    let metrics = String::from_utf8_lossy(client.request("GET", "/metrics").await?);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok());
    value.ok_or(Error::Protocol("a metric is missing"))
}

fn file_bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns the total length of the files in a directory. A file may be removed meanwhile.
fn directory_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}
