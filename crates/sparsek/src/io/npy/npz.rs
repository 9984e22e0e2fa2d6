use std::{
    fs::File,
    io::{Read, Seek},
};

use super::{array::Npy, header::Header, zip::Archive};

pub struct Npz<R: Read + Seek = File> {
    archive: Archive<R>,
}

impl<R: Read + Seek> Npz<R> {
    pub fn new(file: R) -> Result<Self, String> {
        let archive = Archive::open(file)?;
        Ok(Self { archive })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.archive.contains(&member(name))
    }

    pub fn header(&mut self, name: &str) -> Result<Header, String> {
        self.read(name, |array| Ok(array.header().clone()))
    }

    pub fn read<T>(
        &mut self,
        name: &str,
        convert: impl FnOnce(Npy<&mut dyn Read>) -> Result<T, String>,
    ) -> Result<T, String> {
        let opened = self.archive.member(&member(name));
        let read = opened.and_then(|(mut bytes, size)| {
            Npy::open(&mut bytes as &mut dyn Read, size).and_then(convert)
        });
        read.map_err(|reason| format!("array {name}: {reason}"))
    }
}

fn member(name: &str) -> String {
    format!("{name}.npy")
}
