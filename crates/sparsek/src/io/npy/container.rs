use std::io::Write;

use flate2::{Compression, Crc, write::DeflateEncoder};

#[derive(Clone, Debug)]
pub struct Member {
    pub name: Vec<u8>,
    pub bytes: Vec<u8>,
    /// 0 stored, 8 deflated.
    pub method: u16,
    /// Bit 0: encrypted.
    pub flags: u16,
    pub size: u64,
    /// Of uncompressed bytes.
    pub checksum: u32,
    /// 64-bit sizes.
    pub large: bool,
}

impl Member {
    pub fn stored(name: &str, bytes: Vec<u8>) -> Self {
        let mut crc = Crc::new();
        crc.update(&bytes);
        Self {
            name: format!("{name}.npy").into_bytes(),
            size: bytes.len() as u64,
            checksum: crc.sum(),
            bytes,
            method: 0,
            flags: 0,
            large: false,
        }
    }

    pub fn deflated(name: &str, bytes: Vec<u8>) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&bytes).unwrap();
        let packed = encoder.finish().unwrap();
        Self { bytes: packed, method: 8, ..Self::stored(name, bytes) }
    }

    fn header(&self, start: usize, directory: bool) -> Vec<u8> {
        let packed = self.bytes.len() as u64;
        let mut extra = Vec::new();
        if self.large {
            extra.extend([1, 0, 24, 0]);
            for size in [self.size, packed, start as u64] {
                extra.extend(size.to_le_bytes());
            }
        }
        let short = |size: u64| if self.large { u32::MAX } else { size as u32 };
        let mut header = match directory {
            true => b"PK\x01\x02\x14\0\x14\0".to_vec(),
            false => b"PK\x03\x04\x14\0".to_vec(),
        };
        for short in [self.flags, self.method, 0, 33] {
            header.extend(short.to_le_bytes());
        }
        for long in [self.checksum, short(packed), short(self.size)] {
            header.extend(long.to_le_bytes());
        }
        for length in [self.name.len(), extra.len()] {
            header.extend((length as u16).to_le_bytes());
        }
        if directory {
            header.extend([0; 10]);
            header.extend(short(start as u64).to_le_bytes());
        }
        header.extend(&self.name);
        header.extend(extra);
        header
    }
}

pub fn container(members: &[Member]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        directory.extend(member.header(file.len(), true));
        let header = member.header(file.len(), false);
        file.extend(header);
        file.extend(&member.bytes);
    }
    let (start, length) = (file.len(), directory.len());
    file.extend(directory);
    let large = members.iter().any(|member| member.large);
    if large {
        let record = file.len() as u64;
        file.extend(b"PK\x06\x06");
        file.extend(44u64.to_le_bytes());
        file.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [members.len(), members.len(), length, start] {
            file.extend((number as u64).to_le_bytes());
        }
        file.extend(b"PK\x06\x07\0\0\0\0");
        file.extend(record.to_le_bytes());
        file.extend([1, 0, 0, 0]);
    }
    file.extend(b"PK\x05\x06\0\0\0\0");
    for _ in 0..2 {
        let count = if large { u16::MAX } else { members.len() as u16 };
        file.extend(count.to_le_bytes());
    }
    for number in [length, start] {
        let number = if large { u32::MAX } else { number as u32 };
        file.extend(number.to_le_bytes());
    }
    file.extend([0, 0]);
    file
}
