//! Products of sparse matrices with dense and compressed ones.

use burn::backend::{
    Backend, ExtensionType, backend_extension,
    tensor::{FloatTensor, IntTensor},
};

/// The entries of a pattern by stretches of columns: see [`AggregateOps::stretches`].
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Stretched<B: Backend> {
    /// They are not listed so.
    No,
    /// They are.
    By(IntTensor<B>),
}

/// A pattern and its transpose, and how the entries of both are shared out.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct Operator<B: Backend> {
    /// Offsets of the rows.
    pub indptr: IntTensor<B>,
    /// Column of each entry.
    pub indices: IntTensor<B>,
    /// How the entries are shared out: see [`AggregateOps::partition`].
    pub parts: IntTensor<B>,
    /// Offsets of the columns.
    pub turned_indptr: IntTensor<B>,
    /// Row of each entry of the transpose.
    pub turned_indices: IntTensor<B>,
    /// Which entry it is.
    pub turned_entries: IntTensor<B>,
    /// How the entries of the transpose are shared out.
    pub turned_parts: IntTensor<B>,
    /// The entries of the transpose by stretches, where there are many.
    #[extension_type]
    pub turned_stretches: Stretched<B>,
}

impl<B: Backend> Operator<B> {
    /// The transpose; its entries keep the numbers of the transpose's entries, and are not listed by stretches.
    pub(crate) fn turned(self) -> Self {
        Self {
            indptr: self.turned_indptr,
            indices: self.turned_indices,
            parts: self.turned_parts,
            turned_indptr: self.indptr,
            turned_indices: self.indices,
            turned_entries: self.turned_entries,
            turned_parts: self.parts,
            turned_stretches: Stretched::No,
        }
    }
}

/// A factor of each of some things.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Factor<B: Backend> {
    /// All are 1.
    One,
    /// One for each.
    Each(FloatTensor<B>),
}

impl<B: Backend> Factor<B> {
    pub(crate) fn tensor(self) -> Option<FloatTensor<B>> {
        match self {
            Self::One => None,
            Self::Each(tensor) => Some(tensor),
        }
    }
}

/// What the entries of an operator are: `a(i, j) = rows[i] weights[e] cols[j]`.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct Factors<B: Backend> {
    /// Of each entry, in the dtype of the other operand.
    #[extension_type]
    pub weights: Factor<B>,
    /// Of each row, f32, or f64 where the other operand is.
    #[extension_type]
    pub rows: Factor<B>,
    /// Of each column.
    #[extension_type]
    pub cols: Factor<B>,
}

impl<B: Backend> Factors<B> {
    /// Those of the transpose.
    pub(crate) fn turned(self) -> Self {
        Self {
            weights: self.weights,
            rows: self.cols,
            cols: self.rows,
        }
    }
}

/// How compressed rows are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedSpec {
    /// Columns of the matrix that is compressed.
    pub width: usize,
    /// Whether its gradient is added up by atomics, where the device can: not deterministic.
    pub atomic: bool,
    /// Most columns of a stretch of the transpose, where it has some.
    pub stretch: usize,
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::{
        backend::fusion::custom::TensorSpec,
        tensor::{DType, Shape},
    };

    use super::{CompressedSpec, FactorsMetadata, OperatorMetadata};

    fn product_of(operator: &OperatorMetadata, width: usize, dtype: DType) -> TensorSpec {
        TensorSpec::new([operator.indptr.shape[0] - 1, width].into(), dtype)
    }

    pub(super) fn parts(indptr: &TensorSpec, nnz: &usize) -> TensorSpec {
        let rows = indptr.shape[0] - 1;
        let len = sparsek_kernels::aggregate::Partition::len(rows, *nnz);
        TensorSpec::new([len].into(), DType::I32)
    }

    pub(super) fn one(_like: &TensorSpec) -> TensorSpec {
        TensorSpec::new([1].into(), DType::I32)
    }

    pub(super) fn stretches(
        indptr: &TensorSpec,
        indices: &TensorSpec,
        cols: &usize,
        most: &usize,
    ) -> TensorSpec {
        let size = [indptr.shape[0] - 1, *cols, indices.shape[0]];
        let len = sparsek_kernels::aggregate::Stretches::len(size, *most);
        TensorSpec::new([len].into(), DType::I32)
    }

    pub(super) fn product(
        x: &TensorSpec,
        _factors: &FactorsMetadata,
        operator: &OperatorMetadata,
    ) -> TensorSpec {
        product_of(operator, x.shape[1], x.dtype)
    }

    pub(super) fn compressed(
        values: &TensorSpec,
        _columns: &TensorSpec,
        _factors: &FactorsMetadata,
        operator: &OperatorMetadata,
        spec: &CompressedSpec,
    ) -> TensorSpec {
        product_of(operator, spec.width, values.dtype)
    }

    pub(super) fn entries(
        left: &TensorSpec,
        _right: &TensorSpec,
        _factors: &FactorsMetadata,
        operator: &OperatorMetadata,
    ) -> TensorSpec {
        TensorSpec::new(operator.indices.shape.clone(), left.dtype)
    }

    pub(super) fn compressed_entries(
        left: &TensorSpec,
        _values: &TensorSpec,
        _columns: &TensorSpec,
        _factors: &FactorsMetadata,
        operator: &OperatorMetadata,
    ) -> TensorSpec {
        TensorSpec::new(operator.indices.shape.clone(), left.dtype)
    }

    pub(super) fn with_last(shape: &Shape, last: usize) -> Shape {
        [shape[0], last].into()
    }
}

/// Products `y[i] = rows[i] Σ weights[e] cols[j] x[j]` over the entries `e = (i, j)` of row `i`; factors of rows and columns
/// have no gradient.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait AggregateOps: Backend {
    /// How a backend shares out the entries of a pattern; made once for each.
    #[fusion(meta = shapes::parts)]
    fn partition(indptr: IntTensor<Self>, nnz: usize) -> IntTensor<Self>;

    /// Most columns of a stretch on the device of a tensor: one i32, 0 where the gradient of compressed rows is not added up so.
    #[fusion(meta = shapes::one)]
    fn most_columns(like: IntTensor<Self>) -> IntTensor<Self>;

    /// The entries of a pattern by stretches of at most `most` columns, which ascend in each row; made once for each.
    #[fusion(meta = shapes::stretches)]
    fn stretches(
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
        most: usize,
    ) -> IntTensor<Self>;

    /// With a dense matrix.
    #[fusion(meta = shapes::product)]
    fn spmm(
        x: FloatTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// With compressed rows: `[cols, k]` values and their columns, ascending in each row.
    #[fusion(meta = shapes::compressed)]
    fn spmm_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self>;

    /// Compressed rows as dense ones, `width` columns.
    #[fusion(dtype = values, shape = shapes::with_last(values, *width))]
    fn expand(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self>;
}

/// What the gradients of [`AggregateOps`] are made of; not differentiable themselves.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait AggregateGradientOps: Backend {
    /// [`AggregateOps::spmm`] with the transpose: its operator, and the weights of the entries that those of it came from.
    #[fusion(meta = shapes::product)]
    fn spmm_turned(
        x: FloatTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] turned: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// The gradient of [`AggregateOps::spmm_compressed`] with respect to the values; its own factors and operator.
    #[fusion(dtype = upstream, shape = columns)]
    fn compressed_gradient(
        upstream: FloatTensor<Self>,
        columns: IntTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self>;

    /// The gradient of [`AggregateOps::spmm`] with respect to the weights: `rows[i] cols[j] left[i] · right[j]`.
    #[fusion(meta = shapes::entries)]
    fn sddmm(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// The gradient of [`AggregateOps::spmm_compressed`] with respect to the weights.
    #[fusion(meta = shapes::compressed_entries)]
    fn sddmm_compressed(
        left: FloatTensor<Self>,
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// The elements of dense rows at the columns of compressed ones.
    #[fusion(dtype = source, shape = columns)]
    fn pick(source: FloatTensor<Self>, columns: IntTensor<Self>) -> FloatTensor<Self>;
}
