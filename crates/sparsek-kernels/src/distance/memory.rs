//! How much of an index is prepared at a time.

use crate::device::accumulator;
use cubecl::prelude::*;

use super::{Distance, Matrix, Routine, columns};
use crate::error::KernelError;

/// Parts begin at multiples of so many rows, so that their offsets lie where every device can bind them.
const STEP: usize = 1024;

/// Rows of a matrix that one [`Index`](super::Index) should have so that its counters by column take at most so many bytes: all,
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
    let fits = |rows: usize| match columns::cut(rows, matrix.cols, dtype, &needs) {
        Ok([_, tiles]) => tiles == 1 || 2 * size_of::<i32>() * tiles * matrix.cols <= bytes,
        Err(_) => false,
    };
    while counted && part > STEP && !fits(part) {
        parts += 1;
        part = matrix.rows.div_ceil(parts).next_multiple_of(STEP);
    }
    Ok(part)
}
