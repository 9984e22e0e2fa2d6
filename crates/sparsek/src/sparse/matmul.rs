use burn::tensor::Tensor;

use super::{
    adjacency::Adjacency,
    csr::Csr,
    spmm::{Scaling, product},
};

impl Csr {
    /// `a @ x`, by [`spmm_weighted`](super::spmm_weighted): `[cols, d]` → `[rows, d]`. Gradients
    /// for `x` and the values.
    ///
    /// Transposes the pattern on the host; for repeated products, keep an [`Adjacency`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let device = Device::flex();
    /// let a = Tensor::<2>::from_data([[0.0, 2.0], [3.0, 1.0]], &device);
    /// let y = Csr::from_dense(a).unwrap().matmul(Tensor::from_data([[1.0], [10.0]], &device));
    /// y.into_data().assert_eq(&TensorData::from([[20.0], [13.0]]), false);
    /// ```
    pub fn matmul(&self, x: Tensor<2>) -> Tensor<2> {
        let adjacency = Adjacency::new(self.pattern(), &self.device());
        let scaling = Scaling::default().with_weights(self.values().clone());
        product("matmul", &adjacency, x, &scaling)
    }
}
