//! NumPy's npy and npz files, of any width, byte order and memory order.
//!
//! Headers are checked against the bytes that follow and against [`memory`](crate::io::memory)
//! before values are read. Errors are one line without the file name.

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
