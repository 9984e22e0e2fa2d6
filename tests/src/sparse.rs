//! Seeded sparse matrices.

use burn::tensor::{Device, Tensor, TensorData};
use sparsek::sparse::{self, Pattern};

use crate::data::Random;
use crate::element::Element;
use crate::oracle::spmm::Csr;

/// Pattern of the stored entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Every element with the same probability.
    Uniform,
    /// Uniform, but rows 0, 3, 6, … and the last row are empty.
    EmptyRows,
    /// Uniform, but rows 1, 5, 9, … are full.
    FullRows,
    /// Power law: low columns and every eighth row have most entries.
    Skewed,
}

/// Stored values. All but `Normal` and `Positive` and their short sums are exact in f16 and bf16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Standard normal, rounded to f32.
    Normal,
    /// Uniform in (0, 1], rounded to f32: for probabilities.
    Positive,
    /// Nonzero multiples of 1/16 in -4..=4.
    Dyadic,
    /// 1, 2 or 3: many ties.
    Counts,
    /// 0, ±3/4 or ±1: many ties and explicit zeros.
    FewValues,
    /// `Dyadic` with a third of the entries explicit zeros.
    Zeros,
}

/// Recipe for a random CSR matrix; columns ascend without duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Sparse {
    /// Name in case names.
    pub name: &'static str,
    pub rows: usize,
    pub cols: usize,
    pub density: f64,
    pub structure: Structure,
    pub values: Values,
}

impl Sparse {
    /// One recipe of every kind.
    pub const ALL: [Self; 14] = [
        Self::new("uniform", [37, 50], 0.2, Structure::Uniform, Values::Dyadic),
        Self::new("normal", [33, 65], 0.3, Structure::Uniform, Values::Normal),
        Self::new("positive", [29, 40], 0.4, Structure::Uniform, Values::Positive),
        Self::new("counts", [40, 12], 0.3, Structure::Uniform, Values::Counts),
        Self::new("zeros", [31, 31], 0.3, Structure::Uniform, Values::Zeros),
        Self::new("empty-rows", [32, 24], 0.3, Structure::EmptyRows, Values::Dyadic),
        Self::new("full-rows", [20, 300], 0.05, Structure::FullRows, Values::Dyadic),
        Self::new("skewed", [64, 128], 0.1, Structure::Skewed, Values::Dyadic),
        Self::new("wide", [3, 5000], 0.01, Structure::Uniform, Values::Dyadic),
        Self::new("one-column", [17, 1], 0.6, Structure::Uniform, Values::Dyadic),
        Self::new("one-row", [1, 33], 0.5, Structure::Uniform, Values::Dyadic),
        Self::new("nothing", [9, 11], 0.0, Structure::Uniform, Values::Dyadic),
        Self::new("no-rows", [0, 11], 0.5, Structure::Uniform, Values::Dyadic),
        Self::new("no-columns", [9, 0], 0.5, Structure::Uniform, Values::Dyadic),
    ];

    pub const fn new(
        name: &'static str,
        [rows, cols]: [usize; 2],
        density: f64,
        structure: Structure,
        values: Values,
    ) -> Self {
        Self { name, rows, cols, density, structure, values }
    }

    pub const fn with_rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    pub const fn with_values(self, values: Values) -> Self {
        Self { values, ..self }
    }

    pub fn matrix(&self, seed: u64) -> Csr {
        let mut random = Random::new(seed ^ 0x5bd1_e995);
        let (mut indptr, mut indices, mut weights) = (vec![0], Vec::new(), Vec::new());
        for row in 0..self.rows {
            for col in 0..self.cols {
                if random.uniform() < self.probability(row, col) {
                    indices.push(col as u32);
                    weights.push(self.values.sample(&mut random));
                }
            }
            indptr.push(indices.len() as u32);
        }
        Csr { rows: self.rows, cols: self.cols, indptr, indices, weights }
    }

    fn probability(&self, row: usize, col: usize) -> f64 {
        match self.structure {
            Structure::EmptyRows if row.is_multiple_of(3) || row + 1 == self.rows => 0.0,
            Structure::FullRows if row % 4 == 1 => 1.0,
            Structure::Skewed => {
                let popular = self.cols as f64 / (4 * col + 4) as f64;
                let active = if row % 8 == 3 { 4.0 } else { 0.5 };
                self.density * popular * active
            }
            _ => self.density,
        }
    }
}

impl Values {
    fn sample(self, random: &mut Random) -> f64 {
        match self {
            Self::Normal => f64::from(random.normal() as f32),
            Self::Positive => f64::from((1.0 - random.uniform()) as f32),
            Self::Counts => 1.0 + random.below(3) as f64,
            Self::FewValues => [-1.0, -0.75, 0.0, 0.75, 1.0][random.below(5)],
            Self::Zeros if random.below(3) == 0 => 0.0,
            Self::Dyadic | Self::Zeros => {
                let magnitude = (1 + random.below(64)) as f64 / 16.0;
                if random.below(2) == 0 { magnitude } else { -magnitude }
            }
        }
    }
}

/// Copies of one row, each with one entry scaled by 1.0001, so that differences of norms cancel.
pub fn near_duplicates(rows: usize, cols: usize, seed: u64) -> Csr {
    let recipe = Sparse::new("", [1, cols], 0.5, Structure::Uniform, Values::Normal);
    let first = recipe.matrix(seed);
    let entries = first.indices.len();
    let mut csr = Csr {
        rows,
        cols,
        indptr: (0..=rows).map(|i| (i * entries) as u32).collect(),
        indices: first.indices.repeat(rows),
        weights: first.weights.repeat(rows),
    };
    let mut random = Random::new(seed);
    for row in (1..rows).filter(|_| entries > 0) {
        let weight = &mut csr.weights[row * entries + random.below(entries)];
        *weight = f64::from((*weight * 1.0001) as f32);
    }
    csr
}

/// The matrix with weights rounded to `T`.
pub fn rounded<T: Element>(csr: &Csr) -> Csr {
    let weights = csr.weights.iter().map(|&w| T::of(w).wide_f64());
    Csr { weights: weights.collect(), ..csr.clone() }
}

/// Rows of log-counts, whose sums round to one side. Row `i` stores one in `one_of[i]` columns.
pub fn counts(cols: u32, one_of: &[usize], seed: u64) -> Csr {
    let mut random = Random::new(seed);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for &of in one_of {
        indices.extend((0..cols).filter(|_| random.below(of) == 0));
        indptr.push(indices.len() as u32);
    }
    let weights = indices.iter();
    let weights = weights.map(|_| f64::from(random.below(3) as u32 + 2).ln());
    Csr { rows: one_of.len(), cols: cols as usize, weights: weights.collect(), indptr, indices }
}

/// The pattern on the host.
///
/// # Panics
///
/// If the arrays are invalid.
pub fn pattern(csr: &Csr) -> Pattern {
    Pattern::new(csr.rows, csr.cols, csr.indptr.clone(), csr.indices.clone())
        .expect("the pattern is valid")
}

/// Uploads a vector; the device must support `T`.
pub fn vector<T: Element>(values: &[f64], device: &Device) -> Tensor<1> {
    let data: Vec<T> = values.iter().map(|&x| T::of(x)).collect();
    let shape = [data.len()];
    Tensor::from_data(TensorData::new(data, shape), (device, T::dtype()))
}

/// Uploads the matrix; the device must support `T`.
///
/// # Panics
///
/// If its columns do not ascend.
pub fn upload<T: Element>(csr: &Csr, device: &Device) -> sparse::Csr {
    sparse::Csr::new(pattern(csr), vector::<T>(&csr.weights, device)).expect("columns ascend")
}
