//! A case with its input.

use std::ops::Range;

use clap::ValueEnum;
use rayon::prelude::*;
use sparsek_kernels::topk::{Method, Routine, TopkOptions};
use sparsek_tests::{
    data::{Distribution, Random},
    element::Element,
};

use crate::case::RowCase;

/// First seed of gradients, distinct from the seeds of inputs.
const GRADIENT_SEEDS: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Values and indices in index order.
    Pairs,
    /// Indices only, in their order.
    Indices,
    /// Values and indices sorted by value.
    Sorted,
    /// The dense masked rows.
    Mask,
    /// The gradient of the input, from the gradient of the values.
    Gradient,
}

impl Form {
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Whether it selects whole or ragged rows, and no more.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Pairs | Self::Indices | Self::Sorted)
    }
}

/// Which part of each row exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Lengths {
    /// All lengths alike often.
    Uniform,
    /// At most an eighth of a row.
    Short,
    /// One whole row, the others of an eighth.
    OneLong,
    /// From 1 up to a whole row, as under a causal mask.
    Ramp,
    /// Half a row from any column on, as starts and ends.
    Window,
}

impl Lengths {
    pub fn name(self) -> String {
        self.to_possible_value().expect("a name").get_name().into()
    }

    /// Columns of each row.
    pub fn of(self, rows: usize, cols: usize) -> Vec<Range<u32>> {
        let mut random = Random::new(LENGTH_SEED);
        let mut below = |most: usize| 1 + random.below(most);
        let columns = |row: usize| match self {
            Self::Uniform => 0..below(cols),
            Self::Short => 0..below(cols / 8),
            Self::OneLong => {
                if row == rows / 2 {
                    0..cols
                } else {
                    0..cols / 8
                }
            }
            Self::Ramp => 0..((row + 1) * cols).div_ceil(rows),
            Self::Window => {
                let start = below(cols - cols / 2) - 1;
                start..start + cols / 2
            }
        };
        (0..rows).map(columns).map(|columns| columns.start as u32..columns.end as u32).collect()
    }
}

const LENGTH_SEED: u64 = 1 << 41;

pub struct Problem<'a, T> {
    pub case: &'a RowCase,
    pub form: Form,
    pub method: Method,
    pub routine: Option<Routine>,
    /// Columns of ragged rows; all from 0 are lengths.
    pub columns: Option<Vec<Range<u32>>>,
    /// `[rows, cols]`.
    pub input: &'a [T],
    /// Gradients of the values, `[rows, k]`, for [`Form::Gradient`]; else empty.
    pub gradients: Vec<T>,
}

impl<'a, T: Element> Problem<'a, T> {
    /// A problem for exact selection.
    pub fn new(case: &'a RowCase, form: Form, input: &'a [T]) -> Self {
        let gradients = if form == Form::Gradient {
            seeded_rows(case.rows, case.k, Distribution::Normal, GRADIENT_SEEDS)
        } else {
            Vec::new()
        };
        Self { case, form, method: Method::Exact, routine: None, columns: None, input, gradients }
    }

    pub fn options(&self) -> TopkOptions {
        TopkOptions {
            method: self.method,
            sorted: self.form == Form::Sorted,
            ..TopkOptions::new(self.case.k)
        }
    }

    /// The first column that exists, and the elements.
    pub fn row(&self, row: usize) -> (usize, &[T]) {
        let columns = self.columns.as_ref().map(|columns| &columns[row]);
        let columns = columns.map_or(0..self.case.cols, |c| c.start as usize..c.end as usize);
        (columns.start, &self.input[row * self.case.cols..][columns])
    }

    /// Compulsory traffic in bytes.
    pub fn bytes(&self) -> usize {
        let whole = Self::traffic(self.case, self.form);
        let columns = self.columns.iter().flatten();
        let missing: usize = columns.map(|columns| self.case.cols - columns.len()).sum();
        whole - missing * size_of::<T>()
    }

    /// Compulsory traffic of a case in bytes.
    pub fn traffic(case: &RowCase, form: Form) -> usize {
        let RowCase { rows, cols, k, .. } = *case;
        let size = size_of::<T>();
        let pairs = (size + size_of::<u32>()) * k;
        rows * match form {
            Form::Pairs | Form::Sorted | Form::Gradient => size * cols + pairs,
            Form::Indices => size * cols + size_of::<u32>() * k,
            Form::Mask => 2 * size * cols,
        }
    }
}

/// Draws rows from a distribution, each with a seed of its own.
pub fn seeded_rows<T: Element>(
    rows: usize,
    cols: usize,
    dist: Distribution,
    first_seed: u64,
) -> Vec<T> {
    let mut values = vec![T::of(0.0); rows * cols];
    if cols > 0 {
        values.par_chunks_mut(cols).enumerate().for_each(|(row, values)| {
            let mut random = Random::new(first_seed + row as u64);
            values.copy_from_slice(&dist.row::<T>(cols, &mut random));
        });
    }
    values
}
