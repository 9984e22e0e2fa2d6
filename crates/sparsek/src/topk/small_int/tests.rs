use burn::tensor::{Device, Int, TensorCreationOptions, TensorData};
use rstest::{fixture, rstest};
use sparsek_kernels::topk::{TopkOptions, VectorOptions};

use super::{
    super::{
        masks::topk_bool_mask,
        ordered::sort,
        ragged::topk_ragged,
        rows::{argtopk, topk},
        vector::topk_vector,
    },
    *,
};

#[fixture]
fn device() -> Device {
    Device::flex()
}

#[rstest]
#[case(IntDType::I8, [-128, 127, -1, 127])]
#[case(IntDType::I16, [-32_768, 32_767, -1, 32_767])]
#[case(IntDType::U8, [0, 255, 128, 255])]
#[case(IntDType::U16, [0, 65_535, 32_768, 65_535])]
fn small_integers_keep_their_dtype(device: Device, #[case] dtype: IntDType, #[case] row: [i64; 4]) {
    let dtype = DType::from(dtype);
    let options = TensorCreationOptions::new(device.clone()).with_dtype(dtype);
    let x = Tensor::<1, Int>::from_data(TensorData::from(row), options);
    assert_eq!(x.dtype(), dtype);
    let numbers = |x: Tensor<1, Int>| x.into_data().iter::<i64>().collect::<Vec<_>>();
    let [first, greatest, middle, last] = row;
    let two = TopkOptions::new(2);

    let (values, indices) = topk(x.clone(), &two, 0);
    assert_eq!(values.dtype(), dtype);
    assert_eq!((numbers(values), numbers(indices)), (vec![greatest, last], vec![1, 3]));
    let least = two.with_largest(false).with_sorted(true);
    let (values, indices) = topk(x.clone(), &least, 0);
    assert_eq!((numbers(values), numbers(indices)), (vec![first, middle], vec![0, 2]));
    assert_eq!(numbers(argtopk(x.clone(), &least, 0)), [0, 2]);

    let lengths = Tensor::<1, Int>::from_data([3], &device);
    let (values, indices) = topk_ragged(x.clone(), lengths, &two, 0);
    assert_eq!((numbers(values), numbers(indices)), (vec![greatest, middle], vec![1, 2]));
    let (values, indices) = topk_vector(x.clone(), &VectorOptions::new(1));
    assert_eq!(values.dtype(), dtype);
    assert_eq!((numbers(values), numbers(indices)), (vec![greatest], vec![1]));
    let (values, indices) = sort(x.clone(), 0, false);
    assert_eq!(numbers(values), [first, middle, greatest, last]);
    assert_eq!(numbers(indices), [0, 2, 1, 3]);
    let mask = topk_bool_mask(x, &two, 0).into_data();
    mask.assert_eq(&TensorData::from([false, true, false, true]), false);
}
