//! Seeded sparse matrices: every shape and content that a distance could trip over.

use burn::tensor::{Device, Tensor, TensorData};
use sparsek::sparse::{self, Pattern};

use crate::data::Random;
use crate::element::Element;
use crate::oracle::spmm::Csr;

/// Which elements are entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Each with the same probability.
    Uniform,
    /// As `Uniform`; every third row is empty, the first among them, and the last.
    EmptyRows,
    /// As `Uniform`; every fourth row is full, the second the first of them.
    FullRows,
    /// The first columns most of all, and few rows with many entries.
    Skewed,
}

/// What the entries hold. All but `Normal` and `Positive` are exact in f16 and bf16, and so are their sums of few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Standard normal, exact in f32.
    Normal,
    /// Uniform in 0..1 without 0, exact in f32: for rows that are probabilities.
    Positive,
    /// Multiples of 1/16 between -4 and 4, but not 0.
    Coarse,
    /// 1, 2 or 3: many ties.
    Counts,
    /// 0, 3/4 or 1, of either sign: many ties, and explicit zeros.
    Few,
    /// As `Coarse`, with every third entry an explicit zero.
    Zeros,
}

/// A random sparse matrix: its columns ascend, without duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Sparse {
    /// What to call it in the name of a case.
    pub name: &'static str,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// The share of the elements that are entries.
    pub density: f64,
    /// Which elements are entries.
    pub places: Places,
    /// What they hold.
    pub values: Values,
}

impl Sparse {
    /// One of every kind, from which cases pick by name or take all.
    pub const ALL: [Self; 14] = [
        Self::new("uniform", [37, 50], 0.2, Places::Uniform, Values::Coarse),
        Self::new("normal", [33, 65], 0.3, Places::Uniform, Values::Normal),
        Self::new("positive", [29, 40], 0.4, Places::Uniform, Values::Positive),
        Self::new("counts", [40, 12], 0.3, Places::Uniform, Values::Counts),
        Self::new("zeros", [31, 31], 0.3, Places::Uniform, Values::Zeros),
        Self::new(
            "empty-rows",
            [32, 24],
            0.3,
            Places::EmptyRows,
            Values::Coarse,
        ),
        Self::new(
            "full-rows",
            [20, 300],
            0.05,
            Places::FullRows,
            Values::Coarse,
        ),
        Self::new("skewed", [64, 128], 0.1, Places::Skewed, Values::Coarse),
        Self::new("wide", [3, 5000], 0.01, Places::Uniform, Values::Coarse),
        Self::new("one-column", [17, 1], 0.6, Places::Uniform, Values::Coarse),
        Self::new("one-row", [1, 33], 0.5, Places::Uniform, Values::Coarse),
        Self::new("nothing", [9, 11], 0.0, Places::Uniform, Values::Coarse),
        Self::new("no-rows", [0, 11], 0.5, Places::Uniform, Values::Coarse),
        Self::new("no-columns", [9, 0], 0.5, Places::Uniform, Values::Coarse),
    ];

    /// A matrix of this make.
    pub const fn new(
        name: &'static str,
        [rows, cols]: [usize; 2],
        density: f64,
        places: Places,
        values: Values,
    ) -> Self {
        Self {
            name,
            rows,
            cols,
            density,
            places,
            values,
        }
    }

    /// The same with other rows, to be compared with it.
    pub const fn with_rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    /// The same with other values.
    pub const fn with_values(self, values: Values) -> Self {
        Self { values, ..self }
    }

    /// The matrix of a seed.
    pub fn matrix(&self, seed: u64) -> Csr {
        let mut random = Random::new(seed ^ 0x5bd1_e995);
        let (mut indptr, mut indices, mut weights) = (vec![0], Vec::new(), Vec::new());
        for row in 0..self.rows {
            for col in 0..self.cols {
                if random.uniform() < self.chance(row, col) {
                    indices.push(col as u32);
                    weights.push(self.values.draw(&mut random));
                }
            }
            indptr.push(indices.len() as u32);
        }
        Csr {
            rows: self.rows,
            cols: self.cols,
            indptr,
            indices,
            weights,
        }
    }

    /// How likely an element is an entry.
    fn chance(&self, row: usize, col: usize) -> f64 {
        match self.places {
            Places::EmptyRows if row.is_multiple_of(3) || row + 1 == self.rows => 0.0,
            Places::FullRows if row % 4 == 1 => 1.0,
            Places::Skewed => {
                let popular = self.cols as f64 / (4 * col + 4) as f64;
                let active = if row % 8 == 3 { 4.0 } else { 0.5 };
                self.density * popular * active
            }
            _ => self.density,
        }
    }
}

impl Values {
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Normal => f64::from(random.normal() as f32),
            Self::Positive => f64::from((1.0 - random.uniform()) as f32),
            Self::Counts => 1.0 + random.below(3) as f64,
            Self::Few => [-1.0, -0.75, 0.0, 0.75, 1.0][random.below(5)],
            Self::Zeros if random.below(3) == 0 => 0.0,
            Self::Coarse | Self::Zeros => {
                let magnitude = (1 + random.below(64)) as f64 / 16.0;
                if random.below(2) == 0 {
                    magnitude
                } else {
                    -magnitude
                }
            }
        }
    }
}

/// Rows that are copies of one another but for one entry, by a ten-thousandth of it: differences of norms cancel.
pub fn near_duplicates(rows: usize, cols: usize, seed: u64) -> Csr {
    let make = Sparse::new("", [1, cols], 0.5, Places::Uniform, Values::Normal);
    let first = make.matrix(seed);
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

/// The matrix with its weights rounded to what `T` can hold.
pub fn rounded<T: Element>(csr: &Csr) -> Csr {
    let weights = csr.weights.iter().map(|&w| T::of(w).wide_f64());
    Csr {
        weights: weights.collect(),
        ..csr.clone()
    }
}

/// Rows of few values, logarithms of counts, whose sums round to one side; each has one of so many of its columns, at random.
pub fn counts(cols: u32, one_of: &[usize], seed: u64) -> Csr {
    let mut random = Random::new(seed);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for &of in one_of {
        indices.extend((0..cols).filter(|_| random.below(of) == 0));
        indptr.push(indices.len() as u32);
    }
    let weights = indices.iter();
    let weights = weights.map(|_| f64::from(random.below(3) as u32 + 2).ln());
    Csr {
        rows: one_of.len(),
        cols: cols as usize,
        weights: weights.collect(),
        indptr,
        indices,
    }
}

/// The pattern on the host.
///
/// # Panics
///
/// If the arrays are not a pattern.
pub fn pattern(csr: &Csr) -> Pattern {
    Pattern::new(csr.rows, csr.cols, csr.indptr.clone(), csr.indices.clone())
        .expect("the pattern is valid")
}

/// A vector of `T` on a device, which must have the dtype.
pub fn vector<T: Element>(values: &[f64], device: &Device) -> Tensor<1> {
    let data: Vec<T> = values.iter().map(|&x| T::of(x)).collect();
    let shape = [data.len()];
    Tensor::from_data(TensorData::new(data, shape), (device, T::dtype()))
}

/// The matrix on a device, which must have the dtype.
///
/// # Panics
///
/// If its columns do not ascend.
pub fn upload<T: Element>(csr: &Csr, device: &Device) -> sparse::Csr {
    sparse::Csr::new(pattern(csr), vector::<T>(&csr.weights, device)).expect("columns ascend")
}
