//! Arrays of NumPy's npy and npz files.
//!
//! A header is first checked against the bytes that follow, then against
//! [`memory`](crate::io::memory); only then are values read. Numbers of any width, byte order and
//! memory order convert to the requested type. Errors are one line without the file name.
//!
//! - [`Header`]: shape, dtype and offset of an npy array.
//! - [`Npy`]: an array in a reader.
//! - [`Npz`]: a file of arrays.

mod array;
mod header;
mod npz;
mod zip;

pub use array::Npy;
pub use header::{Dtype, Header, MAX_HEADER};
pub use npz::Npz;

#[cfg(test)]
pub(super) mod container;
#[cfg(test)]
pub(super) mod tests;
