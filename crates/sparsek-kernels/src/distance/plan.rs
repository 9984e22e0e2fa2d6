//! HEAD

use cubecl::prelude::*;

use super::{
    dense_tile, inverted,
    metric::Distance,
    prepare::columns::row_tiles,
    semiring::{Dense, Inner, Needs},
    tensor_core,
    tuning::{DENSE_EITHER, DENSE_HALVES, DENSE_ONE_PASS, DENSE_TENSOR_CORE, DENSE_UNION},
    types::{Matrix, Routine},
};
use crate::{device::accumulator, error::KernelError};

/// Whether it matters to the choice for an index of so many entries for each place that values are whole numbers, as
/// [`greatest`](crate::distance::greatest) tells.
pub fn needs_values(needs: &Needs, density: f64) -> bool {
    needs.inner.is_some_and(|inner| inner != Inner::Ones) && density >= DENSE_TENSOR_CORE
}

fn density(matrix: &Matrix) -> f64 {
    let places = matrix.rows.max(1) as f64 * matrix.cols.max(1) as f64;
    matrix.nnz as f64 / places
}

/// The routine for an index of the second matrix where none is forced. Rows of the first one are compared, if that is known; else
/// the product, for which they must be whole numbers, is not chosen. Given besides is the density of the matrix of which it is a part, if it
/// is one: its parts have one routine, so that they do not round differently.
pub fn choose(
    client: &Client,
    distance: &dyn Distance,
    compared: Option<&Matrix>,
    matrix: &Matrix,
    whole: Option<f64>,
) -> Routine {
    let needs = distance.needs();
    let density = whole.unwrap_or_else(|| density(matrix));
    let suits = |matrix| tensor_core::suits(&needs, matrix);
    if density >= DENSE_TENSOR_CORE
        && compared.is_some_and(suits)
        && suits(matrix)
        && tensor_core::check(client, &needs, matrix).is_ok()
    {
        return Routine::TensorCore;
    }
    let least = match needs.dense {
        Some(Dense::Products | Dense::Left) if needs.union => DENSE_UNION,
        Some(Dense::Products | Dense::Left) => DENSE_ONE_PASS,
        Some(Dense::Halves) => DENSE_HALVES,
        Some(Dense::Either) => DENSE_EITHER,
        None => f64::INFINITY,
    };
    if density >= least && dense_tile::check(client, &needs, matrix).is_ok() {
        Routine::DenseTile
    } else if inverted::check(client, &needs, matrix).is_ok() {
        Routine::Inverted
    } else {
        Routine::Merge
    }
}

/// Parts begin at multiples of so many rows, so that their offsets lie where every device can bind them.
const STEP: usize = 1024;

/// Rows of a matrix that one [`Index`](crate::distance::Index) should have so that its counters by column take at most so many bytes: all,
/// or a multiple of 1024. Only [`Routine::Inverted`] has counters, one for each column of each tile of rows.
///
/// # Errors
///
/// [`KernelError`] for a dtype that is not a float or that the device lacks.
pub fn index_part(
    client: &Client,
    matrix: &Matrix,
    distance: &dyn Distance,
    routine: Routine,
    bytes: usize,
) -> Result<usize, KernelError> {
    let needs = distance.needs();
    let counted = routine == Routine::Inverted;
    let dtype = accumulator(client, matrix.dtype)?;
    let mut part = matrix.rows;
    let mut parts = 1;
    // A first counter and a last one, of i32.
    let fits = |rows: usize| match row_tiles(rows, matrix.cols, dtype, &needs) {
        Ok([_, tiles]) => tiles == 1 || 2 * size_of::<i32>() * tiles * matrix.cols <= bytes,
        Err(_) => false,
    };
    while counted && part > STEP && !fits(part) {
        parts += 1;
        part = matrix.rows.div_ceil(parts).next_multiple_of(STEP);
    }
    Ok(part)
}
