//! Chooses an index's routine and rows.
//!
//! ```text
//! density ≥ DENSE_TENSOR_CORE, whole numbers, tensor cores  → tensor_core
//! density ≥ …_REGISTER_TILE, queries of a full one dense    → register_tile
//! density ≥ threshold of the `Dense` kind                   → dense_tile
//! columns of one row add nothing                            → inverted
//! otherwise                                                 → merge
//! ```
//!
//! Skips what cannot run.

use cubecl::prelude::*;

use super::{
    dense_tile, inverted,
    metric::Distance,
    prepare::columns::row_tiles,
    register_tile,
    semiring::{Dense, Strategy},
    tensor_core,
    tuning::{
        DENSE_EITHER, DENSE_HALVES, DENSE_ONE_PASS, DENSE_REGISTER_TILE, DENSE_TENSOR_CORE,
        DENSE_UNION, FULL_REGISTER_TILE, LEFT_REGISTER_TILE,
    },
    types::{Matrix, Routine},
};
use crate::{
    device::{accumulator, plane_or_unit},
    error::KernelError,
};

fn density(matrix: &Matrix) -> f64 {
    let places = matrix.rows.max(1) as f64 * matrix.cols.max(1) as f64;
    matrix.nnz as f64 / places
}

/// Tensor cores need `compared`, the left matrix; register tiles look at its density. `whole`:
/// density of the whole if `matrix` is a part: parts round alike.
pub fn choose(
    client: &Client,
    distance: &dyn Distance,
    compared: Option<&Matrix>,
    matrix: &Matrix,
    whole: Option<f64>,
) -> Routine {
    let strategy = distance.strategy();
    let Strategy { union, dense, inner, .. } = strategy;
    let density = whole.unwrap_or_else(|| density(matrix));
    let suits = |matrix| tensor_core::suits(inner, matrix);
    if density >= DENSE_TENSOR_CORE
        && compared.is_some_and(suits)
        && suits(matrix)
        && tensor_core::check(client, inner, matrix).is_ok()
    {
        return Routine::TensorCore;
    }
    // By the index alone unless full: parts of a full matrix are full.
    let suits = |left| density < 1.0 || self::density(left) >= LEFT_REGISTER_TILE;
    let least = match dense {
        Some(Dense::Products) => FULL_REGISTER_TILE,
        _ => DENSE_REGISTER_TILE,
    };
    // Slower on CubeCL's CPU runtime.
    if plane_or_unit(client) > 1
        && density >= least
        && compared.is_none_or(suits)
        && register_tile::check(client, &strategy, matrix).is_ok()
    {
        return Routine::RegisterTile;
    }
    let least = match dense {
        Some(Dense::Products | Dense::Left) if union => DENSE_UNION,
        Some(Dense::Products | Dense::Left) => DENSE_ONE_PASS,
        Some(Dense::Halves) => DENSE_HALVES,
        Some(Dense::Either) => DENSE_EITHER,
        None => f64::INFINITY,
    };
    if density >= least && dense_tile::check(client, dense, matrix).is_ok() {
        Routine::DenseTile
    } else if inverted::check(client, &distance.algebra(), matrix).is_ok() {
        Routine::Inverted
    } else {
        Routine::Merge
    }
}

/// Its multiples are bindable offsets.
const STEP: usize = 1024;

/// Rows per [`Index`](crate::distance::Index): all, or a multiple of 1024 to keep
/// [`Routine::Inverted`]'s counters within `bytes`.
pub fn index_part(
    client: &Client,
    matrix: &Matrix,
    distance: &dyn Distance,
    routine: Routine,
    bytes: usize,
) -> Result<usize, KernelError> {
    let algebra = distance.algebra();
    let counted = routine == Routine::Inverted;
    let dtype = accumulator(client, matrix.dtype)?;
    let mut part = matrix.rows;
    let mut parts = 1;
    let fits = |rows: usize| match row_tiles(rows, matrix.cols, dtype, &algebra) {
        Ok([_, tiles]) => tiles == 1 || 2 * size_of::<i32>() * tiles * matrix.cols <= bytes,
        Err(_) => false,
    };
    while counted && part > STEP && !fits(part) {
        parts += 1;
        part = matrix.rows.div_ceil(parts).next_multiple_of(STEP);
    }
    Ok(part)
}
