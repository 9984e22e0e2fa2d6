//! Rows of which k elements are kept.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, IntDType, Tensor},
};

use crate::{
    ops::{AggregateOps, Lengths, SparsekOps, TopkSpec},
    topk::{MAX_COLS, Method},
};

/// A matrix `[rows, width]` of which k elements of each row are kept: the CBSR of MaxK-GNN (Peng et al., 2024).
///
/// `values`: `[rows, k]`; `columns`: `[rows, k]`, ascending in each row, u8 up to 256 columns, u16 up to 65,536, else u32; wider
/// where the device does not store these. Made by [`sparse_topk`]. Values may be tracked by autodiff; columns are constant.
///
/// Cloning shares everything.
#[derive(Clone, Debug)]
pub struct Compressed {
    values: Tensor<2>,
    columns: Tensor<2, Int>,
    width: usize,
    atomic: bool,
}

impl Compressed {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.values.dims()[0]
    }

    /// Elements kept of each row.
    pub fn k(&self) -> usize {
        self.values.dims()[1]
    }

    /// Columns of the matrix.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The elements kept: `[rows, k]`.
    pub fn values(&self) -> &Tensor<2> {
        &self.values
    }

    /// Their columns: `[rows, k]`, ascending in each row.
    pub fn columns(&self) -> &Tensor<2, Int> {
        &self.columns
    }

    /// Dtype of the values.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The same places with other values, made of these, such as by dropout.
    ///
    /// # Panics
    ///
    /// If the shape changes.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::{sparse::sparse_topk, topk::Method};
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 5.0, 3.0]], &Device::flex());
    /// let kept = sparse_topk(x, 2, Method::Exact).map(|values| values * 10.0);
    /// kept.to_dense().into_data().assert_eq(&TensorData::from([[0.0, 50.0, 30.0]]), false);
    /// ```
    pub fn map(self, change: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Self {
        let shape = self.values.dims();
        let values = change(self.values);
        assert!(
            values.dims() == shape,
            "Compressed::map: the values were {shape:?} and are now {:?}",
            values.dims(),
        );
        Self { values, ..self }
    }

    /// Whether the gradient of products with these rows is added up by atomics: a little faster on large graphs whose nodes have few
    /// edges, but **not deterministic**, it rounds differently from run to run. f32 on devices that have atomic additions of f32, and planes that can wait for themselves;
    /// without effect elsewhere. Default: no.
    pub fn with_atomic_gradient(self, atomic: bool) -> Self {
        Self { atomic, ..self }
    }

    /// What was said to [`Compressed::with_atomic_gradient`].
    pub(super) fn atomic(&self) -> bool {
        self.atomic
    }

    /// The dense matrix, `+0` where nothing was kept. Differentiable: the gradient at the kept places goes to the values.
    pub fn to_dense(&self) -> Tensor<2> {
        Tensor::from_dispatch(<Dispatch as AggregateOps>::expand(
            self.values.clone().into_dispatch(),
            self.columns.clone().into_dispatch(),
            self.width,
        ))
    }
}

/// The `k` greatest elements of each row as compressed rows, in one pass and without a dense intermediate.
///
/// Members, ties, NaN and cost are those of [`topk`](crate::topk::topk) in index order; the gradient goes back to the places they
/// came from.
///
/// # Shapes
///
/// - `x`: `[rows, width]` of f32, f64, f16 or bf16, `width` at most [`MAX_COLS`].
///
/// # Panics
///
/// If `k > width`, `width > MAX_COLS`, the device lacks the dtype, or the eps of [`Method::Precision`] is negative or not finite.
pub fn sparse_topk(x: Tensor<2>, k: usize, method: Method) -> Compressed {
    let [_, width] = x.dims();
    let dtype = x.dtype();
    assert!(
        k <= width,
        "sparse_topk: k = {k} is greater than the {width} elements of a row"
    );
    assert!(
        width <= MAX_COLS,
        "sparse_topk: rows of {width} elements are longer than the limit of {MAX_COLS}"
    );
    if let Method::Precision(eps) = method {
        assert!(
            eps.is_finite() && eps >= 0.0,
            "sparse_topk: precision eps = {eps} is not a finite number at or above 0"
        );
    }
    assert!(
        dtype.is_float() && x.device().supports_dtype(dtype),
        "sparse_topk: dtype {dtype:?} is not supported here (supported: f32, f16, bf16, f64 where the device has it)",
    );
    let spec = TopkSpec {
        k,
        largest: true,
        sorted: false,
        method,
        index: column_dtype(&x.device(), width),
    };
    let (values, columns) =
        <Dispatch as SparsekOps>::topk_float(x.into_dispatch(), Lengths::Whole, spec);
    Compressed {
        values: Tensor::from_dispatch(values),
        columns: Tensor::from_dispatch(columns),
        width,
        atomic: false,
    }
}

/// The narrowest dtype for columns of rows of `width` elements that the device stores.
fn column_dtype(device: &Device, width: usize) -> IntDType {
    let fitting = [(IntDType::U8, 1 << 8), (IntDType::U16, 1 << 16)];
    let narrow = fitting
        .into_iter()
        .find(|&(dtype, limit)| width <= limit && device.supports_dtype(DType::from(dtype)));
    narrow.map_or(IntDType::U32, |(dtype, _)| dtype)
}
