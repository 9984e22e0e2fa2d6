//! [`memory`] limits host allocations. Hidden modules are not public API.

#[doc(hidden)]
pub mod compressed;
#[cfg(feature = "hdf5")]
#[doc(hidden)]
pub mod hdf5;
#[doc(hidden)]
pub mod input;
#[doc(hidden)]
pub mod matrix;
pub mod memory;
#[doc(hidden)]
pub mod mtx;
#[doc(hidden)]
pub mod npy;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod print;
#[doc(hidden)]
pub mod scipy;
#[doc(hidden)]
pub mod text;
