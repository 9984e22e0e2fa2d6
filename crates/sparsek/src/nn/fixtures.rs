use burn::{
    module::{Module, ModuleMapper, Param, ParamId},
    tensor::{DType, Device, Tensor, TensorData},
};
use rstest::fixture;

use super::support::uniform;

#[fixture]
pub fn device() -> Device {
    Device::flex().autodiff()
}

/// Distinct, within (-2, 2).
pub fn random(count: usize, seed: u64) -> Vec<f64> {
    let draws = uniform(seed, 1, count);
    draws.into_iter().map(|u| 4.0 * u - 2.0).collect()
}

pub fn tensor<const D: usize>(host: &[f64], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(host.to_vec(), shape), (device, DType::F64))
}

pub fn host<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.try_into_vec_as::<f64>().unwrap()
}

/// Tracks the tensor's own gradient.
pub fn param<const D: usize>(x: Tensor<D>) -> Param<Tensor<D>> {
    Param::initialized(ParamId::new(), x)
}

pub fn assert_close<const D: usize>(found: Tensor<D>, expected: &[f64]) {
    let found = host(found);
    assert_eq!(found.len(), expected.len());
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{i}: {x} instead of {y}");
    }
}

/// Sums with unequal weights.
pub fn probe<const D: usize>(y: Tensor<D>) -> Tensor<1> {
    let weights = random(y.shape().num_elements(), 99);
    (y.clone() * tensor(&weights, y.dims(), &y.device())).sum()
}

/// Compares with central differences.
pub fn check_gradient<const D: usize>(x: Tensor<D>, f: impl Fn(Tensor<D>) -> Tensor<1>) {
    let (shape, device, values) = (x.dims(), x.device(), host(x));
    let leaf = tensor(&values, shape, &device).require_grad();
    let gradients = f(leaf.clone()).backward();
    let found = leaf.grad(&gradients).map_or(vec![0.0; values.len()], host);
    let step = 1e-6;
    for i in 0..values.len() {
        let at = |by: f64| {
            let mut moved = values.clone();
            moved[i] += by;
            f(tensor(&moved, shape, &device)).into_scalar::<f64>()
        };
        let expected = (at(step) - at(-step)) / (2.0 * step);
        assert!(
            (found[i] - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
            "element {i} of {shape:?}: gradient {} instead of {expected}",
            found[i]
        );
    }
}

/// Randomizes parameters in f64.
pub fn double<M: Module>(module: M) -> M {
    struct Double;

    impl ModuleMapper for Double {
        fn map_float<const D: usize>(&mut self, x: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let values = random(x.val().shape().num_elements(), D as u64 + 40);
            let device = x.val().device();
            let id = x.id;
            let shape = x.val().dims();
            Param::initialized(id, tensor(&values, shape, &device) * 0.5)
        }
    }

    module.map(&mut Double)
}
