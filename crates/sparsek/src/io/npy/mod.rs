//! NumPy's npy and npz files.
//!
//! Checks headers against the bytes that follow, then against [`memory`](crate::io::memory), and
//! only then reads values, of any width, byte order and memory order. Errors are one line without
//! the file name.

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
