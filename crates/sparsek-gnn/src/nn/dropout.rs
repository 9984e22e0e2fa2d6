//! Dropout, drawn in parallel on Flex and from a captured step's numbers.

use burn::{nn::Dropout, tensor::Tensor};
use sparsek::steps;

use crate::step::next_call;

pub(super) fn drop_elements(dropout: &Dropout, x: Tensor<2>) -> Tensor<2> {
    let drops = dropout.training.is_enabled() && x.device().is_autodiff() && dropout.prob > 0.0;
    if !drops {
        return x;
    }
    if let Some((words, call)) = next_call() {
        return steps::dropout(x, &words, (1.0 - dropout.prob) as f32, call);
    }
    #[cfg(feature = "flex")]
    if x.device().without_autodiff() == burn::tensor::Device::flex() {
        return flex::drop_elements(dropout, x);
    }
    dropout.forward(x)
}

#[cfg(feature = "flex")]
mod flex {
    use burn::{
        nn::Dropout,
        tensor::{Distribution, Int, Tensor, TensorData},
    };
    use rayon::prelude::*;

    use crate::random::nth;

    const RUN: usize = 1 << 14;

    pub fn drop_elements(dropout: &Dropout, x: Tensor<2>) -> Tensor<2> {
        let device = x.device();
        // Seeded by the device's stream.
        let range = Distribution::Uniform(0.0, f64::from(i32::MAX));
        let drawn = Tensor::<1, Int>::random([2], range, &device.clone().without_autodiff());
        let state =
            drawn.into_data().iter::<i64>().fold(0, |state, word| (state << 32) ^ word as u64);
        let shape = x.dims();
        let factors = factors(shape[0] * shape[1], 1.0 - dropout.prob, state);
        let factors = TensorData::new(factors, shape);
        let factors = Tensor::<2>::from_data(factors, (&device, x.dtype()));
        x * factors
    }

    /// `1 / keep` with probability `keep`, else 0.
    pub fn factors(count: usize, keep: f64, state: u64) -> Vec<f32> {
        let kept = (1.0 / keep) as f32;
        let below = (keep * f64::from(u32::MAX)) as u32;
        let factor = |bits: u32| if bits < below { kept } else { 0.0 };
        let mut factors = vec![0.0; count];
        let runs = factors.par_chunks_mut(RUN).enumerate();
        runs.for_each(|(run, factors)| {
            for (pair, two) in factors.chunks_mut(2).enumerate() {
                let bits = nth(state, (run * RUN / 2 + pair) as u64);
                two[0] = factor(bits as u32);
                if let Some(second) = two.get_mut(1) {
                    *second = factor((bits >> 32) as u32);
                }
            }
        });
        factors
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::{nn::DropoutConfig, tensor::Device};
    use rstest::rstest;

    use super::{flex::factors, *};
    use crate::fixtures::{Alone, alone, device};

    #[rstest]
    #[case(0.5, 3)]
    #[case(0.9, 4)]
    #[case(0.25, 5)]
    fn as_many_are_kept_as_asked(#[case] keep: f64, #[case] state: u64) {
        let count = 200_001;
        let drawn = factors(count, keep, state);
        let kept = drawn.iter().filter(|&&factor| factor != 0.0).count() as f64;
        let deviation = (count as f64 * keep * (1.0 - keep)).sqrt();
        assert!((kept - count as f64 * keep).abs() < 4.0 * deviation);
        let both = drawn.windows(2).filter(|two| two[0] * two[1] != 0.0).count() as f64;
        assert!((both - count as f64 * keep * keep).abs() < 6.0 * deviation);
        assert!(drawn.iter().all(|&x| x == 0.0 || x == (1.0 / keep) as f32));
    }

    #[rstest]
    fn the_seed_decides_and_the_gradient_is_what_was_drawn(_alone: Alone, device: Device) {
        let inner = Tensor::<2>::ones([4, 3], &device);
        let device = device.autodiff();
        let dropout = DropoutConfig::new(0.5).init();
        let run = |seed| {
            device.seed(seed);
            let x = Tensor::<2>::ones([40, 30], &device).require_grad();
            let y = drop_elements(&dropout, x.clone());
            let gradients = y.clone().sum().backward();
            let dx = x.grad(&gradients).unwrap();
            let [y, dx] = [y.inner(), dx].map(|tensor| tensor.try_into_vec_as::<f32>().unwrap());
            assert_eq!(y, dx);
            y
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let same = drop_elements(&dropout, inner).try_into_vec_as::<f32>();
        assert_eq!(same.unwrap(), [1.0; 12]);
    }
}
