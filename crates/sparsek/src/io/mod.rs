//! Files and memory.
//!
//! - [`memory`]: a limit on host allocations.
//!
//! The hidden modules serve `sparsek-gnn` and the examples. They are not public API and may change
//! in any release.

#[doc(hidden)]
pub mod input;
pub mod memory;
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
