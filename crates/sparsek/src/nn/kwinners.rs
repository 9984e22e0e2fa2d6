use burn::{
    config::Config,
    module::{Flag, Module, Param, RunningState},
    tensor::{Device, Tensor},
};

use crate::{
    nn::support::column_means,
    topk::{Method, TopkOptions, topk_bool_mask},
};

/// Configures [`KWinners`].
#[derive(Config, Debug, PartialEq)]
pub struct KWinnersConfig {
    /// Units per row.
    pub width: usize,
    /// Winners per row.
    pub k: usize,
    /// Winners outside training. Default: `k`; the paper: 1.5 k.
    pub k_inference: Option<usize>,
    /// β: boost of rare winners. Default: 1; 0 disables.
    #[config(default = 1.0)]
    pub boost_strength: f64,
    /// α: batch weight in duty cycles. Default: 0.05.
    #[config(default = 0.05)]
    pub momentum: f64,
    /// Selection method. Default: exact.
    #[config(default = "Method::Exact")]
    pub method: Method,
}

impl KWinnersConfig {
    /// Makes the layer.
    ///
    /// Panics if `k` or `k_inference` exceeds the width, β is negative or not finite, or α is
    /// outside `[0, 1]`.
    pub fn init(&self, device: &Device) -> KWinners {
        let k_inference = self.k_inference.unwrap_or(self.k);
        assert!(
            self.k.max(k_inference) <= self.width,
            "KWinners: k = {} and k_inference = {k_inference} for a width of {}",
            self.k,
            self.width
        );
        assert!(
            self.boost_strength.is_finite() && self.boost_strength >= 0.0,
            "KWinners: a boost strength of {}",
            self.boost_strength
        );
        assert!(
            (0.0..=1.0).contains(&self.momentum),
            "KWinners: a momentum of {} is outside [0, 1]",
            self.momentum
        );
        KWinners {
            duty_cycle: RunningState::new(Tensor::zeros([self.width], device)),
            training: Param::from_bool(true),
            k: self.k,
            k_inference,
            boost_strength: self.boost_strength,
            momentum: self.momentum,
            method: self.method,
        }
    }
}

/// Keeps k winners per row; boosts units that seldom win.
///
/// - boost: `b[i] = exp(β (k / width − d[i]))`, with duty cycles `d`
/// - winners: k greatest `b[i] x[i]`; `y[i] = x[i]`, else 0
/// - training: `d[i] ← (1 − α) d[i] + α · (share of rows that i wins)`
///
/// Trains on autodiff devices unless frozen. Duty cycles start at 0 and are saved. Ahmad and
/// Scheinkman, 2019.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::nn::KWinnersConfig;
///
/// let device = Device::flex().autodiff();
/// let layer = KWinnersConfig::new(3, 1).with_momentum(0.5).with_boost_strength(2.0).init(&device);
/// let x = Tensor::<2>::from_data([[1.0, 2.0, 1.9]], &device);
/// let first = layer.forward(x.clone());
/// first.into_data().assert_eq(&TensorData::from([[0.0, 2.0, 0.0]]), false);
/// // Unit 1 has won; unit 2 is boosted above it.
/// layer.forward(x).into_data().assert_eq(&TensorData::from([[0.0, 0.0, 1.9]]), false);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct KWinners {
    duty_cycle: RunningState<Tensor<1>>,
    training: Param<Flag>,
    k: usize,
    k_inference: usize,
    boost_strength: f64,
    momentum: f64,
    #[module(skip)]
    method: Method,
}

impl KWinners {
    /// `[.., width]` → same shape.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let shape = x.dims();
        let (device, dtype) = (x.device(), x.dtype());
        let duty = self.duty_cycle.value_sync().to_device(&device).cast(dtype);
        let [width] = duty.dims();
        assert!(
            shape[D - 1] == width,
            "KWinners: rows of {} elements for a width of {width}",
            shape[D - 1]
        );
        if shape.contains(&0) {
            return x;
        }
        let training = device.is_autodiff() && self.training.is_enabled();
        let k = if training { self.k } else { self.k_inference };
        let rows: Tensor<2> = x.reshape([shape.iter().product::<usize>() / width, width]);

        let target = self.k as f64 / width as f64;
        let boost = ((duty.clone().neg() + target) * self.boost_strength).exp();
        let boosted = rows.clone().detach() * boost.unsqueeze();
        let options = TopkOptions::new(k).with_method(self.method);
        let wins = topk_bool_mask(boosted, &options, 1);
        if training {
            let share = column_means(wins.clone().float().cast(dtype));
            let duty = duty * (1.0 - self.momentum) + share * self.momentum;
            self.duty_cycle.update(duty.detach());
        }
        rows.mask_fill(wins.bool_not(), 0.0).reshape(shape)
    }

    /// Duty cycles: `[width]`.
    pub fn duty_cycle(&self) -> Tensor<1> {
        self.duty_cycle.value_sync()
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{assert_close, check_gradient, device, host, probe, random, tensor};

    fn oracle(rows: &[f64], duty: &mut [f64], k: usize, config: &KWinnersConfig) -> Vec<f64> {
        let width = duty.len();
        let mut wins = vec![0.0; width];
        let mut y = vec![0.0; rows.len()];
        for (row, y) in rows.chunks(width).zip(y.chunks_mut(width)) {
            let boosted = |i: usize| {
                let target = config.k as f64 / width as f64;
                row[i] * (config.boost_strength * (target - duty[i])).exp()
            };
            let mut order: Vec<usize> = (0..width).collect();
            order.sort_by(|&a, &b| boosted(b).total_cmp(&boosted(a)));
            for &i in &order[..k] {
                y[i] = row[i];
                wins[i] += width as f64 / rows.len() as f64;
            }
        }
        for (duty, wins) in duty.iter_mut().zip(wins) {
            *duty = *duty * (1.0 - config.momentum) + wins * config.momentum;
        }
        y
    }

    #[rstest]
    #[case(9, 2, 0.0, 0.05)]
    #[case(9, 2, 3.0, 0.5)]
    #[case(4, 4, 1.0, 1.0)]
    fn boosted_winners_and_duty_cycles_are_the_formulas(
        device: Device,
        #[case] width: usize,
        #[case] k: usize,
        #[case] strength: f64,
        #[case] momentum: f64,
    ) {
        let config =
            KWinnersConfig::new(width, k).with_boost_strength(strength).with_momentum(momentum);
        let layer = config.init(&device);
        let mut duty = vec![0.0; width];
        for step in 0..4 {
            let x = random(5 * width, step);
            let expected = oracle(&x, &mut duty, k, &config);
            assert_close(layer.forward(tensor(&x, [5, width], &device)), &expected);
            assert_close(layer.duty_cycle(), &duty);
        }
    }

    #[rstest]
    fn inference_keeps_the_duty_cycles_and_takes_its_own_k(device: Device) {
        let config = KWinnersConfig::new(6, 2).with_k_inference(Some(3));
        let layer = config.init(&device);
        let x = tensor(&random(24, 3), [2, 2, 6], &device);
        let trained = layer.forward(x.clone());
        let duty = host(layer.duty_cycle());
        let valid = layer.valid();
        let kept = valid.forward(x.clone().inner());
        let count = |y: Tensor<3>| host(y).iter().filter(|&&y| y != 0.0).count();
        assert_eq!((count(trained), count(kept)), (8, 12));
        assert_eq!(host(valid.duty_cycle()), duty);
        let frozen = layer.freeze();
        assert_eq!(count(frozen.forward(x)), 12);
        assert_eq!(host(frozen.duty_cycle()), duty);
    }

    #[rstest]
    fn the_gradient_reaches_winners(device: Device) {
        let x = tensor(&random(21, 8), [3, 7], &device);
        let layer = KWinnersConfig::new(7, 3).with_momentum(0.0).init(&device);
        check_gradient(x, |x| probe(layer.forward(x)));
    }

    #[rstest]
    #[case(KWinnersConfig::new(3, 4))]
    #[case(KWinnersConfig::new(3, 1).with_k_inference(Some(4)))]
    #[case(KWinnersConfig::new(3, 1).with_boost_strength(-1.0))]
    #[case(KWinnersConfig::new(3, 1).with_momentum(1.5))]
    #[should_panic(expected = "KWinners: ")]
    fn impossible_settings_panic(device: Device, #[case] config: KWinnersConfig) {
        config.init(&device);
    }
}
