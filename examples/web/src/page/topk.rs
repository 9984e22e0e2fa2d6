//! Top-k of random rows.

use burn::tensor::{Device, Tensor, TensorData};
use sparsek::topk::{Method, TopkOptions, try_topk};
use wasm_bindgen::prelude::*;

use super::{
    devices::{flex, webgpu},
    floats, ints, now,
};
use crate::{compare::same_bits, random::Random};

/// Timed runs after the first.
const RUNS: usize = 3;

/// A selection and its times.
#[wasm_bindgen(getter_with_clone)]
pub struct Topk {
    /// The rows, `[rows, cols]`.
    pub data: Vec<f32>,
    /// Columns of the selected elements, `[rows, k]`.
    pub indices: Vec<u32>,
    /// Milliseconds of the first run, with the compilation of shaders.
    pub first: f64,
    /// Milliseconds of the fastest run, with reading the result; of Flex without WebGPU.
    pub ms: f64,
    /// Milliseconds of the fastest run of Flex.
    pub flex: f64,
    /// Whether values and indices equal Flex's, bit for bit; true without WebGPU.
    pub equal: bool,
}

/// Selects the `k` greatest of rows of standard normal numbers; `iterations` stops early.
#[wasm_bindgen]
pub async fn topk(
    rows: usize,
    cols: usize,
    k: usize,
    iterations: Option<u32>,
    seed: u32,
) -> Result<Topk, JsError> {
    let options =
        TopkOptions::new(k).with_method(iterations.map_or(Method::Exact, Method::EarlyStop));
    let data = Random::new(seed.into()).normals(rows * cols);
    let upload = |device: &Device| {
        Tensor::<2>::from_data(TensorData::new(data.clone(), [rows, cols]), device)
    };
    let (expected, [first, flex]) = timed(&upload(&flex()), &options).await?;
    let Some(device) = webgpu() else {
        let indices = expected.1;
        return Ok(Topk { data, indices, first, ms: flex, flex, equal: true });
    };
    let (found, [first, ms]) = timed(&upload(&device), &options).await?;
    let equal = same_bits(&found.0, &expected.0) && found.1 == expected.1;
    Ok(Topk { data, indices: found.1, first, ms, flex, equal })
}

/// Values and indices.
type Found = (Vec<f32>, Vec<u32>);

/// The selection, and milliseconds of the first and of the fastest run.
async fn timed(x: &Tensor<2>, options: &TopkOptions) -> Result<(Found, [f64; 2]), JsError> {
    let start = now();
    let found = select(x.clone(), options).await?;
    let first = now() - start;
    let mut fastest = first;
    for _ in 0..RUNS {
        let start = now();
        select(x.clone(), options).await?;
        fastest = fastest.min(now() - start);
    }
    Ok((found, [first, fastest]))
}

async fn select(x: Tensor<2>, options: &TopkOptions) -> Result<Found, JsError> {
    let (values, indices) = try_topk(x, options, 1)?;
    Ok((floats(values).await?, ints(indices).await?))
}
