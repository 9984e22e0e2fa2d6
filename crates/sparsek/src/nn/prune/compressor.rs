use burn::{
    config::Config,
    tensor::{Int, Tensor, ops::IndexingUpdateOp},
};

use crate::topk::{TopkOptions, argtopk, mask_at};

/// Configures [`TopkCompressor`].
#[derive(Config, Copy, Debug, PartialEq)]
pub struct TopkCompressorConfig {
    /// Share of elements sent, in (0, 1]; at least one.
    pub share: f64,
    /// Momentum correction, in `[0, 1)`. Default: none.
    pub momentum: Option<f64>,
}

impl TopkCompressorConfig {
    /// Makes a compressor.
    ///
    /// Panics if share or momentum is out of range.
    pub fn init(&self) -> TopkCompressor {
        assert!(
            self.share > 0.0 && self.share <= 1.0,
            "TopkCompressor: a share of {} is outside (0, 1]",
            self.share
        );
        if let Some(momentum) = self.momentum {
            assert!(
                (0.0..1.0).contains(&momentum),
                "TopkCompressor: a momentum of {momentum} is outside [0, 1)"
            );
        }
        TopkCompressor { config: *self, residual: None, velocity: None }
    }
}

/// Sends a gradient's k greatest magnitudes; keeps the rest for later steps.
///
/// - `v ← v + g`; sends the k greatest |v| and zeroes them (Stich et al., 2018)
/// - with momentum: `u ← m u + g; v ← v + u`; also zeroes u (Lin et al., 2018)
///
/// Use one per worker and parameter; workers add [`SparseGradient`]s.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::nn::TopkCompressorConfig;
///
/// let mut compressor = TopkCompressorConfig::new(0.25).init();
/// let gradient = Tensor::<2>::from_floats([[1.0, -4.0], [3.0, 0.0]], &Device::flex());
/// let sent = compressor.compress(gradient.clone()).decompress::<2>();
/// sent.into_data().assert_eq(&TensorData::from([[0.0, -4.0], [0.0, 0.0]]), false);
/// // The residual makes 6 of 3.
/// let sent = compressor.compress(gradient).decompress::<2>();
/// sent.into_data().assert_eq(&TensorData::from([[0.0, 0.0], [6.0, 0.0]]), false);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TopkCompressor {
    config: TopkCompressorConfig,
    /// v: `[1, elements]`.
    residual: Option<Tensor<2>>,
    /// u: `[1, elements]`.
    velocity: Option<Tensor<2>>,
}

impl TopkCompressor {
    /// Adds a gradient and takes the greatest elements, detached.
    ///
    /// Panics without elements, or if number or dtype changes.
    pub fn compress<const D: usize>(&mut self, gradient: Tensor<D>) -> SparseGradient {
        let shape = gradient.dims();
        let elements = shape.iter().product::<usize>();
        assert!(elements > 0, "TopkCompressor: a gradient without elements");
        let gradient: Tensor<2> = gradient.without_autodiff().reshape([1, elements]);
        if let Some(residual) = &self.residual {
            let known = (residual.dims()[1], residual.dtype());
            let found = (elements, gradient.dtype());
            assert!(found == known, "TopkCompressor: a gradient of {found:?} after {known:?}");
        }
        let update = match (self.config.momentum, self.velocity.take()) {
            (Some(momentum), Some(velocity)) => velocity * momentum + gradient,
            _ => gradient,
        };
        let total = match self.residual.take() {
            None => update.clone(),
            Some(residual) => residual + update.clone(),
        };
        let k = ((self.config.share * elements as f64).round() as usize).clamp(1, elements);
        let indices = argtopk(total.clone().abs(), &TopkOptions::new(k), 1);
        let values = total.clone().gather(1, indices.clone());
        let sent = mask_at(indices.clone(), [1, elements], 1);
        if self.config.momentum.is_some() {
            self.velocity = Some(update.mask_fill(sent.clone(), 0.0));
        }
        self.residual = Some(total.mask_fill(sent, 0.0));
        SparseGradient {
            values: values.reshape([k]),
            indices: indices.reshape([k]),
            shape: shape.to_vec(),
        }
    }

    /// Unsent sum: `[elements]`, or none yet.
    pub fn residual(&self) -> Option<Tensor<1>> {
        let residual = self.residual.as_ref()?;
        Some(residual.clone().reshape([residual.dims()[1]]))
    }
}

/// Sent gradient elements.
#[derive(Clone, Debug)]
pub struct SparseGradient {
    /// Values: `[k]`.
    pub values: Tensor<1>,
    /// Flattened positions, ascending, distinct: `[k]`.
    pub indices: Tensor<1, Int>,
    /// Gradient shape.
    pub shape: Vec<usize>,
}

impl SparseGradient {
    /// Dense gradient. Panics for another rank.
    pub fn decompress<const D: usize>(&self) -> Tensor<D> {
        let shape: [usize; D] =
            self.shape.as_slice().try_into().unwrap_or_else(|_| {
                panic!("SparseGradient: rank {D} of a gradient {:?}", self.shape)
            });
        let elements = shape.iter().product::<usize>();
        let options = (&self.values.device(), self.values.dtype());
        let zeros = Tensor::<1>::zeros([elements], options);
        let (indices, values) = (self.indices.clone(), self.values.clone());
        zeros.scatter(0, indices, values, IndexingUpdateOp::Add).reshape(shape)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{assert_close, device, random, tensor};

    const SHAPE: [usize; 2] = [4, 5];

    #[rstest]
    fn steps_are_the_formulas(
        device: Device,
        #[values(0.01, 0.2, 1.0)] share: f64,
        #[values(None, Some(0.0), Some(0.9))] momentum: Option<f64>,
    ) {
        let mut compressor = TopkCompressorConfig::new(share).with_momentum(momentum).init();
        assert!(compressor.residual().is_none());
        let k = ((share * 20.0).round() as usize).max(1);
        let (mut u, mut v) = (vec![0.0; 20], vec![0.0; 20]);
        for step in 0..6 {
            let gradient = random(20, step);
            for i in 0..20 {
                u[i] = momentum.unwrap_or(0.0) * u[i] + gradient[i];
                v[i] += u[i];
            }
            let mut order: Vec<usize> = (0..20).collect();
            order.sort_by(|&a, &b| v[b].abs().total_cmp(&v[a].abs()));
            order.truncate(k);
            order.sort();
            let mut expected = vec![0.0; 20];
            for &i in &order {
                expected[i] = v[i];
                (u[i], v[i]) = (0.0, 0.0);
            }
            let sent = compressor.compress(tensor(&gradient, SHAPE, &device));
            let places = sent.indices.clone().try_into_vec_as::<i64>().unwrap();
            assert_eq!(places, order.iter().map(|&i| i as i64).collect::<Vec<_>>());
            assert_close(sent.decompress::<2>(), &expected);
            assert_close(compressor.residual().unwrap(), &v);
        }
    }

    #[rstest]
    fn error_feedback_reaches_the_minimum(device: Device) {
        let curvatures: Vec<f64> = random(10, 3).into_iter().map(|x| 1.0 + x * x / 4.0).collect();
        let curvatures = tensor(&curvatures, [10], &device).inner();
        let mut x = tensor(&random(10, 4), [10], &device).inner();
        let mut compressor = TopkCompressorConfig::new(0.1).init();
        for _ in 0..600 {
            let gradient = curvatures.clone() * x.clone();
            x = x - compressor.compress(gradient * 0.05).decompress::<1>();
        }
        let left = x.abs().max().into_scalar::<f64>();
        assert!(left < 1e-6, "{left}");
    }

    #[rstest]
    #[case(0.0, None)]
    #[case(1.5, None)]
    #[case(0.5, Some(1.0))]
    #[should_panic(expected = "TopkCompressor: ")]
    fn impossible_settings_panic(#[case] share: f64, #[case] momentum: Option<f64>) {
        TopkCompressorConfig::new(share).with_momentum(momentum).init();
    }

    #[rstest]
    #[should_panic(expected = "TopkCompressor: a gradient of")]
    fn another_parameter_panics(device: Device) {
        let mut compressor = TopkCompressorConfig::new(0.5).init();
        compressor.compress(Tensor::<1>::zeros([4], &device));
        compressor.compress(Tensor::<1>::zeros([5], &device));
    }
}
