//! Backend operations behind the tensor API, routed by device.
//!
//! Each family has two traits: `<Family>Ops` lists the operations that the tensor functions call,
//! and `<Family>GradientOps` lists what their gradients are made of. Arguments are checked by the
//! tensor functions, not here.

mod dense;
mod distance;
mod spmm;
mod topk;

pub use dense::{DenseGradientOps, DenseOps};
pub(crate) use distance::distance_dtype;
pub use distance::{
    CsrTensors, DistanceGradientOps, DistanceOps, DistanceSpec, NearestSpec, RadiusSpec,
    Transposed, TransposedPattern,
};
pub use spmm::{
    BlockedEntries, CompressedSpec, Factor, Factors, Operator, SpmmGradientOps, SpmmOps,
};
pub use topk::{Lengths, Outcome, SelectedBuffers, TopkGradientOps, TopkOps, TopkSpec};
