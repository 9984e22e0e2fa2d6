use sparsek::io::memory;

/// Value, gradient and Adam's two moments.
const COPIES: usize = 4;

/// Bytes of a layer's names, shapes and handles.
const LAYER: usize = 2048;

pub(super) fn linear_len(from: usize, to: usize) -> u128 {
    memory::product(&[from, to]).saturating_add(to as u128)
}

pub(super) fn state_bytes(parameters: u128, layers: usize) -> u128 {
    parameters
        .saturating_mul((COPIES * size_of::<f32>()) as u128)
        .saturating_add(memory::product(&[layers, LAYER]))
}
