//! NumPy's npy and npz files. Checks headers against file size and [`memory`](crate::io::memory)
//! before reading values.

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
