//! Sums are products by [`spmm()`]: deterministic and differentiable.

use std::{fmt, str::FromStr};

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{
    adjacency::Adjacency,
    csr::Csr,
    error::CsrError,
    pattern::Pattern,
    repeat::repeat,
    spmm::{spmm, spmm_max},
};
use crate::io::memory;

/// Row norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Norm {
    /// Σ |x|.
    L1,
    /// √Σ x².
    L2,
    /// max |x|.
    Max,
}

impl fmt::Display for Norm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::L1 => "l1",
            Self::L2 => "l2",
            Self::Max => "max",
        })
    }
}

/// Unknown norm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no norm is called {name}; there are l1, l2 and max")]
pub struct UnknownNorm {
    /// Name.
    pub name: String,
}

impl FromStr for Norm {
    type Err = UnknownNorm;

    fn from_str(text: &str) -> Result<Self, UnknownNorm> {
        let all = [Self::L1, Self::L2, Self::Max];
        let found = all.into_iter().find(|norm| norm.to_string() == text);
        found.ok_or_else(|| UnknownNorm { name: text.into() })
    }
}

impl Csr {
    /// Norm per row: `[rows]`, f64 for f64, else f32; 0 for empty rows.
    ///
    /// L2 squares neither overflow nor vanish. Differentiable, with slope 0 at 0. NaN makes its row
    /// NaN, or any value with [`Norm::Max`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::{Csr, Norm};
    ///
    /// let x = Tensor::<2>::from_data([[3.0, -4.0], [0.0, 2.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap();
    /// a.row_norms(Norm::L1).into_data().assert_eq(&TensorData::from([7.0, 2.0]), false);
    /// a.row_norms(Norm::L2).into_data().assert_eq(&TensorData::from([5.0, 2.0]), false);
    /// ```
    pub fn row_norms(&self, norm: Norm) -> Tensor<1> {
        if self.nnz() == 0 {
            return zeros(self.rows(), self.values());
        }
        let Parts { divisors, norms, .. } = self.parts(wide(self.values().clone()), norm);
        norms * divisors
    }

    /// Divides rows by their norm, unless 0: scikit-learn's `normalize`. Differentiable.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::{Csr, Norm};
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 3.0], [0.0, 0.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap().normalize(Norm::L1);
    /// a.values().to_data().assert_eq(&TensorData::from([0.25, 0.75]), false);
    /// ```
    pub fn normalize(&self, norm: Norm) -> Self {
        if self.nnz() == 0 {
            return self.clone();
        }
        self.normalized(wide(self.values().clone()), norm)
    }

    /// Fits and applies [`Tfidf`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData, Tolerance};
    /// use sparsek::sparse::Csr;
    ///
    /// let counts = Tensor::<2>::from_data([[1.0, 2.0], [0.0, 3.0]], &Device::flex());
    /// let weighted = Csr::from_dense(counts).unwrap().tfidf();
    /// let expected = TensorData::from([0.5749, 0.8182, 1.0]);
    /// let tolerance = Tolerance::absolute(1e-4);
    /// weighted.values().to_data().assert_approx_eq::<f32>(&expected, tolerance);
    /// ```
    pub fn tfidf(&self) -> Self {
        Tfidf::fit(self).apply(self)
    }

    /// ln(1 + x) per entry; NaN below -1. Differentiable. Panics for f64 on Vulkan and WebGPU.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[0.0, 1.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap().log1p();
    /// a.values().to_data().assert_eq(&TensorData::from([2f32.ln()]), false);
    /// ```
    pub fn log1p(&self) -> Self {
        assert!(
            has_logarithms(&self.device(), self.dtype()),
            "Csr::log1p: the device has no logarithms of f64"
        );
        if self.nnz() == 0 {
            return self.clone();
        }
        self.with_wide(wide(self.values().clone()).log1p())
    }

    /// Divides columns by their standard deviation: scikit-learn's `scale(a, with_mean=False)`.
    ///
    /// Deviations below 10 ε (1.2e-6, or 2.2e-15 for f64) count as 1. Differentiable.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[0.0, 1.0], [4.0, 1.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap().scale();
    /// a.values().to_data().assert_eq(&TensorData::from([1.0, 2.0, 1.0]), false);
    /// ```
    pub fn scale(&self) -> Self {
        if self.nnz() == 0 {
            return self.clone();
        }
        let deviations = root(self.col_variances(0));
        let epsilon = match deviations.dtype() {
            DType::F64 => f64::EPSILON,
            _ => f64::from(f32::EPSILON),
        };
        let small = deviations.clone().lower_elem(10.0 * epsilon);
        let divisors = repeat(deviations.mask_fill(small, 1.0), self.pattern().indices());
        self.with_wide(wide(self.values().clone()) / divisors)
    }

    /// Variance per column, absent entries as 0: `[cols]`, f64 for f64, else f32.
    ///
    /// Divides by `rows - ddof`, as numpy's `var`; 0 without entries. Differentiable.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let x = Tensor::<2>::from_data([[0.0, 1.0], [4.0, 1.0]], &Device::flex());
    /// let a = Csr::from_dense(x).unwrap();
    /// a.col_variances(0).into_data().assert_eq(&TensorData::from([4.0, 0.0]), false);
    /// a.col_variances(1).into_data().assert_eq(&TensorData::from([8.0, 0.0]), false);
    /// ```
    pub fn col_variances(&self, ddof: usize) -> Tensor<1> {
        if self.nnz() == 0 {
            return zeros(self.cols(), self.values());
        }
        let values = wide(self.values().clone());
        let rows = self.rows() as f64;
        let (transposed, entries) = self.pattern().transpose();
        let absent = transposed.indptr().windows(2);
        let absent = absent.map(|ends| rows - f64::from(ends[1] - ends[0])).collect();
        let absent = factors(absent, &values);
        let groups = Groups::new(transposed.indptr().to_vec(), entries, &values);
        let means = groups.sums(values.clone()) / rows;
        let differences = values - repeat(means.clone(), self.pattern().indices());
        let squares = groups.sums(differences.clone() * differences);
        (squares + means.clone() * means * absent) / (rows - ddof as f64)
    }

    /// Multiplies rows by factors, `[rows]`. Differentiable for values and factors. Panics if
    /// lengths differ.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let device = Device::flex();
    /// let x = Tensor::<2>::from_data([[0.0, 1.0], [4.0, 1.0]], &device);
    /// let a = Csr::from_dense(x).unwrap();
    /// let a = a.scale_rows(Tensor::from_data([2.0, 0.5], &device));
    /// a.values().to_data().assert_eq(&TensorData::from([2.0, 2.0, 0.5]), false);
    /// ```
    pub fn scale_rows(&self, factors: Tensor<1>) -> Self {
        let (found, rows) = (factors.dims()[0], self.rows());
        assert!(found == rows, "scale_rows: {found} factors for {rows} rows");
        self.times(factors, &self.pattern().row_ids())
    }

    /// Multiplies columns by factors, `[cols]`, as [`scale_rows`](Csr::scale_rows).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::Csr;
    ///
    /// let device = Device::flex();
    /// let x = Tensor::<2>::from_data([[0.0, 1.0], [4.0, 1.0]], &device);
    /// let a = Csr::from_dense(x).unwrap();
    /// let a = a.scale_cols(Tensor::from_data([0.5, 3.0], &device));
    /// a.values().to_data().assert_eq(&TensorData::from([3.0, 2.0, 3.0]), false);
    /// ```
    pub fn scale_cols(&self, factors: Tensor<1>) -> Self {
        let (found, cols) = (factors.dims()[0], self.cols());
        assert!(found == cols, "scale_cols: {found} factors for {cols} columns");
        self.times(factors, self.pattern().indices())
    }

    fn times(&self, factors: Tensor<1>, of_entries: &[u32]) -> Self {
        if self.nnz() == 0 {
            return self.clone();
        }
        let values = wide(self.values().clone());
        let factors = factors.cast(values.dtype());
        self.with_wide(values * repeat(factors, of_entries))
    }

    fn with_wide(&self, values: Tensor<1>) -> Self {
        self.with_values(values.cast(self.dtype())).expect("a value for each entry")
    }

    fn normalized(&self, values: Tensor<1>, norm: Norm) -> Self {
        let Parts { divided, norms, .. } = self.parts(values, norm);
        let zero = norms.clone().equal_elem(0.0);
        let norms = repeat(norms.mask_fill(zero, 1.0), &self.pattern().row_ids());
        self.with_wide(divided / norms)
    }

    fn parts(&self, values: Tensor<1>, norm: Norm) -> Parts {
        let entries = (0..self.nnz() as u32).collect();
        let groups = Groups::new(self.pattern().indptr().to_vec(), entries, &values);
        let ones = || Tensor::ones([groups.count], (&values.device(), values.dtype()));
        match norm {
            Norm::L1 => {
                let norms = groups.sums(values.clone().abs());
                Parts { divisors: ones(), divided: values, norms }
            }
            Norm::Max => {
                let norms = groups.greatest(values.clone().abs());
                Parts { divisors: ones(), divided: values, norms }
            }
            Norm::L2 => {
                // Any constant cancels, so it has no gradient.
                let divisors = groups.greatest(values.clone().detach().abs());
                let most = match divisors.dtype() {
                    DType::F64 => f64::MAX,
                    _ => f64::from(f32::MAX),
                };
                let zero = divisors.clone().equal_elem(0.0);
                let infinite = divisors.clone().greater_elem(most);
                let divisors = divisors.mask_fill(zero, 1.0).mask_fill(infinite, 1.0);
                let divided = values / repeat(divisors.clone(), &self.pattern().row_ids());
                let norms = root(groups.sums(divided.clone() * divided.clone()));
                Parts { divisors, divided, norms }
            }
        }
    }
}

/// Products that stay in range.
struct Parts {
    /// Per row.
    divisors: Tensor<1>,
    divided: Tensor<1>,
    /// Of divided rows.
    norms: Tensor<1>,
}

fn has_logarithms(device: &Device, dtype: DType) -> bool {
    #[cfg(feature = "cubecl")]
    if let Some(found) = crate::backends::ask_client(device, |client| {
        let dtype = burn::backend::cubecl::dtype_to_elem_type(dtype);
        sparsek_kernels::has_logarithms(client, dtype)
    }) {
        return found;
    }
    let _ = (device, dtype);
    true
}

/// Inverse document frequency per column: `ln((1 + n) / (1 + df)) + 1` for n rows, df with the
/// column.
///
/// scikit-learn's default `TfidfTransformer`: smoothed, [`Norm::L2`], explicit zeros counted.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Csr, Tfidf};
///
/// let device = Device::flex();
/// let train = Csr::from_dense(Tensor::from_data([[1.0, 2.0], [0.0, 3.0]], &device)).unwrap();
/// let tfidf = Tfidf::fit(&train);
/// assert_eq!(tfidf.idf(), [1.5f64.ln() + 1.0, 1.0]);
/// let test = Csr::from_dense(Tensor::from_data([[0.0, 5.0]], &device)).unwrap();
/// let test = tfidf.transform(&test).unwrap();
/// test.values().to_data().assert_eq(&TensorData::from([1.0]), false);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tfidf {
    idf: Vec<f64>,
}

impl Tfidf {
    /// Counts rows per column. Panics if counts exceed [`memory::limit`].
    pub fn fit(counts: &Csr) -> Self {
        let cols = counts.cols();
        let asked = memory::product(&[cols, size_of::<u32>() + size_of::<f64>()]);
        if let Err(error) = memory::check(format_args!("frequencies of {cols} columns"), asked) {
            panic!("{error}");
        }
        let mut frequencies = vec![0u32; cols];
        for &column in counts.pattern().indices() {
            frequencies[column as usize] += 1;
        }
        let rows = counts.rows() as f64;
        let idf = frequencies.into_iter().map(|of| ((1.0 + rows) / (1.0 + f64::from(of))).ln());
        Self { idf: idf.map(|logarithm| logarithm + 1.0).collect() }
    }

    /// Factor per column.
    pub fn idf(&self) -> &[f64] {
        &self.idf
    }

    /// Multiplies columns by their factors, then normalizes rows. Differentiable. Error:
    /// [`CsrError::Size`].
    pub fn transform(&self, counts: &Csr) -> Result<Csr, CsrError> {
        let (found, expected) = (counts.cols(), self.idf.len());
        match found == expected {
            true => Ok(self.apply(counts)),
            false => Err(CsrError::Size { what: "columns", found, expected }),
        }
    }

    fn apply(&self, counts: &Csr) -> Csr {
        if counts.nnz() == 0 {
            return counts.clone();
        }
        let values = wide(counts.values().clone());
        let columns = counts.pattern().indices().iter();
        let idf = columns.map(|&column| self.idf[column as usize]).collect();
        let weighted = values.clone() * factors(idf, &values);
        counts.normalized(weighted, Norm::L2)
    }
}

struct Groups {
    count: usize,
    adjacency: Adjacency,
}

impl Groups {
    /// Group `g` has `entries[indptr[g]..indptr[g + 1]]`.
    fn new(indptr: Vec<u32>, entries: Vec<u32>, values: &Tensor<1>) -> Self {
        let count = indptr.len() - 1;
        let pattern = Pattern::new(count, entries.len(), indptr, entries);
        let pattern = pattern.expect("offsets and entries of a pattern");
        Self { count, adjacency: Adjacency::new(&pattern, &values.device()) }
    }

    fn sums(&self, values: Tensor<1>) -> Tensor<1> {
        let total = self.adjacency.cols();
        spmm(&self.adjacency, values.reshape([total, 1])).reshape([self.count])
    }

    /// 0 in empty groups.
    fn greatest(&self, magnitudes: Tensor<1>) -> Tensor<1> {
        let total = self.adjacency.cols();
        spmm_max(&self.adjacency, magnitudes.reshape([total, 1])).reshape([self.count])
    }
}

fn zeros(count: usize, like: &Tensor<1>) -> Tensor<1> {
    let dtype = sum_dtype(like.dtype());
    let none = TensorData::new(vec![0f32; count], [count]);
    Tensor::from_data(none, (&like.device(), dtype))
}

fn wide(values: Tensor<1>) -> Tensor<1> {
    let dtype = sum_dtype(values.dtype());
    values.cast(dtype)
}

fn sum_dtype(values: DType) -> DType {
    match values {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

fn factors(numbers: Vec<f64>, like: &Tensor<1>) -> Tensor<1> {
    let shape = [numbers.len()];
    Tensor::from_data(TensorData::new(numbers, shape), (&like.device(), like.dtype()))
}

/// Slope 0 at 0.
fn root(squares: Tensor<1>) -> Tensor<1> {
    let zero = squares.clone().equal_elem(0.0);
    squares.mask_fill(zero.clone(), 1.0).sqrt().mask_fill(zero, 0.0)
}
