//! Linear layers of compressed rows on every CubeCL runtime: dense rows are made for Burn's product and not kept.

use burn::backend::{
    TensorMetadata,
    tensor::{FloatTensor, IntTensor},
};
use burn_cubecl::CubeBackend;

use crate::ops::{
    AggregateGradientOps, AggregateOps, DenseGradientOps, DenseOps, MemberGradientOps, MemberOps,
};

impl MemberOps for CubeBackend {
    fn linear_members(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let width = weight.shape()[0];
        Self::linear_rows(Self::expand(values, columns, width), weight)
    }
}

impl MemberGradientOps for CubeBackend {
    fn linear_members_gradient(
        columns: IntTensor<Self>,
        weight: FloatTensor<Self>,
        upstream: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::pick(Self::linear_rows_backward(weight, upstream), columns)
    }

    fn linear_members_weight_gradient(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        upstream: FloatTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        Self::linear_rows_gradient(Self::expand(values, columns, width), upstream)
    }
}
