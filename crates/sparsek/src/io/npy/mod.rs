//! Arrays of NumPy's npy and npz files.
//!
//! Files declare sizes. A header is read first and checked against the bytes that follow it, then
//! the request is checked against [`memory`](crate::io::memory), and only then are values read.
//! Memory follows the bytes that are there.
//!
//! Numbers of every width, in both byte orders and in C or Fortran order, become what the caller
//! asks for. Errors are one line without the name of the file; the caller adds it.
//!
//! - [`Header`]: what an npy file declares, and where its elements start.
//! - [`Npy`]: an array in a reader.
//! - [`Npz`]: a file of several arrays.

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
