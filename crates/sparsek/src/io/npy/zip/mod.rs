//! Stored or deflated, unencrypted. Refuses surrounding bytes, repeated names, impossible sizes.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use zip::{
    CompressionMethod, ZipArchive,
    read::{ArchiveOffset, Config},
    result::ZipError,
};

use super::header::read_exact;
use crate::io::text::excerpt;

/// Deflate expands no further.
const MAX_EXPANSION: u64 = 1032;

pub(super) struct Archive<R> {
    archive: ZipArchive<BufReader<R>>,
}

impl<R: Read + Seek> Archive<R> {
    pub fn open(reader: R) -> Result<Self, String> {
        let mut reader = BufReader::new(reader);
        let seek = |error: io::Error| excerpt(&error.to_string());
        let size = reader.seek(SeekFrom::End(0)).map_err(seek)?;
        reader.seek(SeekFrom::Start(0)).map_err(seek)?;
        let mut magic = [0; 4];
        read_exact(&mut reader, &mut magic[..size.min(4) as usize])?;
        match &magic {
            b"PK\x03\x04" => {}
            b"PK\x05\x06" => return Err("an npz file without arrays".to_string()),
            _ => return Err("not an npz file".to_string()),
        }
        check_end(&mut reader, size)?;
        // Nothing precedes the members.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let archive = ZipArchive::with_config(config, reader).map_err(|error| broken(&error))?;
        match archive.has_duplicate_names() {
            true => Err("an array is there twice".to_string()),
            false => Ok(Self { archive }),
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.archive.index_for_name(name).is_some()
    }

    /// Opens a member; its end verifies the checksum.
    pub fn member(&mut self, name: &str) -> Result<(impl Read + use<'_, R>, u64), String> {
        let member = self.archive.by_name(name).map_err(|error| match error {
            ZipError::FileNotFound => "it is missing from the file".to_string(),
            other => broken(&other),
        })?;
        let (packed, size) = (member.compressed_size(), member.size());
        match member.compression() {
            CompressionMethod::Stored if packed != size => {
                Err(format!("{packed} bytes are there, {size} are declared"))
            }
            CompressionMethod::Deflated if size > packed.saturating_mul(MAX_EXPANSION) => {
                Err(format!("declares {size} bytes, {packed} compressed bytes cannot hold them"))
            }
            CompressionMethod::Stored | CompressionMethod::Deflated => Ok((member, size)),
            other => Err(unknown(&other.to_string())),
        }
    }
}

/// Of two containers in one file, programs read different ones.
fn check_end<R: Read + Seek>(reader: &mut R, size: u64) -> Result<(), String> {
    const RECORD: usize = 22;
    let length = size.min(RECORD as u64 + u64::from(u16::MAX));
    let seek = reader.seek(SeekFrom::Start(size - length));
    seek.map_err(|error| excerpt(&error.to_string()))?;
    let mut tail = vec![0; length as usize];
    read_exact(reader, &mut tail)?;
    let record = |at: usize| {
        let record = tail[at..].strip_prefix(b"PK\x05\x06")?;
        let comment = record.get(16..18)?;
        let comment = u16::from_le_bytes([comment[0], comment[1]]);
        (at + RECORD + usize::from(comment) == tail.len()).then_some((at, record))
    };
    let found = (0..tail.len()).rev().find_map(record);
    let (at, record) = found.ok_or("a broken zip archive: its end is missing")?;
    let number = |at: usize| {
        let bytes = record[at..at + 4].iter().rev();
        bytes.fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
    };
    let (listed, start) = (number(8), number(12));
    // Else the zip64 record holds them.
    let large = record[6..8] == [0xff; 2] || [listed, start].contains(&u64::from(u32::MAX));
    match large || start + listed + (tail.len() - at) as u64 == size {
        true => Ok(()),
        false => Err("the list of arrays is not where it should be".to_string()),
    }
}

fn unknown(compression: &str) -> String {
    format!(
        "compression {compression}; numpy's savez() and savez_compressed() write the two that are \
         read"
    )
}

fn broken(error: &ZipError) -> String {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => "it is encrypted".to_string(),
        ZipError::CompressionMethodNotSupported(method) => unknown(&format!("method {method}")),
        ZipError::InvalidArchive(reason) => format!("a broken zip archive: {}", excerpt(reason)),
        other => excerpt(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
