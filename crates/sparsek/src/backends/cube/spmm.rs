use burn::{
    backend::{
        TensorMetadata,
        cubecl::dtype_to_elem_type,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use cubecl::server::Handle;
use sparsek_kernels::{
    KernelError,
    spmm::{
        self, ColumnBlocks, Compressed, Csr, Operand, Partition, Product, Scales, Weights,
        column_blocks_len, max, partition_len,
    },
};

use super::{
    tensor::{expect, tensor},
    topk::scatter,
};
use crate::ops::{
    BlockedEntries, CompressedSpec, Factor, Factors, Operator, SpmmGradientOps, SpmmOps,
};

struct Sparse {
    indptr: CubeTensor,
    indices: CubeTensor,
    partition: Partition,
    weights: Option<CubeTensor>,
    entries: Option<CubeTensor>,
    rows: Option<CubeTensor>,
    cols: Option<CubeTensor>,
    size: [usize; 3],
}

impl Sparse {
    fn new(
        operator: Operator<CubeBackend>,
        factors: Factors<CubeBackend>,
        entries: Option<CubeTensor>,
    ) -> Self {
        let contiguous = |factor: Factor<CubeBackend>| factor.tensor().map(into_contiguous);
        let rows = operator.indptr.shape()[0] - 1;
        let cols = operator.transposed_indptr.shape()[0] - 1;
        let nnz = operator.indices.shape()[0];
        let parts = into_contiguous(operator.parts);
        Self {
            indptr: into_contiguous(operator.indptr),
            indices: into_contiguous(operator.indices),
            partition: Partition::from_handle(parts.handle, rows, nnz),
            weights: contiguous(factors.weights),
            entries: entries.map(into_contiguous),
            rows: contiguous(factors.rows),
            cols: contiguous(factors.cols),
            size: [rows, cols, nnz],
        }
    }

    fn operand(&self) -> Operand<'_> {
        let [rows, cols, nnz] = self.size;
        Operand {
            csr: Csr {
                indptr: &self.indptr.handle,
                indices: &self.indices.handle,
                rows,
                cols,
                nnz,
            },
            partition: &self.partition,
            weights: self.weights.as_ref().map(|weights| Weights {
                values: &weights.handle,
                entries: self.entries.as_ref().map(|entries| &entries.handle),
            }),
            scales: Scales {
                rows: self.rows.as_ref().map(|rows| &rows.handle),
                cols: self.cols.as_ref().map(|cols| &cols.handle),
            },
        }
    }
}

struct Rows {
    values: CubeTensor,
    columns: CubeTensor,
    width: usize,
}

impl Rows {
    fn new(values: CubeTensor, columns: CubeTensor, width: usize) -> Self {
        Self { values: into_contiguous(values), columns: into_contiguous(columns), width }
    }

    fn compressed(&self) -> Compressed<'_> {
        Compressed {
            values: &self.values.handle,
            columns: &self.columns.handle,
            dtype: dtype_to_elem_type(self.values.dtype),
            index: dtype_to_elem_type(self.columns.dtype),
            k: self.columns.shape()[1],
            width: self.width,
        }
    }
}

fn result(
    operation: &str,
    output: Result<Handle, KernelError>,
    like: &CubeTensor,
    shape: impl Into<Shape>,
) -> CubeTensor {
    tensor(like, expect(operation, output), shape.into(), like.dtype)
}

fn product(x: CubeTensor, sparse: &Sparse) -> CubeTensor {
    let x = into_contiguous(x);
    let width = x.shape()[1];
    let dtype = dtype_to_elem_type(x.dtype);
    let output = spmm::spmm(&x.client, &sparse.operand(), &x.handle, dtype, width);
    result("spmm", output, &x, [sparse.size[0], width])
}

fn csr<'a>(indptr: &'a CubeTensor, indices: &'a CubeTensor, cols: usize) -> Csr<'a> {
    Csr {
        indptr: &indptr.handle,
        indices: &indices.handle,
        rows: indptr.shape()[0] - 1,
        cols,
        nnz: indices.shape()[0],
    }
}

impl SpmmOps for CubeBackend {
    fn partition(indptr: IntTensor<Self>, nnz: usize) -> IntTensor<Self> {
        let indptr = into_contiguous(indptr);
        let rows = indptr.shape()[0] - 1;
        let csr = Csr { indptr: &indptr.handle, indices: &indptr.handle, rows, cols: 0, nnz };
        let partition = expect("partition", Partition::new(&indptr.client, &csr));
        let shape = Shape::from([partition_len(rows, nnz)]);
        tensor(&indptr, partition.handle().clone(), shape, DType::I32)
    }

    fn block_columns(like: IntTensor<Self>) -> IntTensor<Self> {
        let most = ColumnBlocks::max_columns(&like.client) as i32;
        let handle = like.client.create_from_slice(&most.to_ne_bytes());
        tensor(&like, handle, Shape::from([1]), DType::I32)
    }

    fn column_blocks(
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
        most: usize,
    ) -> IntTensor<Self> {
        let [indptr, indices] = [indptr, indices].map(into_contiguous);
        let (rows, nnz) = (indptr.shape()[0] - 1, indices.shape()[0]);
        let csr = Csr { indptr: &indptr.handle, indices: &indices.handle, rows, cols, nnz };
        let blocks = expect("column_blocks", ColumnBlocks::new(&indptr.client, &csr, most));
        let shape = Shape::from([column_blocks_len([rows, cols, nnz], most)]);
        tensor(&indptr, blocks.handle().clone(), shape, DType::I32)
    }

    fn spmm(
        x: FloatTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        product(x, &Sparse::new(operator, factors, None))
    }

    fn spmm_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self> {
        let rows = Rows::new(values, columns, spec.width);
        let sparse = Sparse::new(operator, factors, None);
        let client = &rows.values.client;
        let output = spmm::spmm_compressed(client, &sparse.operand(), &rows.compressed(), None);
        let shape = [sparse.size[0], spec.width];
        result("spmm_compressed", output, &rows.values, shape)
    }

    fn expand(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        scatter(values, columns, width, false)
    }

    fn spmm_max(x: FloatTensor<Self>, operator: Operator<Self>) -> FloatTensor<Self> {
        Self::spmm_max_winners(x, operator).0
    }

    fn sddmm(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let [left, right] = [left, right].map(into_contiguous);
        let sparse = Sparse::new(operator, factors, None);
        let output = spmm::sddmm(
            &left.client,
            &sparse.operand(),
            &left.handle,
            &right.handle,
            dtype_to_elem_type(left.dtype),
            right.shape()[1],
        );
        result("sddmm", output, &left, [sparse.size[2]])
    }
}

impl SpmmGradientOps for CubeBackend {
    fn spmm_transposed(
        x: FloatTensor<Self>,
        factors: Factors<Self>,
        transposed: Operator<Self>,
    ) -> FloatTensor<Self> {
        let entries = transposed.transposed_entries.clone();
        product(x, &Sparse::new(transposed, factors, Some(entries)))
    }

    fn compressed_gradient(
        upstream: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self> {
        // No values are read; `upstream` fills the slot.
        let rows = Rows::new(upstream, columns, spec.width);
        let client = &rows.values.client;
        let x = rows.compressed();
        let entries = into_contiguous(operator.transposed_entries.clone());
        let blocked = operator.transposed_blocks.clone();
        let forward = Sparse::new(operator.clone(), factors.clone(), None);
        let transposed =
            Sparse::new(operator.transposed(), factors.transposed(), Some(entries.clone()));
        let blocks = match blocked {
            BlockedEntries::Absent => None,
            BlockedEntries::Present(tensor) => {
                let handle = into_contiguous(tensor).handle;
                let size = transposed.size;
                Some(ColumnBlocks::from_handle(handle, size, spec.block_columns))
            }
        };
        let product = Product {
            operand: forward.operand(),
            transposed: transposed.operand(),
            entries: &entries.handle,
            column_blocks: blocks.as_ref(),
        };
        let output = spmm::gradient(client, &product, x.values, &x);
        let shape = rows.columns.shape();
        result("the gradient of spmm_compressed", output, &rows.values, shape)
    }

    fn sddmm_compressed(
        left: FloatTensor<Self>,
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let left = into_contiguous(left);
        let rows = Rows::new(values, columns, left.shape()[1]);
        let sparse = Sparse::new(operator, factors, None);
        let (operand, x) = (sparse.operand(), rows.compressed());
        let output = spmm::sddmm_compressed(&left.client, &operand, &left.handle, &x);
        result("sddmm_compressed", output, &left, [sparse.size[2]])
    }

    fn gather_columns(source: FloatTensor<Self>, columns: IntTensor<Self>) -> FloatTensor<Self> {
        let rows = Rows::new(source, columns, 0);
        let source = &rows.values;
        let [count, width] = source.shape().dims();
        let x = rows.compressed();
        let sizes = [count, width, x.k];
        let output =
            spmm::gather_columns(&source.client, x.values, x.columns, sizes, [x.dtype, x.index]);
        result("gather_columns", output, source, rows.columns.shape())
    }

    fn spmm_max_winners(
        x: FloatTensor<Self>,
        operator: Operator<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let [x, indptr, indices] = [x, operator.indptr, operator.indices].map(into_contiguous);
        let [cols, width] = x.shape().dims();
        let csr = csr(&indptr, &indices, cols);
        let dtype = dtype_to_elem_type(x.dtype);
        let found = max::maximum(&x.client, &csr, &x.handle, dtype, width);
        let (values, winners) = expect("spmm_max", found);
        let shape = Shape::from([csr.rows, width]);
        (tensor(&x, values, shape.clone(), x.dtype), tensor(&x, winners, shape, DType::I32))
    }

    fn spmm_max_gradient(
        upstream: FloatTensor<Self>,
        winners: IntTensor<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let [upstream, winners] = [upstream, winners].map(into_contiguous);
        let [indptr, indices, entries] =
            [operator.transposed_indptr, operator.transposed_indices, operator.transposed_entries]
                .map(into_contiguous);
        let [cols, width] = upstream.shape().dims();
        let transposed = csr(&indptr, &indices, cols);
        let gradient = max::maximum_gradient(
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
