//! Distances have no gradient yet.

use burn::backend::{
    Backend,
    tensor::{FloatTensor, IntTensor},
};
use burn_autodiff::{Autodiff, checkpoint::strategy::CheckpointStrategy};

use crate::ops::{DistanceOps, DistanceSpec, NearestSpec};

impl<B: Backend + DistanceOps, C: CheckpointStrategy> DistanceOps for Autodiff<B, C> {
    fn pairwise(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        spec: DistanceSpec,
    ) -> FloatTensor<Self> {
        let (x, y) = (x_values.into_primitive(), y_values.into_primitive());
        Self::FloatTensorPrimitive::new(B::pairwise(
            x_indptr, x_indices, x, y_indptr, y_indices, y, spec,
        ))
    }

    fn nearest(
        x_indptr: IntTensor<Self>,
        x_indices: IntTensor<Self>,
        x_values: FloatTensor<Self>,
        y_indptr: IntTensor<Self>,
        y_indices: IntTensor<Self>,
        y_values: FloatTensor<Self>,
        spec: NearestSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (x, y) = (x_values.into_primitive(), y_values.into_primitive());
        let (values, indices) = B::nearest(x_indptr, x_indices, x, y_indptr, y_indices, y, spec);
        (Self::FloatTensorPrimitive::new(values), indices)
    }
}
