//! A pattern on a device.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, Tensor, TensorData},
};

use sparsek_kernels::aggregate::Stretches;

use super::Pattern;
use crate::ops::{AggregateOps, Operator, Stretched};

/// A pattern and its transpose on a device, as the products and their gradients need them.
///
/// Cloning shares the buffers. Takes `20 (rows + cols) + 12 nnz` bytes of device memory, and 3 for each 32 entries; `20 rows + 8 nnz`
/// where the pattern is symmetric and its columns ascend. Where there are 2^22 entries and rows of the transpose have many (24 and more on average in each of
/// up to 24 stretches of columns that shared memory holds a value for each of, of which an NVIDIA H200 has room for 58,016) 2 more for
/// each entry and 136 for each column and stretch, for the gradient of products with compressed rows.
#[derive(Clone, Debug)]
pub struct Adjacency {
    rows: usize,
    cols: usize,
    pub(super) indptr: Tensor<1, Int>,
    pub(super) indices: Tensor<1, Int>,
    pub(super) transposed_indptr: Tensor<1, Int>,
    pub(super) transposed_indices: Tensor<1, Int>,
    pub(super) transposed_entries: Tensor<1, Int>,
    parts: Tensor<1, Int>,
    transposed_parts: Tensor<1, Int>,
    /// Entries of the transpose by stretches of at most so many columns.
    transposed_stretches: Option<(Tensor<1, Int>, usize)>,
}

impl Adjacency {
    /// Transposes the pattern, uploads both, and shares out the entries of each on the device.
    pub fn new(pattern: &Pattern, device: &Device) -> Self {
        let (transposed, entries) = pattern.transpose();
        let on_device = |pattern: &Pattern| {
            let indptr = upload(pattern.indptr(), device);
            let indices = upload(pattern.indices(), device);
            let parts = <Dispatch as AggregateOps>::partition(
                indptr.clone().into_dispatch(),
                pattern.nnz(),
            );
            (indptr, indices, Tensor::from_dispatch(parts))
        };
        let own = on_device(pattern);
        let turned = match transposed == *pattern {
            true => own.clone(),
            false => on_device(&transposed),
        };
        let (indptr, indices, parts) = own;
        let (transposed_indptr, transposed_indices, transposed_parts) = turned;
        let transposed_stretches = stretches(&transposed, &transposed_indptr, &transposed_indices);
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
            transposed_stretches,
        }
    }

    /// As the operations take it.
    pub(super) fn operator(&self) -> Operator<Dispatch> {
        let adjacency = self.clone();
        Operator {
            indptr: adjacency.indptr.into_dispatch(),
            indices: adjacency.indices.into_dispatch(),
            parts: adjacency.parts.into_dispatch(),
            turned_indptr: adjacency.transposed_indptr.into_dispatch(),
            turned_indices: adjacency.transposed_indices.into_dispatch(),
            turned_entries: adjacency.transposed_entries.into_dispatch(),
            turned_parts: adjacency.transposed_parts.into_dispatch(),
            turned_stretches: match adjacency.transposed_stretches {
                None => Stretched::No,
                Some((tensor, _)) => Stretched::By(tensor.into_dispatch()),
            },
        }
    }

    /// Most columns of a stretch of the transpose, where it has some.
    pub(super) fn stretch(&self) -> usize {
        let stretches = self.transposed_stretches.as_ref();
        stretches.map_or(0, |(_, most)| *most)
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Stored entries.
    pub fn nnz(&self) -> usize {
        self.indices.dims()[0]
    }
}

/// The entries of a pattern by stretches of columns, which ascend in each row, and the most columns of one, where that pays on the device.
fn stretches(
    pattern: &Pattern,
    indptr: &Tensor<1, Int>,
    indices: &Tensor<1, Int>,
) -> Option<(Tensor<1, Int>, usize)> {
    let size = [pattern.rows(), pattern.cols(), pattern.nnz()];
    // No device has to be asked where one stretch is too many.
    if !Stretches::pays(size, pattern.cols().max(1)) {
        return None;
    }
    let [indptr, indices] = [indptr, indices].map(|tensor| tensor.clone().into_dispatch());
    let most = <Dispatch as AggregateOps>::most_columns(indptr.clone());
    let most = Tensor::<1, Int>::from_dispatch(most).into_scalar::<i64>();
    let most = usize::try_from(most).expect("a number of columns");
    Stretches::pays(size, most).then(|| {
        let made = <Dispatch as AggregateOps>::stretches(indptr, indices, pattern.cols(), most);
        (Tensor::from_dispatch(made), most)
    })
}

/// Integers below 2^31 as i32 on a device.
pub(crate) fn upload(values: &[u32], device: &Device) -> Tensor<1, Int> {
    // Pattern keeps every value below 2^31.
    let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), (device, DType::I32))
}
