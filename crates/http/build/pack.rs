//! Packing: every file as it is and, where that makes it smaller, compressed. What was packed in an earlier build is taken
//! from there, because the best compression takes its time.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::files::File;

/// The best that there is.
const BROTLI_QUALITY: i32 = 11;
/// 4 MiB, more than any file has.
const BROTLI_WINDOW_BITS: i32 = 22;
/// The best that there is.
const GZIP_LEVEL: u32 = 9;

/// A hash over all files, their paths and their borders.
pub(crate) fn hash_of(files: &[File]) -> String {
    let mut all = Sha256::new();
    for File { path, content, .. } in files {
        all.update(Sha256::digest(path));
        all.update(Sha256::digest(content));
    }
    hexadecimal(&all.finalize()[..6])
}

/// One way to send a file.
pub(crate) struct Form {
    /// Its `Content-Encoding`.
    pub(crate) coding: Coding,
    /// The name of the file that holds it; no other form of any content has it.
    pub(crate) name: String,
    length: usize,
}

/// How a file is encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coding {
    Brotli,
    Gzip,
    Identity,
}

/// Packs files into a folder.
pub(crate) struct Packer {
    folder: PathBuf,
    used: BTreeSet<String>,
}

impl Packer {
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), used: BTreeSet::new() })
    }

    /// A content as it is, and all forms of it that are smaller, the smallest first.
    pub(crate) fn pack(&mut self, content: &[u8]) -> Result<(Form, Vec<Form>), String> {
        let hash = hexadecimal(&Sha256::digest(content)[..8]);
        let plain = self.form(&hash, Coding::Identity, content)?;
        let mut smaller = vec![self.form(&hash, Coding::Brotli, content)?, self.form(&hash, Coding::Gzip, content)?];
        smaller.retain(|form| form.length < plain.length);
        smaller.sort_by_key(|form| form.length);
        Ok((plain, smaller))
    }

    /// Forgets what earlier builds have left.
    pub(crate) fn finish(self) -> Result<(), String> {
        let problem = |error| format!("{}: {error}", self.folder.display());
        for entry in std::fs::read_dir(&self.folder).map_err(problem)? {
            let entry = entry.map_err(problem)?;
            if !entry.file_name().to_str().is_some_and(|name| self.used.contains(name)) {
                std::fs::remove_file(entry.path()).map_err(problem)?;
            }
        }
        Ok(())
    }

    /// Makes sure that there is a file with the content in this coding.
    fn form(&mut self, hash: &str, coding: Coding, content: &[u8]) -> Result<Form, String> {
        let name = format!("{hash}.{}", coding.extension());
        self.used.insert(name.clone());
        let path = self.folder.join(&name);
        let problem = |error| format!("{}: {error}", path.display());
        if let Ok(packed) = std::fs::read(&path) {
            return Ok(Form { coding, name, length: packed.len() });
        }
        let packed = coding.encode(content).map_err(problem)?;
        // A build that is interrupted leaves no half file under the name.
        let unfinished = self.folder.join("unfinished");
        std::fs::write(&unfinished, &packed).map_err(problem)?;
        std::fs::rename(&unfinished, &path).map_err(problem)?;
        Ok(Form { coding, name, length: packed.len() })
    }
}

impl Coding {
    /// Says all that the packed bytes depend on beside the content.
    fn extension(self) -> String {
        match self {
            Self::Brotli => format!("br-{BROTLI_QUALITY}-{BROTLI_WINDOW_BITS}"),
            Self::Gzip => format!("gz-{GZIP_LEVEL}"),
            Self::Identity => "raw".to_owned(),
        }
    }

    fn encode(self, mut content: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Brotli => {
                let params = BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: BROTLI_WINDOW_BITS,
                    size_hint: content.len(),
                    ..BrotliEncoderParams::default()
                };
                let mut packed = Vec::new();
                brotli::BrotliCompress(&mut content, &mut packed, &params)?;
                Ok(packed)
            }
            Self::Gzip => {
                // The header of this encoder names no file and no time.
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(content)?;
                encoder.finish()
            }
            Self::Identity => Ok(content.to_vec()),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
