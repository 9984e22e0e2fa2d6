//! Implementations of [`ops`](crate::ops) per backend.

mod autodiff;
#[cfg(feature = "cubecl")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
