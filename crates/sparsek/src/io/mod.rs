//! Files and memory: what every loader and every program of the workspace shares.
//!
//! - [`memory`]: a limit on what one request may allocate on the host, checked before it allocates.
//!
//! The other modules are shared with `sparsek-gnn` and the example programs. They are no part of
//! the public interface and may change in any release.

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
