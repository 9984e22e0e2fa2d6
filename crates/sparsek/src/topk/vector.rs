use burn::{
    backend::Dispatch,
    tensor::{Int, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::VectorOptions;

use super::{
    error::{TopkError, or_panic},
    request::check_vector,
    small_int::{from_i32, to_i32},
};
use crate::ops::TopkOps;

/// `k` greatest (or least) elements of a vector and their indices, by Dr. Top-k (Gaihre et al.,
/// 2021).
///
/// Equals exact [`topk`](super::topk), which uses it for long vectors. `options.strategy` only
/// affects time; Flex ignores it.
///
/// # Shapes
///
/// - `x`: `[n]`, within the default integer dtype.
/// - values, indices: `[k]`.
///
/// # Cost
///
/// On devices, one read, then selections from β delegates per 2^α elements, and from k·2^α
/// elements.
///
/// Panics at launch if the device cannot run the strategy.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{Subrange, VectorOptions, VectorStrategy, topk_vector};
///
/// let x = Tensor::<1>::from_data([0.5, 3.0, -1.0, 3.0, 2.0], &Device::flex());
/// let strategy = VectorStrategy { subrange: Subrange::Exponent(1), ..VectorStrategy::default() };
/// let options = VectorOptions::new(2).with_strategy(strategy);
/// let (values, indices) = topk_vector(x, &options);
/// values.into_data().assert_eq(&TensorData::from([3.0, 3.0]), false);
/// indices.into_data().assert_eq(&TensorData::from([1, 3]), false);
/// ```
#[track_caller]
pub fn topk_vector<K: Ordered>(
    x: Tensor<1, K>,
    options: &VectorOptions,
) -> (Tensor<1, K>, Tensor<1, Int>) {
    or_panic("topk_vector", try_topk_vector(x, options))
}

/// Fallible [`topk_vector`].
pub fn try_topk_vector<K: Ordered>(
    x: Tensor<1, K>,
    options: &VectorOptions,
) -> Result<(Tensor<1, K>, Tensor<1, Int>), TopkError> {
    let spec = check_vector(&x, options)?;
    let dtype = x.dtype();
    let (values, indices) = if dtype.is_float() {
        <Dispatch as TopkOps>::topk_vector_float(x.into_dispatch(), spec)
    } else {
        let (values, indices) = <Dispatch as TopkOps>::topk_vector_int(to_i32(x), spec);
        (from_i32(values, dtype), indices)
    };
    Ok((Tensor::from_dispatch(values), Tensor::from_dispatch(indices)))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, TensorData};
    use rstest::{fixture, rstest};
    use sparsek_kernels::{
        KernelError,
        topk::{Subrange, VectorStrategy},
    };

    use super::{super::rows::topk, *};

    #[fixture]
    fn device() -> Device {
        Device::flex()
    }

    fn strategy(exponent: u32, delegates: usize) -> VectorStrategy {
        let subrange = Subrange::Exponent(exponent);
        VectorStrategy { subrange, delegates, ..VectorStrategy::default() }
    }

    #[rstest]
    fn results_and_gradients_are_those_of_topk(
        device: Device,
        #[values(0, 1, 40, 200)] k: usize,
        #[values(true, false)] largest: bool,
        #[values(true, false)] sorted: bool,
    ) {
        let device = device.autodiff();
        let elements: Vec<f32> = (0..200).map(|i| (i * 37 % 53) as f32 - 20.0).collect();
        let weights = Tensor::<1, Int>::arange(1..k as i64 + 1, &device).float();
        let options = VectorOptions::new(k).with_largest(largest).with_sorted(sorted);
        let options = options.with_strategy(strategy(3, 2));
        let run = |select: &dyn Fn(Tensor<1>) -> (Tensor<1>, Tensor<1, Int>)| {
            let x = Tensor::<1>::from_data(&elements[..], &device).require_grad();
            let (values, indices) = select(x.clone());
            let loss = (values.clone() * weights.clone()).sum();
            let gradient = x.grad(&loss.backward()).expect("a gradient");
            (values.into_data(), indices.into_data(), gradient.into_data())
        };
        let found = run(&|x| topk_vector(x, &options));
        assert_eq!(found, run(&|x| topk(x, &options.row_options(), 0)));
    }

    #[rstest]
    fn integers_are_selected(device: Device) {
        let x = Tensor::<1, Int>::from_data([4, -9, 4, 7], &device);
        let (values, indices) = topk_vector(x, &VectorOptions::new(2).with_sorted(true));
        values.into_data().assert_eq(&TensorData::from([7, 4]), false);
        indices.into_data().assert_eq(&TensorData::from([3, 0]), false);
    }

    #[rstest]
    fn requests_that_do_not_fit_are_refused(device: Device) {
        let x = Tensor::<1>::zeros([3], &device);
        let found = try_topk_vector(x.clone(), &VectorOptions::new(4)).unwrap_err();
        assert_eq!(found, TopkError::KTooLarge { k: 4, cols: 3, dim: 0, shape: vec![3] });
        let options = VectorOptions::new(1).with_strategy(strategy(1, 5));
        let found = try_topk_vector(x, &options).unwrap_err();
        let delegates = TopkError::Kernel(KernelError::Routine {
            routine: "delegates",
            reason: "5 per subrange; 1 to 4 are possible".into(),
        });
        assert_eq!(found, delegates);
    }
}
