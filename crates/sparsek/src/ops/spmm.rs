use burn::backend::{
    Backend, ExtensionType, backend_extension,
    tensor::{FloatTensor, IntTensor},
};

/// Entries by column blocks.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum BlockedEntries<B: Backend> {
    /// Not grouped.
    Absent,
    /// Grouped.
    Present(IntTensor<B>),
}

/// Pattern, transpose and work partitions.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct Operator<B: Backend> {
    /// Row offsets.
    pub indptr: IntTensor<B>,
    /// Columns.
    pub indices: IntTensor<B>,
    /// Work partition.
    pub parts: IntTensor<B>,
    /// Column offsets.
    pub transposed_indptr: IntTensor<B>,
    /// Transposed entry rows.
    pub transposed_indices: IntTensor<B>,
    /// Original positions.
    pub transposed_entries: IntTensor<B>,
    /// Transposed work partition.
    pub transposed_parts: IntTensor<B>,
    /// Transpose blocks.
    #[extension_type]
    pub transposed_blocks: BlockedEntries<B>,
}

impl<B: Backend> Operator<B> {
    /// Keeps `transposed_entries`, drops blocks.
    pub(crate) fn transposed(self) -> Self {
        Self {
            indptr: self.transposed_indptr,
            indices: self.transposed_indices,
            parts: self.transposed_parts,
            transposed_indptr: self.indptr,
            transposed_indices: self.indices,
            transposed_entries: self.transposed_entries,
            transposed_parts: self.parts,
            transposed_blocks: BlockedEntries::Absent,
        }
    }
}

/// Element factors.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub enum Factor<B: Backend> {
    /// All 1.
    One,
    /// One each.
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

/// Factors of entries: `a(i, j) = rows[i] weights[e] cols[j]`.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion: cfg(feature = "fusion"))]
pub struct Factors<B: Backend> {
    /// Per entry, in the operand's dtype.
    #[extension_type]
    pub weights: Factor<B>,
    /// Per row, f32 (f64 for f64).
    #[extension_type]
    pub rows: Factor<B>,
    /// Per column, likewise.
    #[extension_type]
    pub cols: Factor<B>,
}

impl<B: Backend> Factors<B> {
    pub(crate) fn transposed(self) -> Self {
        Self { weights: self.weights, rows: self.cols, cols: self.rows }
    }
}

/// Product with compressed rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedSpec {
    /// Compressed matrix columns.
    pub width: usize,
    /// Most columns per transposed block, or 0.
    pub block_columns: usize,
}

#[cfg(feature = "fusion")]
mod shapes {
    use burn::{
        backend::fusion::custom::TensorSpec,
        tensor::{DType, Shape},
    };
    use sparsek_kernels::spmm::{column_blocks_len, partition_len};

    use super::{CompressedSpec, FactorsMetadata, OperatorMetadata};

    fn product_of(operator: &OperatorMetadata, width: usize, dtype: DType) -> TensorSpec {
        TensorSpec::new([operator.indptr.shape[0] - 1, width].into(), dtype)
    }

    pub(super) fn parts(indptr: &TensorSpec, nnz: &usize) -> TensorSpec {
        let rows = indptr.shape[0] - 1;
        let len = partition_len(rows, *nnz);
        TensorSpec::new([len].into(), DType::I32)
    }

    pub(super) fn one(_like: &TensorSpec) -> TensorSpec {
        TensorSpec::new([1].into(), DType::I32)
    }

    pub(super) fn column_blocks(
        indptr: &TensorSpec,
        indices: &TensorSpec,
        cols: &usize,
        most: &usize,
    ) -> TensorSpec {
        let size = [indptr.shape[0] - 1, *cols, indices.shape[0]];
        let len = column_blocks_len(size, *most);
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

    pub(super) fn maxima(x: &TensorSpec, operator: &OperatorMetadata) -> (TensorSpec, TensorSpec) {
        let width = x.shape[1];
        (product_of(operator, width, x.dtype), product_of(operator, width, DType::I32))
    }

    pub(super) fn max_gradient(
        upstream: &TensorSpec,
        _winners: &TensorSpec,
        operator: &OperatorMetadata,
    ) -> TensorSpec {
        let shape = [operator.transposed_indptr.shape[0] - 1, upstream.shape[1]];
        TensorSpec::new(shape.into(), upstream.dtype)
    }
}

/// Products, maxima and sampled products; `rows` and `cols` have no gradient.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion"),
    Autodiff
)]
pub trait SpmmOps: Backend {
    /// Work partition.
    #[fusion(meta = shapes::parts)]
    fn partition(indptr: IntTensor<Self>, nnz: usize) -> IntTensor<Self>;

    /// Most columns per block, or 0; i32 `[1]`.
    #[fusion(meta = shapes::one)]
    fn block_columns(like: IntTensor<Self>) -> IntTensor<Self>;

    /// Blocks of `most` columns; columns must ascend.
    #[fusion(meta = shapes::column_blocks)]
    fn column_blocks(
        indptr: IntTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
        most: usize,
    ) -> IntTensor<Self>;

    /// Product with dense rows.
    #[fusion(meta = shapes::product)]
    fn spmm(
        x: FloatTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// Product with compressed rows, `[cols, k]`.
    #[fusion(meta = shapes::compressed)]
    fn spmm_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self>;

    /// Expands compressed rows to `width`.
    #[fusion(dtype = values, shape = shapes::with_last(values, *width))]
    fn expand(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self>;

    /// `y[i] = max x[j]` per element.
    #[fusion(meta = |x, operator| shapes::maxima(x, operator).0)]
    fn spmm_max(
        x: FloatTensor<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// `rows[i] cols[j] left[i] · right[j]` per entry; ignores weights.
    #[fusion(meta = shapes::entries)]
    fn sddmm(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;
}

/// Gradients of [`SpmmOps`].
#[backend_extension(
    Flex: cfg(feature = "flex"),
    Cube: cfg(feature = "cubecl"),
    Fusion: cfg(feature = "fusion")
)]
pub trait SpmmGradientOps: Backend {
    /// Transposed product; weights keep their order.
    #[fusion(meta = shapes::product)]
    fn spmm_transposed(
        x: FloatTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] transposed: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// Gradient for compressed values.
    #[fusion(dtype = upstream, shape = columns)]
    fn compressed_gradient(
        upstream: FloatTensor<Self>,
        columns: IntTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self>;

    /// [`SpmmOps::sddmm`] of compressed rows.
    #[fusion(meta = shapes::compressed_entries)]
    fn sddmm_compressed(
        left: FloatTensor<Self>,
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        #[extension_type] factors: Factors<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;

    /// Gathers elements at `columns`.
    #[fusion(dtype = source, shape = columns)]
    fn gather_columns(source: FloatTensor<Self>, columns: IntTensor<Self>) -> FloatTensor<Self>;

    /// Maxima and winners, i32, -1 for none.
    #[fusion(meta = shapes::maxima)]
    fn spmm_max_winners(
        x: FloatTensor<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>);

    /// Sums `upstream` over winning entries.
    #[fusion(meta = shapes::max_gradient)]
    fn spmm_max_gradient(
        upstream: FloatTensor<Self>,
        winners: IntTensor<Self>,
        #[extension_type] operator: Operator<Self>,
    ) -> FloatTensor<Self>;
}
