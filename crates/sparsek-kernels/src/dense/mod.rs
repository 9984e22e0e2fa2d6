//! What trains dense rows, one for each node of a graph: layer normalisation with its gradient, and sums over rows.
//!
//! Matrices of few columns and very many rows, of which general reductions leave most of a GPU idle.

mod columns;
mod inner;
mod normalise;
mod product;
mod split;

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

pub use columns::column_sums;
pub use inner::{inner_fits, inner_product};
pub use normalise::{Normalised, layer_norm, layer_norm_gradient};
pub use product::{Weight, product};

use crate::launch;

/// Contiguous rows in device memory.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// `[rows, width]` of `dtype`.
    pub handle: &'a Handle,
    /// f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
}

impl Rows<'_> {
    /// Elements.
    fn elements(&self) -> usize {
        self.rows * self.width
    }

    /// Elements of a load of these rows and of others of the same shape, which begin where an allocation does.
    fn vector(&self, client: &Client, others: &[&Handle]) -> usize {
        let size = self.dtype.size();
        let aligned = |vector: usize| {
            let mut all = others.iter().copied().chain([self.handle]);
            all.all(|handle| launch::aligned(handle, vector * size))
        };
        client
            .io_optimized_vector_sizes(size)
            .filter(|&vector| self.width.is_multiple_of(vector) && aligned(vector))
            .max()
            .unwrap_or(1)
    }
}

/// Why these rows cannot be multiplied on tensor cores, if so.
pub(super) fn refusal(sides: &[&Rows]) -> Option<String> {
    sides.iter().find_map(|rows| {
        let (dtype, width) = (rows.dtype, rows.width);
        if dtype != ElemType::Float(FloatKind::F32) {
            Some(format!("rows of {dtype:?}, not of f32"))
        } else if width == 0
            || !width.is_multiple_of(4)
            || !launch::aligned(rows.handle, 4 * size_of::<f32>())
        {
            Some(format!(
                "rows of {width} elements that cannot be loaded by four"
            ))
        } else {
            None
        }
    })
}
