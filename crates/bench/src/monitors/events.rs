//! The client side of Server-Sent Events (HTML standard, section 9.2), as far as monitors need it: parses the lines of
//! an event stream from a response that may be chunked. Does no I/O.

use memchr::memchr;

use crate::error::Error;
use crate::http::{ChunkDecoder, Framing};

/// The maximum length of a line. A summary is a few hundred bytes.
const MAX_LINE_BYTES: usize = 1 << 20;

/// An event stream.
pub(super) struct EventStream {
    /// The state of the chunk decoder, if the response is chunked.
    chunks: Option<ChunkDecoder>,
    /// Decoded content; everything before `consumed` has been returned.
    text: Vec<u8>,
    consumed: usize,
    /// The id of the event that is being received.
    id: Option<String>,
    /// The id of the last complete event.
    last_id: Option<String>,
}

impl EventStream {
    /// Creates a parser for the body of a response.
    pub(super) fn new(framing: Framing) -> Self {
        let chunks = (framing == Framing::Chunked).then(ChunkDecoder::default);
        Self { chunks, text: Vec::new(), consumed: 0, id: None, last_id: None }
    }

    /// Adds bytes of the body.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.text.drain(..self.consumed);
        self.consumed = 0;
        if self.text.len() > MAX_LINE_BYTES {
            return Err(Error::Protocol("event too long"));
        }
        match &mut self.chunks {
            Some(chunks) => chunks.decode(bytes, &mut self.text)?,
            None => self.text.extend_from_slice(bytes),
        }
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

    /// Returns whether the response has ended with its last chunk.
    pub(super) fn is_finished(&self) -> bool {
        self.chunks.as_ref().is_some_and(ChunkDecoder::is_finished)
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

    /// Returns the data of all events, the last id and whether the stream ended, if it arrives in pieces of this size.
    fn parse(body: &str, framing: Framing, piece: usize) -> (Vec<String>, Option<String>, bool) {
        let mut stream = EventStream::new(framing);
        let mut data = Vec::new();
        for piece in body.as_bytes().chunks(piece) {
            stream.feed(piece).expect("a valid stream");
            while let Some(line) = stream.next_data() {
                data.push(String::from_utf8_lossy(line).trim().to_owned());
            }
        }
        (data, stream.last_id().map(str::to_owned), stream.is_finished())
    }

    #[test]
    fn parses_events_in_pieces_of_any_size() {
        let chunks = EVENTS.as_bytes().chunks(13).map(|chunk| String::from_utf8_lossy(chunk));
        let chunked = chunks.map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect::<Vec<_>>().concat();
        for piece in [1, 2, 3, 7, 1000] {
            for (body, framing) in [(EVENTS, Framing::UntilClose), (&chunked, Framing::Chunked)] {
                let (data, last_id, _) = parse(body, framing, piece);
                assert_eq!(data, ["one", "two", "three", "four"], "in pieces of {piece}");
                assert_eq!(last_id.as_deref(), Some("8"), "event 9 has not ended");
            }
        }
    }

    #[test]
    fn last_chunk_ends_the_stream() {
        assert!(!parse("5\r\ndata:\r\n", Framing::Chunked, 3).2);
        assert!(parse("5\r\ndata:\r\n0\r\n\r\n", Framing::Chunked, 3).2);
    }

    #[test]
    fn rejects_invalid_chunks() {
        assert!(EventStream::new(Framing::Chunked).feed(b"zz\r\n").is_err());
        assert!(EventStream::new(Framing::Chunked).feed(&[b'1'; 300]).is_err());
    }
}
