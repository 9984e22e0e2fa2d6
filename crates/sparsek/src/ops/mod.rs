//! Backend operations; tensor functions check arguments. `<Family>GradientOps` are not
//! differentiable.

mod dense;
mod distance;
mod spmm;
mod topk;

pub use dense::{DenseGradientOps, DenseOps};
pub(crate) use distance::distance_dtype;
pub use distance::{
    CsrTensors, DistanceGradientOps, DistanceOps, DistanceSpec, GradientSpec, ListedSpec,
    NearestSpec, RadiusSpec, Transposed, TransposedPattern,
};
pub use spmm::{
    BlockedEntries, CompressedSpec, Factor, Factors, Operator, SpmmGradientOps, SpmmOps,
};
pub use topk::{
    Bounds, DrawSpec, IndexMap, Outcome, SelectedBuffers, TopkGradientOps, TopkOps, TopkSpec,
    VectorSpec,
};
