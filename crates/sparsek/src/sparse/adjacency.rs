use burn::{
    backend::Dispatch,
    tensor::{Device, Int, Tensor},
};
use sparsek_kernels::spmm::column_blocks_pay;

use super::{pattern::Pattern, tensor::upload};
use crate::ops::{BlockedEntries, Operator, SpmmOps};

/// A pattern and its transpose on a device. Clones share buffers.
///
/// Takes `20 (rows + cols) + 12 nnz` bytes plus 3 per 32 entries; `20 rows + 8 nnz` if symmetric
/// and ascending. From 2^22 entries, column blocks may add 2 bytes per entry and 136 per column and
/// block.
#[derive(Clone, Debug)]
pub struct Adjacency {
    rows: usize,
    cols: usize,
    indptr: Tensor<1, Int>,
    indices: Tensor<1, Int>,
    transposed_indptr: Tensor<1, Int>,
    transposed_indices: Tensor<1, Int>,
    transposed_entries: Tensor<1, Int>,
    parts: Tensor<1, Int>,
    transposed_parts: Tensor<1, Int>,
    /// And most columns per block.
    transposed_blocks: Option<(Tensor<1, Int>, usize)>,
}

impl Adjacency {
    /// Transposes and uploads a pattern.
    pub fn new(pattern: &Pattern, device: &Device) -> Self {
        let (transposed, entries) = pattern.transpose();
        let on_device = |pattern: &Pattern| {
            let indptr = upload(pattern.indptr(), device);
            let indices = upload(pattern.indices(), device);
            let parts =
                <Dispatch as SpmmOps>::partition(indptr.clone().into_dispatch(), pattern.nnz());
            (indptr, indices, Tensor::from_dispatch(parts))
        };
        let forward = on_device(pattern);
        let backward = match transposed == *pattern {
            true => forward.clone(),
            false => on_device(&transposed),
        };
        let (indptr, indices, parts) = forward;
        let (transposed_indptr, transposed_indices, transposed_parts) = backward;
        let transposed_blocks = column_blocks(&transposed, &transposed_indptr, &transposed_indices);
        Self {
            rows: pattern.rows(),
            cols: pattern.cols(),
            indptr,
            indices,
            transposed_indptr,
            transposed_indices,
            transposed_entries: upload(&entries, device),
            parts,
            transposed_parts,
            transposed_blocks,
        }
    }

    /// The transpose's entries must be in the pattern's order.
    pub(super) fn transposed(&self) -> Self {
        let adjacency = self.clone();
        Self {
            rows: self.cols,
            cols: self.rows,
            indptr: adjacency.transposed_indptr,
            indices: adjacency.transposed_indices,
            transposed_indptr: adjacency.indptr,
            transposed_indices: adjacency.indices,
            transposed_entries: adjacency.transposed_entries,
            parts: adjacency.transposed_parts,
            transposed_parts: adjacency.parts,
            transposed_blocks: None,
        }
    }

    pub(super) fn operator(&self) -> Operator<Dispatch> {
        let adjacency = self.clone();
        Operator {
            indptr: adjacency.indptr.into_dispatch(),
            indices: adjacency.indices.into_dispatch(),
            parts: adjacency.parts.into_dispatch(),
            transposed_indptr: adjacency.transposed_indptr.into_dispatch(),
            transposed_indices: adjacency.transposed_indices.into_dispatch(),
            transposed_entries: adjacency.transposed_entries.into_dispatch(),
            transposed_parts: adjacency.transposed_parts.into_dispatch(),
            transposed_blocks: match adjacency.transposed_blocks {
                None => BlockedEntries::Absent,
                Some((tensor, _)) => BlockedEntries::Present(tensor.into_dispatch()),
            },
        }
    }

    pub(super) fn block_columns(&self) -> usize {
        let blocks = self.transposed_blocks.as_ref();
        blocks.map_or(0, |(_, most)| *most)
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Entries.
    pub fn nnz(&self) -> usize {
        self.indices.dims()[0]
    }
}

/// Columns must ascend.
fn column_blocks(
    pattern: &Pattern,
    indptr: &Tensor<1, Int>,
    indices: &Tensor<1, Int>,
) -> Option<(Tensor<1, Int>, usize)> {
    let size = [pattern.rows(), pattern.cols(), pattern.nnz()];
    // Avoids a device read.
    if !column_blocks_pay(size, pattern.cols().max(1)) {
        return None;
    }
    let [indptr, indices] = [indptr, indices].map(|tensor| tensor.clone().into_dispatch());
    let most = <Dispatch as SpmmOps>::block_columns(indptr.clone());
    let most = Tensor::<1, Int>::from_dispatch(most).into_scalar::<i64>();
    let most = usize::try_from(most).expect("a number of columns");
    column_blocks_pay(size, most).then(|| {
        let made = <Dispatch as SpmmOps>::column_blocks(indptr, indices, pattern.cols(), most);
        (Tensor::from_dispatch(made), most)
    })
}
