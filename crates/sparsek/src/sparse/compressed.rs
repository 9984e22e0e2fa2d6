//! Compressed rows.

use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, IntDType, Tensor},
};
use sparsek_kernels::topk::{MAX_COLS, Method};

use crate::ops::{Lengths, SpmmOps, TopkOps, TopkSpec};

/// A matrix `[rows, width]` with k elements per row: the CBSR format of MaxK-GNN (Peng et al.,
/// 2024).
///
/// Values may be tracked by autodiff. Columns are u8 up to 256, u16 up to 65,536, else u32; wider
/// if the device lacks these. Cloning shares the buffers.
#[derive(Clone, Debug)]
pub struct Compressed {
    values: Tensor<2>,
    columns: Tensor<2, Int>,
    width: usize,
}

impl Compressed {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.values.dims()[0]
    }

    /// Elements per row.
    pub fn k(&self) -> usize {
        self.values.dims()[1]
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Kept elements: `[rows, k]`.
    pub fn values(&self) -> &Tensor<2> {
        &self.values
    }

    /// Their columns: `[rows, k]`, ascending.
    pub fn columns(&self) -> &Tensor<2, Int> {
        &self.columns
    }

    /// Dtype of the values.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Replaces the values; panics if the shape changes.
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

    /// The dense matrix, with `+0` elsewhere. Differentiable.
    pub fn to_dense(&self) -> Tensor<2> {
        Tensor::from_dispatch(<Dispatch as SpmmOps>::expand(
            self.values.clone().into_dispatch(),
            self.columns.clone().into_dispatch(),
            self.width,
        ))
    }
}

/// Compresses each row of `x`, `[rows, width]`, to its `k` greatest elements, in one pass.
///
/// Selection, ties, NaN, cost and gradient as [`topk`](crate::topk::topk). Panics if `k > width`,
/// `width > MAX_COLS`, the device lacks the dtype, or the eps of [`Method::Precision`] is negative
/// or not finite.
pub fn sparse_topk(x: Tensor<2>, k: usize, method: Method) -> Compressed {
    let [_, width] = x.dims();
    let dtype = x.dtype();
    assert!(k <= width, "sparse_topk: k = {k} is greater than the {width} elements of a row");
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
        "sparse_topk: dtype {dtype:?} is not supported here (supported: f32, f16, bf16, f64 \
         where the device has it)",
    );
    let spec = TopkSpec {
        k,
        largest: true,
        sorted: false,
        method,
        index: column_dtype(&x.device(), width),
    };
    let (values, columns) =
        <Dispatch as TopkOps>::topk_float(x.into_dispatch(), Lengths::Whole, spec);
    Compressed {
        values: Tensor::from_dispatch(values),
        columns: Tensor::from_dispatch(columns),
        width,
    }
}

/// Narrowest stored dtype for `width` columns.
fn column_dtype(device: &Device, width: usize) -> IntDType {
    let fitting = [(IntDType::U8, 1 << 8), (IntDType::U16, 1 << 16)];
    let narrow = fitting
        .into_iter()
        .find(|&(dtype, limit)| width <= limit && device.supports_dtype(DType::from(dtype)));
    narrow.map_or(IntDType::U32, |(dtype, _)| dtype)
}
