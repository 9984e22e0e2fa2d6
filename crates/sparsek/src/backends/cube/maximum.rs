//! The greatest of the rows that a pattern names, on every CubeCL runtime.

use burn::{
    backend::{
        TensorMetadata,
        cubecl::dtype_to_elem_type,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use sparsek_kernels::{aggregate::Csr, maximum};

use super::{expect, tensor};
use crate::ops::{MaximumGradientOps, MaximumOps};

fn csr<'a>(indptr: &'a CubeTensor, indices: &'a CubeTensor, cols: usize) -> Csr<'a> {
    Csr {
        indptr: &indptr.handle,
        indices: &indices.handle,
        rows: indptr.shape()[0] - 1,
        cols,
        nnz: indices.shape()[0],
    }
}

impl MaximumOps for CubeBackend {
    fn spmm_max(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        _transposed_indptr: IntTensor<Self>,
        _transposed_indices: IntTensor<Self>,
        _transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::spmm_max_winners(x, indptr, indices).0
    }
}

impl MaximumGradientOps for CubeBackend {
    fn spmm_max_winners(
        x: FloatTensor<Self>,
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let [x, indptr, indices] = [x, indptr, indices].map(into_contiguous);
        let [cols, width] = x.shape().dims();
        let csr = csr(&indptr, &indices, cols);
        let dtype = dtype_to_elem_type(x.dtype);
        let found = maximum::maximum(&x.client, &csr, &x.handle, dtype, width);
        let (values, winners) = expect("spmm_max", found);
        let shape = Shape::from([csr.rows, width]);
        (
            tensor(&x, values, shape.clone(), x.dtype),
            tensor(&x, winners, shape, DType::I32),
        )
    }

    fn spmm_max_gradient(
        upstream: FloatTensor<Self>,
        winners: IntTensor<Self>,
        transposed_indptr: IntTensor<Self>,
        transposed_indices: IntTensor<Self>,
        transposed_entries: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        let [upstream, winners] = [upstream, winners].map(into_contiguous);
        let [indptr, indices, entries] =
            [transposed_indptr, transposed_indices, transposed_entries].map(into_contiguous);
        let [cols, width] = upstream.shape().dims();
        let transposed = csr(&indptr, &indices, cols);
        let gradient = maximum::maximum_gradient(
            &upstream.client,
            &transposed,
            &entries.handle,
            &winners.handle,
            &upstream.handle,
            dtype_to_elem_type(upstream.dtype),
            width,
        );
        let shape = Shape::from([transposed.rows, width]);
        let gradient = expect("spmm_max", gradient);
        tensor(&upstream, gradient, shape, upstream.dtype)
    }
}
