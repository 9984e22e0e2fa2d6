//! Nearest neighbors of the rows of a matrix.

use std::cell::RefCell;

use sparsek::{
    distance::{Metric, NearestNeighbors, pairwise_distances},
    sparse::Csr,
};
use wasm_bindgen::prelude::*;

use super::{
    devices::{flex, webgpu},
    floats, ints, now,
};
use crate::compare;

/// Rows that are searched and drawn; more are left out.
const MAX_ROWS: usize = 1500;

/// Largest difference, relative above 1, that counts as equal: both sum in f32, in other orders.
const TOLERANCE: f32 = 1e-4;

thread_local! {
    /// On Flex, and on WebGPU.
    static MATRIX: RefCell<Option<(Csr, Option<Csr>)>> = const { RefCell::new(None) };
}

/// The loaded matrix.
#[wasm_bindgen]
pub struct Matrix {
    /// Rows in the file.
    pub rows: usize,
    /// Rows that are searched.
    pub searched: usize,
    /// Columns.
    pub cols: usize,
    /// Stored entries of the rows that are searched.
    pub entries: usize,
}

/// Neighbors of all rows.
#[wasm_bindgen(getter_with_clone)]
pub struct Neighbors {
    /// Distances, nearest first, `[rows, k]`.
    pub distances: Vec<f32>,
    /// Neighbors, `[rows, k]`.
    pub indices: Vec<u32>,
    /// Neighbors of each row.
    pub k: usize,
    /// Milliseconds of the first search, with the compilation of shaders.
    pub first: f64,
    /// Milliseconds of a second search, with reading the result.
    pub ms: f64,
    /// Milliseconds of Flex.
    pub flex: f64,
    /// Largest difference from Flex; 0 without WebGPU.
    pub difference: f32,
    /// Whether that is rounding.
    pub equal: bool,
}

/// Names of the metrics.
#[wasm_bindgen]
pub fn metrics() -> Vec<String> {
    Metric::ALL.iter().map(Metric::to_string).collect()
}

/// Takes a file of scipy's `save_npz`.
#[wasm_bindgen]
pub fn load_matrix(bytes: &[u8]) -> Result<Matrix, JsError> {
    let all = Csr::from_npz_bytes(bytes, &flex())?;
    let (rows, searched) = (all.rows(), all.rows().min(MAX_ROWS));
    let csr = all.slice_rows(0..searched);
    let on_gpu = webgpu().map(|device| csr.to_device(&device)).transpose()?;
    let matrix = Matrix { rows, searched, cols: csr.cols(), entries: csr.nnz() };
    MATRIX.set(Some((csr, on_gpu)));
    Ok(matrix)
}

/// Finds the `k` nearest other rows of each row, or all others if there are fewer.
#[wasm_bindgen]
pub async fn neighbors(metric: &str, k: usize) -> Result<Neighbors, JsError> {
    let metric: Metric = metric.parse()?;
    let loaded = MATRIX.with_borrow(Clone::clone);
    let (csr, on_gpu) = loaded.ok_or_else(|| JsError::new("no matrix is loaded"))?;
    let k = k.min(csr.rows().saturating_sub(1));
    let (expected, flex) = search(&csr, metric, k).await?;
    let Some(on_gpu) = on_gpu else {
        let (distances, indices) = expected;
        let ms = flex;
        let difference = 0.0;
        return Ok(Neighbors {
            distances,
            indices,
            k,
            first: ms,
            ms,
            flex,
            difference,
            equal: true,
        });
    };
    let ((distances, indices), first) = search(&on_gpu, metric, k).await?;
    let (_, ms) = search(&on_gpu, metric, k).await?;
    let all = floats(pairwise_distances(&csr, None, metric)?).await?;
    let found = compare::Neighbors {
        distances: &distances,
        indices: &indices,
        expected: &expected.0,
        all: &all,
        k,
    };
    let difference = found.difference();
    let equal = difference <= TOLERANCE;
    Ok(Neighbors { distances, indices, k, first, ms, flex, difference, equal })
}

/// Neighbors, and milliseconds.
async fn search(
    csr: &Csr,
    metric: Metric,
    k: usize,
) -> Result<((Vec<f32>, Vec<u32>), f64), JsError> {
    let start = now();
    let (distances, indices) = NearestNeighbors::fit(csr.clone(), metric).kneighbors(None, k)?;
    let found = (floats(distances).await?, ints(indices).await?);
    Ok((found, now() - start))
}
