use burn::{
    backend::Dispatch,
    tensor::{DType, Device, Int, IntDType, Tensor},
};
use sparsek_kernels::topk::{Method, TopkOptions};

use crate::{
    ops::{Bounds, SpmmOps, TopkOps, TopkSpec},
    topk::{LongRows, TopkError, check_indexed, or_panic},
};

/// A matrix `[rows, width]` with k elements per row: CBSR of MaxK-GNN (Peng et al., 2024).
///
/// Columns are u8 up to width 256, u16 up to 65,536, else u32; wider if the device lacks these.
/// Clones share buffers.
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

    /// Ascending columns: `[rows, k]`.
    pub fn columns(&self) -> &Tensor<2, Int> {
        &self.columns
    }

    /// Value dtype.
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

    /// The dense matrix, `+0` elsewhere. Differentiable.
    pub fn to_dense(&self) -> Tensor<2> {
        Tensor::from_dispatch(<Dispatch as SpmmOps>::expand(
            self.values.clone().into_dispatch(),
            self.columns.clone().into_dispatch(),
            self.width,
        ))
    }
}

/// Keeps the `k` greatest elements per row of `x`, `[rows, width]`.
///
/// Contract of [`topk`](crate::topk::topk), with ≤ [`MAX_COLS`](crate::topk::MAX_COLS) columns.
#[track_caller]
pub fn sparse_topk(x: Tensor<2>, k: usize, method: Method) -> Compressed {
    or_panic("sparse_topk", try_sparse_topk(x, k, method))
}

/// Like [`sparse_topk`], but returns the error.
pub fn try_sparse_topk(x: Tensor<2>, k: usize, method: Method) -> Result<Compressed, TopkError> {
    let [_, width] = x.dims();
    let options = TopkOptions::new(k).with_method(method);
    let index = column_dtype(&x.device(), width);
    check_indexed(&x, &options, 1, LongRows::Refused, index)?;
    let spec = TopkSpec { options, index };
    let (values, columns) =
        <Dispatch as TopkOps>::topk_float(x.into_dispatch(), Bounds::Whole, spec);
    Ok(Compressed {
        values: Tensor::from_dispatch(values),
        columns: Tensor::from_dispatch(columns),
        width,
    })
}

fn column_dtype(device: &Device, width: usize) -> IntDType {
    let fitting = [(IntDType::U8, 1 << 8), (IntDType::U16, 1 << 16)];
    let narrow = fitting
        .into_iter()
        .find(|&(dtype, limit)| width <= limit && device.supports_dtype(DType::from(dtype)));
    narrow.map_or(IntDType::U32, |(dtype, _)| dtype)
}
