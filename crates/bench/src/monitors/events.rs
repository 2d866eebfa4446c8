//! The client side of Server-Sent Events (HTML standard, section 9.2), as far as monitors need it: parses the lines of
//! an event stream. Does no I/O.

use memchr::memchr;

use crate::error::Error;

/// The maximum length of a line. A summary is a few hundred bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

/// An event stream.
#[derive(Default)]
pub(super) struct EventStream {
    /// Received text; everything before `consumed` has been returned.
    text: Vec<u8>,
    consumed: usize,
    /// The id of the event that is being received.
    id: Option<String>,
    /// The id of the last complete event.
    last_id: Option<String>,
}

impl EventStream {
    /// Adds a part of the body.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.text.drain(..self.consumed);
        self.consumed = 0;
        if self.text.len() > MAX_LINE_BYTES {
            return Err(Error::Protocol("event too long"));
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the data of the next event, or of one line of it.
    pub(super) fn next_data(&mut self) -> Option<&[u8]> {
        loop {
            let start = self.consumed;
            let end = start + memchr(b'\n', &self.text[start..])?;
            self.consumed = end + 1;
            let line = self.text[start..end].trim_ascii_end();
            if line.is_empty() {
                // Only an empty line completes an event.
                self.last_id = self.id.take().or(self.last_id.take());
            } else if let Some(id) = line.strip_prefix(b"id:") {
                self.id = Some(String::from_utf8_lossy(id.trim_ascii_start()).into_owned());
            } else if line.starts_with(b"data:") {
                return Some(&self.text[start + b"data:".len()..end]);
            }
        }
    }

    /// Returns the id of the last complete event, from which the stream can be resumed.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str =
        ": hello\n\nid: 7\nevent: stored\ndata: one\n\nid:8\r\ndata:two\r\n\r\ndata: three\n\nid: 9\ndata: four\n";

    #[test]
    fn parses_events_in_pieces_of_any_size() {
        for piece_length in [1, 2, 3, 7, 1000] {
            let mut stream = EventStream::default();
            let mut data = Vec::new();
            for piece in EVENTS.as_bytes().chunks(piece_length) {
                stream.feed(piece).expect("a valid stream");
                while let Some(line) = stream.next_data() {
                    data.push(String::from_utf8_lossy(line).trim().to_owned());
                }
            }
            assert_eq!(data, ["one", "two", "three", "four"], "in pieces of {piece_length}");
            assert_eq!(stream.last_id(), Some("8"), "event 9 has not ended");
        }
    }
}
