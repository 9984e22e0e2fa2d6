//! Dense layers, with gradients for tall inputs.

use burn::{
    nn::{LayerNorm, LayerNormConfig, Linear},
    tensor::{Device, Tensor},
};
use sparsek::{dense::add_bias, sparse::Compressed};

const EPSILON: f32 = 1e-5;

pub(super) fn linear(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    sparsek::dense::linear(x, layer.weight.val(), bias)
}

pub(super) fn linear_added(layer: &Linear, x: Tensor<2>, addend: Tensor<2>) -> Tensor<2> {
    match &layer.bias {
        Some(bias) => sparsek::dense::linear_added(x, layer.weight.val(), bias.val(), addend),
        None => linear(layer, x) + addend,
    }
}

pub(super) fn linear_compressed(layer: &Linear, x: &Compressed) -> Tensor<2> {
    debug_assert!(layer.bias.is_none());
    sparsek::dense::linear_compressed(x, layer.weight.val())
}

/// `x` times `[1]`. The gradient of Burn's broadcast factor would sum in one cube.
pub(super) fn scaled(x: Tensor<2>, factor: Tensor<1>) -> Tensor<2> {
    let factors = add_bias(x.zeros_like(), factor.expand([x.dims()[1]]));
    x * factors
}

pub(super) fn new_layer_norm(width: usize, device: &Device) -> LayerNorm {
    let config = LayerNormConfig::new(width).with_epsilon(EPSILON.into());
    config.init(device)
}

pub(super) fn layer_norm(layer: &LayerNorm, x: Tensor<2>) -> Tensor<2> {
    let beta = layer.beta.as_ref().expect("new_layer_norm makes beta");
    sparsek::dense::layer_norm(x, layer.gamma.val(), beta.val(), EPSILON)
}
