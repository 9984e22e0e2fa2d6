//! Helpers of the dense cases.

use bytemuck::cast_slice;
use cubecl::server::Handle;
use sparsek_tests::{backend::Backend, data::Random};

/// Small integers, exact in products and sums of any tensor core format.
pub fn small_integers(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..n).map(|_| random.below(9) as f64 - 4.0).collect()
}

pub fn upload(backend: &Backend, data: &[f64]) -> Handle {
    let client = backend.client.as_ref().expect("asked for with one");
    let data: Vec<f32> = data.iter().map(|&x| x as f32).collect();
    client.create_from_slice(cast_slice(if data.is_empty() { &[0.0] } else { &data }))
}
