//! Files of several arrays.

use std::{
    fs::File,
    io::{Read, Seek},
};

use super::{Header, Npy, zip::Archive};

/// An npz file.
pub struct Npz<R: Read + Seek = File> {
    archive: Archive<R>,
}

impl<R: Read + Seek> Npz<R> {
    /// Reads the list of the arrays in a file.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with the container.
    pub fn new(file: R) -> Result<Self, String> {
        let archive = Archive::open(file)?;
        Ok(Self { archive })
    }

    /// Whether there is an array of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.archive.contains(&member(name))
    }

    /// What an array declares. Reads its header only.
    ///
    /// # Errors
    ///
    /// One line that names the array: it is missing or its header is broken.
    pub fn header(&mut self, name: &str) -> Result<Header, String> {
        self.read(name, |array| Ok(array.header().clone()))
    }

    /// What `convert` makes of an array.
    ///
    /// # Errors
    ///
    /// One line that names the array: it is missing, it cannot have the size that it declares, or
    /// `convert` fails.
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

/// The file in the container that holds an array.
fn member(name: &str) -> String {
    format!("{name}.npy")
}
