//! Very sparse compressed rows as CSR, k entries per row.

use burn::{
    backend::{TensorMetadata, cubecl::dtype_to_elem_type, ops::IntTensorOps},
    tensor::{DType, IntDType, Shape},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use sparsek_kernels::{
    spmm::{self, Csr, MAX_ENTRIES, Operand, Partition, Scales, Weights},
    topk::TopkOptions,
};

use super::{
    tensor::{expect, tensor},
    tuning::MIN_SPARSITY,
};
use crate::ops::{Bounds, TopkOps, TopkSpec};

pub(super) fn is_sparse(columns: &CubeTensor, width: usize) -> bool {
    let [rows, k] = columns.shape().dims();
    let entries = rows * k;
    entries > 0 && width / k >= MIN_SPARSITY && entries.max(width) <= MAX_ENTRIES
}

pub(super) struct Entries {
    indptr: CubeTensor,
    indices: CubeTensor,
    /// Original positions, if reordered.
    places: Option<CubeTensor>,
    cols: usize,
}

impl Entries {
    pub fn of_rows(columns: CubeTensor, width: usize) -> Self {
        let [rows, k] = columns.shape().dims();
        let offsets = (rows * k + 1) as i64;
        let device = &columns.device;
        let indptr = CubeBackend::int_arange_step(0..offsets, k, device, IntDType::I32);
        Self { indptr, indices: flat(columns), places: None, cols: width }
    }

    /// Rows ascend.
    pub fn of_columns(columns: CubeTensor, width: usize) -> Self {
        let [rows, k] = columns.shape().dims();
        let nnz = rows * k;
        let columns = CubeBackend::int_reshape(flat(columns), Shape::from([1, nnz]));
        let options = TopkOptions::new(nnz).with_largest(false).with_sorted(true);
        let spec = TopkSpec { options, index: IntDType::I32 };
        let (ascending, places) = CubeBackend::topk_int(columns, Bounds::Whole, spec);
        let client = &ascending.client;
        let indptr = spmm::row_offsets(client, &ascending.handle, nnz, width);
        let indptr = expect("linear_compressed", indptr);
        let indptr = tensor(&ascending, indptr, Shape::from([width + 1]), DType::I32);
        let indices = CubeBackend::int_div_scalar(places.clone(), (k as i64).into());
        Self { indptr, indices: into_contiguous(indices), places: Some(places), cols: rows }
    }

    fn csr(&self) -> Csr<'_> {
        Csr {
            indptr: &self.indptr.handle,
            indices: &self.indices.handle,
            rows: self.indptr.meta.num_elements() - 1,
            cols: self.cols,
            nnz: self.indices.meta.num_elements(),
        }
    }

    pub fn product(&self, values: CubeTensor, x: CubeTensor) -> CubeTensor {
        let [values, x] = [values, x].map(into_contiguous);
        let (csr, width, dtype) = (self.csr(), x.shape()[1], dtype_to_elem_type(x.dtype));
        let partition = expect("linear_compressed", Partition::new(&x.client, &csr));
        let entries = self.places.as_ref().map(|places| &places.handle);
        let weights = Some(Weights { values: &values.handle, entries });
        let scales = Scales::default();
        let operand = Operand { csr, partition: &partition, weights, scales };
        let output = spmm::spmm(&x.client, &operand, &x.handle, dtype, width);
        let shape = Shape::from([csr.rows, width]);
        tensor(&x, expect("linear_compressed", output), shape, x.dtype)
    }

    /// `left[i] · right[j]` per entry.
    pub fn sampled(&self, left: CubeTensor, right: CubeTensor) -> CubeTensor {
        let [left, right] = [left, right].map(into_contiguous);
        let (csr, width, dtype) = (self.csr(), right.shape()[1], dtype_to_elem_type(left.dtype));
        let partition = expect("linear_selected", Partition::new(&left.client, &csr));
        let scales = Scales::default();
        let operand = Operand { csr, partition: &partition, weights: None, scales };
        let (client, sides) = (&left.client, [&left.handle, &right.handle]);
        let output = spmm::sddmm(client, &operand, sides[0], sides[1], dtype, width);
        let shape = Shape::from([csr.rows, csr.nnz / csr.rows]);
        tensor(&left, expect("linear_selected", output), shape, left.dtype)
    }
}

fn flat(columns: CubeTensor) -> CubeTensor {
    let shape = Shape::from([columns.meta.num_elements()]);
    let columns = CubeBackend::int_cast(into_contiguous(columns), IntDType::I32);
    CubeBackend::int_reshape(columns, shape)
}
