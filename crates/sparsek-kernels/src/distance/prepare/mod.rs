#[cfg(feature = "kernels")]
pub(super) mod columns;
#[cfg(feature = "kernels")]
pub(super) mod norms;
#[cfg(feature = "kernels")]
pub(super) mod packed;
pub(super) mod parts;
pub(super) mod range;
