//! Implementations of [`ops`](crate::ops), one folder per backend and one file per family.

mod autodiff;
#[cfg(feature = "cubecl")]
mod cube;
#[cfg(feature = "flex")]
mod flex;
