//! Writes every file uncompressed and compressed. Results of earlier builds are reused, because the best compression is
//! slow.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::files::File;

/// The best quality.
const BROTLI_QUALITY: i32 = 11;
/// 4 MiB, more than the size of any file.
const BROTLI_WINDOW_BITS: i32 = 22;
/// The best level.
const GZIP_LEVEL: u32 = 9;

/// Returns a hash of the paths and contents of all files.
pub(crate) fn hash_files(files: &[File]) -> String {
    let mut all = Sha256::new();
    for File { path, content, .. } in files {
        all.update(Sha256::digest(path));
        all.update(Sha256::digest(content));
    }
    hexadecimal(&all.finalize()[..6])
}

/// An encoded form of a file.
pub(crate) struct EncodedFile {
    /// The content coding.
    pub(crate) coding: Coding,
    /// The name of the packed file. It is unique for the content and the coding.
    pub(crate) name: String,
    length: usize,
}

/// A content coding.
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

    /// Returns the content as it is, and the forms in these codings that are smaller, the smallest first.
    pub(crate) fn pack(
        &mut self,
        content: &[u8],
        codings: &[Coding],
    ) -> Result<(EncodedFile, Vec<EncodedFile>), String> {
        let hash = hexadecimal(&Sha256::digest(content)[..8]);
        let plain = self.encode(&hash, Coding::Identity, content)?;
        let forms: Result<Vec<_>, _> = codings.iter().map(|coding| self.encode(&hash, *coding, content)).collect();
        let mut compressed = forms?;
        compressed.retain(|file| file.length < plain.length);
        compressed.sort_by_key(|file| file.length);
        Ok((plain, compressed))
    }

    /// Removes the files of earlier builds that are not used any more.
    pub(crate) fn finish(self) -> Result<(), String> {
        let to_error = |error| format!("{}: {error}", self.folder.display());
        for entry in std::fs::read_dir(&self.folder).map_err(to_error)? {
            let entry = entry.map_err(to_error)?;
            if !entry.file_name().to_str().is_some_and(|name| self.used.contains(name)) {
                std::fs::remove_file(entry.path()).map_err(to_error)?;
            }
        }
        Ok(())
    }

    /// Writes the file with the content in this coding if it does not exist.
    fn encode(&mut self, hash: &str, coding: Coding, content: &[u8]) -> Result<EncodedFile, String> {
        let name = format!("{hash}.{}", coding.extension());
        self.used.insert(name.clone());
        let path = self.folder.join(&name);
        let to_error = |error| format!("{}: {error}", path.display());
        if let Ok(packed) = std::fs::read(&path) {
            return Ok(EncodedFile { coding, name, length: packed.len() });
        }
        let packed = coding.encode(content).map_err(to_error)?;
        // Renamed when complete, so that an interrupted build leaves no partial file under this name.
        let unfinished = self.folder.join("unfinished");
        std::fs::write(&unfinished, &packed).map_err(to_error)?;
        std::fs::rename(&unfinished, &path).map_err(to_error)?;
        Ok(EncodedFile { coding, name, length: packed.len() })
    }
}

impl Coding {
    /// Returns an extension with everything that the packed bytes depend on, except the content.
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
                // The header of this encoder contains no file name and no time.
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(content)?;
                encoder.finish()
            }
            Self::Identity => Ok(content.to_vec()),
        }
    }
}

/// Returns the bytes in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
