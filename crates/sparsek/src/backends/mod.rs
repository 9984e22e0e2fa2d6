//! The operations on each backend.

mod autodiff;
#[cfg(feature = "cubecl")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
pub(crate) mod queue;
