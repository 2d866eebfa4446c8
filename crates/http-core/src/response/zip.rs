//! Writes ZIP archives without compression, in the subset of the format that every program reads: APPNOTE.TXT sections
//! 4.3.7 (local header), 4.3.12 (central directory) and 4.3.16 (its end). Names are in UTF-8.

use bytes::BufMut as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DIRECTORY_HEADER: u32 = 0x0201_4b50;
const END_OF_DIRECTORY: u32 = 0x0605_4b50;
/// Version 2.0 of the format, which all programs support.
const VERSION: u16 = 20;
/// The flag for names in UTF-8 (APPNOTE.TXT section 4.4.4, bit 11).
const UTF8_NAMES: u16 = 1 << 11;
/// The length of the fixed part of a local header, of an entry of the directory, and of the end of the directory.
const HEADER_BYTES: usize = 30 + 46;
const END_BYTES: usize = 22;

/// An archive that is being written.
pub struct ZipWriter {
    out: Vec<u8>,
    directory: Vec<u8>,
    files: u16,
    /// The date and the time of all files.
    modified: [u16; 2],
}

/// The archive would exceed the format: 4 GiB, or 65,535 files.
#[derive(Debug, PartialEq, Eq)]
pub struct ArchiveTooLarge;

impl ZipWriter {
    /// Returns the size of an archive of files with names and contents of these sizes.
    pub fn archive_size(sizes: impl IntoIterator<Item = (usize, usize)>) -> usize {
        sizes.into_iter().map(|(name, content)| HEADER_BYTES + 2 * name + content).sum::<usize>() + END_BYTES
    }

    /// Creates an empty archive, with memory for an archive of this size. All files get this modification time.
    pub fn new(modified: Timestamp, size: usize) -> Self {
        Self { out: Vec::with_capacity(size), directory: Vec::new(), files: 0, modified: dos_date_and_time(modified) }
    }

    /// Adds a file. The caller makes sure that the name is safe and not in the archive yet.
    pub fn add(&mut self, name: &str, content: &[u8]) -> Result<(), ArchiveTooLarge> {
        let offset = offset(self.out.len())?;
        let size = u32::try_from(content.len()).map_err(|_| ArchiveTooLarge)?;
        let name_length = u16::try_from(name.len()).map_err(|_| ArchiveTooLarge)?;
        self.files = self.files.checked_add(1).ok_or(ArchiveTooLarge)?;
        let [date, time] = self.modified;
        let mut common = Vec::with_capacity(26);
        // The method 0 is no compression, so both sizes are the same.
        for number in [VERSION, UTF8_NAMES, 0, time, date] {
            common.put_u16_le(number);
        }
        for number in [crc32fast::hash(content), size, size] {
            common.put_u32_le(number);
        }
        common.put_u16_le(name_length);
        // There are no extra fields.
        common.put_u16_le(0);

        self.out.put_u32_le(LOCAL_HEADER);
        self.out.extend_from_slice(&common);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(content);

        self.directory.put_u32_le(DIRECTORY_HEADER);
        self.directory.put_u16_le(VERSION);
        self.directory.extend_from_slice(&common);
        // No comment, the first disk, no attributes.
        for number in [0; 5] {
            self.directory.put_u16_le(number);
        }
        self.directory.put_u32_le(offset);
        self.directory.extend_from_slice(name.as_bytes());
        Ok(())
    }

    /// Returns the complete archive.
    pub fn finish(mut self) -> Result<Vec<u8>, ArchiveTooLarge> {
        let start = offset(self.out.len())?;
        let length = offset(self.directory.len())?;
        self.out.append(&mut self.directory);
        self.out.put_u32_le(END_OF_DIRECTORY);
        // One disk.
        for number in [0, 0, self.files, self.files] {
            self.out.put_u16_le(number);
        }
        self.out.put_u32_le(length);
        self.out.put_u32_le(start);
        // No comment.
        self.out.put_u16_le(0);
        Ok(self.out)
    }
}

fn offset(bytes: usize) -> Result<u32, ArchiveTooLarge> {
    u32::try_from(bytes).map_err(|_| ArchiveTooLarge)
}

/// Returns the date and the time of MS-DOS, in UTC. Years before 1980 and after 2107 are not possible.
fn dos_date_and_time(time: Timestamp) -> [u16; 2] {
    let time = time.to_zoned(TimeZone::UTC);
    let number = |value: i8| u16::from(value.unsigned_abs());
    match u16::try_from(time.year() - 1980) {
        Ok(year @ 0..=127) => [
            year << 9 | number(time.month()) << 5 | number(time.day()),
            number(time.hour()) << 11 | number(time.minute()) << 5 | (number(time.second()) / 2),
        ],
        _ => [1 << 5 | 1, 0],
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use restante_testdir::{TestDir, skip};

    use super::*;

    const FILES: [(&str, &[u8]); 4] =
        [("a.txt", b"abc"), ("empty", b""), ("Grüße (2).pdf", b"\0\x01\xff"), ("PK", b"PK\x05\x06PK\x01\x02")];

    fn archive() -> Vec<u8> {
        let modified = "2026-11-14T23:42:51Z".parse().unwrap();
        let size = ZipWriter::archive_size(FILES.map(|(name, content)| (name.len(), content.len())));
        let mut zip = ZipWriter::new(modified, size);
        for (name, content) in FILES {
            zip.add(name, content).unwrap();
        }
        let archive = zip.finish().unwrap();
        assert_eq!(archive.len(), size);
        archive
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    #[test]
    fn exact_bytes_of_one_file() {
        let mut zip = ZipWriter::new("2026-11-14T23:42:51Z".parse().unwrap(), 0);
        zip.add("a", b"abc").unwrap();
        let common = "1400 0008 0000 59bd 6e5d c2412435 03000000 03000000 0100 0000";
        let expected = format!(
            "504b0304 {common} 61 616263 504b0102 1400 {common} 0000 0000 0000 0000 0000 00000000 61 \
             504b0506 0000 0000 0100 0100 2f000000 22000000 0000"
        );
        assert_eq!(hex(&zip.finish().unwrap()), expected.replace(' ', ""));
    }

    #[test]
    fn python_reads_the_archive() {
        let script = "import sys, zipfile\n\
                      with zipfile.ZipFile(sys.argv[1]) as z:\n  assert z.testzip() is None\n  \
                      for i in z.infolist(): print(i.filename.encode().hex(), z.read(i).hex(), *i.date_time)";
        let dir = TestDir::new();
        let path = dir.path().join("a.zip");
        std::fs::write(&path, archive()).unwrap();
        let Ok(output) = Command::new("python3").arg("-c").arg(script).arg(&path).output() else {
            return skip("REQUIRE_CLIENTS", "there is no python3");
        };
        let line =
            |(name, content): (&str, &[u8])| format!("{} {} 2026 11 14 23 42 50\n", hex(name.as_bytes()), hex(content));
        assert_eq!(
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
            (FILES.map(line).concat().into(), "".into())
        );
    }

    #[test]
    fn years_that_the_format_cannot_express() {
        for time in ["1979-12-31T00:00:00Z", "2108-01-01T00:00:00Z"] {
            assert_eq!(dos_date_and_time(time.parse().unwrap()), [33, 0], "{time}");
        }
        assert_eq!(dos_date_and_time("1980-01-01T00:00:00Z".parse().unwrap()), [33, 0]);
        assert_eq!(dos_date_and_time("2107-12-31T23:59:59Z".parse().unwrap()), [0xff9f, 0xbf7d]);
    }

    #[test]
    fn too_many_files_and_too_long_names_are_refused() {
        let mut zip = ZipWriter::new(Timestamp::UNIX_EPOCH, 0);
        assert_eq!(zip.add(&"x".repeat(1 << 16), b""), Err(ArchiveTooLarge));
        for number in 0..u16::MAX {
            zip.add(&number.to_string(), b"").unwrap();
        }
        assert_eq!(zip.add("one more", b""), Err(ArchiveTooLarge));
    }
}
