//! Distances within a radius on every CubeCL runtime.

use burn::{
    backend::{
        TensorMetadata,
        cubecl::dtype_to_elem_type,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use sparsek_kernels::distance::Within;

use super::{expect, tensor};
use crate::ops::{WithinOps, WithinSpec};

/// Distances and how near is near.
fn within<'a>(distances: &'a CubeTensor, spec: &WithinSpec) -> Within<'a> {
    Within {
        distances: &distances.handle,
        dtype: dtype_to_elem_type(distances.dtype),
        rows: distances.shape()[0],
        across: distances.shape()[1],
        radius: spec.radius,
        largest: spec.largest,
        own: spec.own,
    }
}

impl WithinOps for CubeBackend {
    fn count_within(distances: FloatTensor<Self>, spec: WithinSpec) -> IntTensor<Self> {
        let distances = into_contiguous(distances);
        let within = within(&distances, &spec);
        let counts = expect("radius_neighbors", within.count(&distances.client));
        let shape = Shape::from([within.rows, Within::stretches(within.across)]);
        tensor(&distances, counts, shape, DType::I32)
    }

    fn list_within(
        distances: FloatTensor<Self>,
        offsets: IntTensor<Self>,
        spec: WithinSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (distances, offsets) = (into_contiguous(distances), into_contiguous(offsets));
        let listed = within(&distances, &spec).list(&distances.client, &offsets.handle, spec.total);
        let [values, places] = expect("radius_neighbors", listed);
        let shape = Shape::from([spec.total]);
        (
            tensor(&distances, values, shape.clone(), distances.dtype),
            tensor(&distances, places, shape, DType::I32),
        )
    }
}
