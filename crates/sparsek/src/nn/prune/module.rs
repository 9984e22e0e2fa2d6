use std::collections::HashMap;

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId},
    tensor::{Bool, Tensor},
};

use super::mask::{Kept, magnitude_mask, magnitude_mask_rows, n_of_m_mask};

/// Parameter elements to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PruneRule {
    /// Per tensor: [`magnitude_mask`].
    Tensor(Kept),
    /// Per row along a dimension: [`magnitude_mask_rows`].
    Rows(Kept, isize),
    /// Per block: [`n_of_m_mask`].
    NOfM {
        /// Kept per block.
        n: usize,
        /// Block size.
        m: usize,
        /// Dimension, negative from the end.
        dim: isize,
    },
}

impl PruneRule {
    /// True at kept elements. Panics as the rule.
    pub fn mask<const D: usize>(&self, weight: Tensor<D>) -> Tensor<D, Bool> {
        match *self {
            Self::Tensor(kept) => magnitude_mask(weight, kept),
            Self::Rows(kept, dim) => magnitude_mask_rows(weight, kept, dim),
            Self::NOfM { n, m, dim } => n_of_m_mask(weight, n, m, dim),
        }
    }
}

/// Masks of a module's parameters, by id.
///
/// Apply after each optimizer step.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::{nn::LinearConfig, tensor::Device};
/// use sparsek::nn::{PruneMasks, PruneRule};
///
/// let layer = LinearConfig::new(8, 3).init(&Device::flex());
/// let half = PruneRule::NOfM { n: 2, m: 4, dim: 0 };
/// let masks = PruneMasks::of(&layer, |path, _| (path == "weight").then_some(half));
/// let layer = masks.apply(layer);
/// let zeros = layer.weight.val().equal_elem(0.0).int().sum().into_scalar::<i64>();
/// assert_eq!(zeros, 12);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct PruneMasks {
    /// True where pruned; flattened, without autodiff.
    pruned: HashMap<ParamId, Tensor<1, Bool>>,
}

impl PruneMasks {
    /// Masks float parameters for which `choose` returns a rule.
    ///
    /// `choose` takes path, such as `layers.0.weight`, and shape. Panics as the rule.
    pub fn of<M: Module>(
        module: &M,
        choose: impl FnMut(&str, &[usize]) -> Option<PruneRule>,
    ) -> Self {
        let mut visitor = Chosen { path: Vec::new(), masks: Self::default(), choose };
        module.visit(&mut visitor);
        visitor.masks
    }

    /// Sets pruned elements to 0, even NaN; others keep their bits.
    ///
    /// Matches parameter ids. Panics if a shape changed.
    pub fn apply<M: Module>(&self, module: M) -> M {
        module.map(&mut Applied { masks: self })
    }

    /// Masked parameters.
    pub fn len(&self) -> usize {
        self.pruned.len()
    }

    /// Whether no parameter is masked.
    pub fn is_empty(&self) -> bool {
        self.pruned.is_empty()
    }

    /// True at kept elements, if masked. Panics for another shape.
    pub fn kept<const D: usize>(&self, parameter: &Param<Tensor<D>>) -> Option<Tensor<D, Bool>> {
        let pruned = self.pruned.get(&parameter.id)?;
        Some(pruned.clone().bool_not().reshape(parameter.val().dims()))
    }
}

struct Chosen<F> {
    path: Vec<String>,
    masks: PruneMasks,
    choose: F,
}

impl<F: FnMut(&str, &[usize]) -> Option<PruneRule>> ModuleVisitor for Chosen<F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().without_autodiff();
        let (path, shape) = (self.path.join("."), value.dims());
        let Some(rule) = (self.choose)(&path, &shape) else { return };
        let pruned = rule.mask(value).bool_not();
        self.masks.pruned.insert(param.id, pruned.reshape([shape.iter().product::<usize>()]));
    }
}

struct Applied<'a> {
    masks: &'a PruneMasks,
}

impl ModuleMapper for Applied<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.masks.pruned.get(&param.id) {
            None => param,
            Some(pruned) => param.map(|x| zeroed(x, pruned)),
        }
    }
}

fn zeroed<const D: usize>(x: Tensor<D>, pruned: &Tensor<1, Bool>) -> Tensor<D> {
    let (shape, [masked]) = (x.dims(), pruned.dims());
    let elements: usize = shape.iter().product();
    assert!(elements == masked, "PruneMasks: a parameter {shape:?} with a mask of {masked}");
    if elements == 0 {
        return x;
    }
    let (tracked, autodiff) = (x.is_require_grad(), x.is_autodiff());
    let strategy = x.gradient_checkpointing_strategy();
    let inner = x.without_autodiff();
    let pruned = pruned.clone().to_device(&inner.device()).reshape(shape);
    let mut y = inner.mask_fill(pruned, 0.0);
    if autodiff {
        y = Tensor::from_inner(y);
    }
    if let Some(strategy) = strategy {
        y = y.with_gradient_checkpointing_strategy(strategy);
    }
    if tracked { y.require_grad() } else { y }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::{
        nn::{Linear, LinearConfig},
        tensor::Device,
    };
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{device, double, host, random, tensor};

    const RULE: PruneRule = PruneRule::Rows(Kept::Count(1), 0);

    #[derive(Module, Debug)]
    struct Model {
        layers: Vec<Linear>,
        last: Linear,
    }

    fn model(device: &Device) -> Model {
        let config = LinearConfig::new(4, 4);
        double(Model {
            layers: vec![config.init(device), config.init(device)],
            last: config.init(device),
        })
    }

    fn weights(path: &str, shape: &[usize]) -> Option<PruneRule> {
        (shape.len() == 2 && path != "last.weight").then_some(RULE)
    }

    #[rstest]
    fn chosen_parameters_are_pruned_and_stay_so(device: Device) {
        let before = model(&device);
        let mut paths = Vec::new();
        let masks = PruneMasks::of(&before, |path, shape| {
            paths.push(path.to_owned());
            weights(path, shape)
        });
        assert_eq!(
            paths,
            [
                "layers.0.weight",
                "layers.0.bias",
                "layers.1.weight",
                "layers.1.bias",
                "last.weight",
                "last.bias"
            ]
        );
        assert_eq!(masks.len(), 2);
        let after = masks.apply(before.clone());
        assert_eq!(host(after.last.weight.val()), host(before.last.weight.val()));
        for (before, after) in before.layers.iter().zip(&after.layers) {
            let all = host(before.weight.val());
            let greatest = |column: usize| {
                let column = |row: usize| all[row * 4 + column].abs();
                (0..4).max_by(|&a, &b| column(a).total_cmp(&column(b))).unwrap()
            };
            let expected: Vec<f64> =
                (0..16).map(|i| if greatest(i % 4) == i / 4 { all[i] } else { 0.0 }).collect();
            assert_eq!(host(after.weight.val()), expected);
            let kept = masks.kept(&after.weight).unwrap().try_into_vec_as::<bool>().unwrap();
            assert_eq!(kept, expected.iter().map(|&x| x != 0.0).collect::<Vec<_>>());
        }
        let moved = masks.apply(double(after.clone()));
        let (moved, after) = (&moved.layers[1].weight, &after.layers[1].weight);
        let zeros = |x: &Param<Tensor<2>>| -> Vec<bool> {
            host(x.val()).iter().map(|&x| x == 0.0).collect()
        };
        assert_eq!(zeros(moved), zeros(after));
    }

    #[rstest]
    fn pruned_parameters_are_tracked_as_before(device: Device) {
        let layer = LinearConfig::new(4, 3).init(&device);
        let masks = PruneMasks::of(&layer, weights);
        let pruned = masks.apply(layer);
        let x = tensor(&random(8, 1), [2, 4], &device).cast(burn::tensor::DType::F32);
        let gradients = pruned.forward(x).sum().backward();
        assert_eq!(pruned.weight.grad(&gradients).unwrap().dims(), [4, 3]);
        let frozen = masks.apply(pruned.clone().no_grad());
        assert!(!frozen.weight.val().is_require_grad());
        let inference = masks.apply(pruned.valid());
        assert_eq!(host(inference.weight.val()), host(frozen.weight.val()));
    }
}
