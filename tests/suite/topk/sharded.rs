//! Top-k of a vector in shards, over all devices of the backend (or several shards on its only
//! one).

use burn::tensor::{DType, Device, Float, Int, Tensor, TensorData, kind::Ordered};
use sparsek::topk::{Method, ShardedError, TopkOptions, topk_sharded};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix, Random},
    element::{Dtype, Element},
    runner::{Cases, Outcome, Verdict},
    verify, with_dtype,
};

const CUTS: [(&str, &[usize]); 7] = [
    ("whole", &[500]),
    ("even", &[125, 125, 125, 125]),
    ("uneven", &[7, 412, 81]),
    ("empty", &[0, 250, 0, 0, 250, 0]),
    ("ones", &[1, 1, 1, 1, 1, 495]),
    ("nine", &[100, 3, 97, 0, 1, 99, 64, 36, 100]),
    ("seventeen", &[29; 17]),
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    for (name, cut) in CUTS {
        cases.add(backend, format!("tensor/sharded/cuts/{name}"), |b| cuts(b, cut));
    }
    for dtype in Dtype::ALL {
        with_dtype!(dtype, T => cases.add(
            backend,
            format!("tensor/sharded/{}", T::NAME),
            of_dtype::<T>,
        ));
    }
    cases.check(backend, "tensor/sharded/gradient", gradient);
    cases.check(backend, "tensor/sharded/nothing", nothing);
    cases.check(backend, "tensor/sharded/errors", errors);
    cases.add(backend, "tensor/sharded/lacking-memory", lacking_memory);
    cases.add(backend, "tensor/sharded/refused", refused);
}

/// Devices that hold the shards, in turn.
fn devices(backend: &Backend) -> Vec<Device> {
    match backend.devices() {
        several if several.len() > 1 => several,
        _ => vec![backend.device.clone()],
    }
}

fn shards<T: Element, K: Ordered>(
    backend: &Backend,
    data: &[T],
    cut: &[usize],
) -> Vec<Tensor<1, K>> {
    let devices = devices(backend);
    let mut first = 0;
    let places = cut.iter().zip(devices.iter().cycle());
    places
        .map(|(&length, device)| {
            let shard = data[first..][..length].to_vec();
            first += length;
            let data = TensorData::new(shard, [length]);
            Tensor::from_data(data, (device, T::dtype()))
        })
        .collect()
}

fn check<T: Element, K: Ordered>(
    backend: &Backend,
    matrix: &Matrix<T>,
    cut: &[usize],
    options: &TopkOptions,
) -> Result<(), String> {
    let shards = shards::<T, K>(backend, &matrix.data, cut);
    let (values, indices) = topk_sharded(shards, options).map_err(|error| error.to_string())?;
    let values = values.into_data();
    if values.dtype() != T::dtype() {
        return Err(format!("values of {:?}", values.dtype()));
    }
    let values: Vec<T> = bytemuck::pod_collect_to_vec(values.as_bytes());
    let places: Vec<i64> = indices.into_data().iter::<i64>().collect();
    verify::selection(matrix, options, Some(&values), &places)
        .map_err(|e| format!("shards {cut:?}: {e}"))
}

fn cuts(backend: &Backend, cut: &[usize]) -> Outcome {
    let length = cut.iter().sum();
    if let Some(reason) = backend.loop_limit(length) {
        return Ok(Verdict::Skipped(reason));
    }
    for distribution in [
        Distribution::Normal,
        Distribution::Equal,
        Distribution::Eight,
        Distribution::Zeros,
        Distribution::Special,
        Distribution::AllNan,
    ] {
        let matrix = Matrix::<f32>::of(distribution, 1, length, 31);
        for k in [0, 1, 5, 50, length] {
            for largest in [true, false] {
                for sorted in [true, false] {
                    let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
                    check::<f32, Float>(backend, &matrix, cut, &options)?;
                }
            }
        }
    }
    Ok(Verdict::Passed)
}

fn of_dtype<T: Element>(backend: &Backend) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    for distribution in Distribution::ALL {
        let matrix = Matrix::<T>::of(distribution, 1, 120, 5);
        for (k, largest, sorted) in [(1, true, false), (20, false, true), (37, true, true)] {
            let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
            for cut in [&[60, 60][..], &[20; 6], &[1, 0, 100, 2, 17]] {
                check::<T, T::Kind>(backend, &matrix, cut, &options)?;
            }
        }
    }
    Ok(Verdict::Passed)
}

/// Each shard gets its gradient. loss = Σ w (v + 1)² with v from 2x: dx = 4 w (v + 1).
fn gradient(backend: &Backend) -> Result<(), String> {
    let devices = devices(backend);
    let device = backend.device.clone().autodiff();
    let mut random = Random::new(3);
    for (cut, k, sorted) in
        [(&[9, 4, 12][..], 7, true), (&[5, 8, 1, 11, 2, 6, 13], 21, false), (&[40], 4, false)]
    {
        let mut integers =
            |n: usize| -> Vec<f32> { (0..n).map(|_| random.below(21) as f32 - 10.0).collect() };
        let parts: Vec<Vec<f32>> = cut.iter().map(|&n| integers(n)).collect();
        let weights = integers(k);
        let shards: Vec<Tensor<1>> = parts
            .iter()
            .zip(devices.iter().cycle())
            .map(|(part, device)| {
                Tensor::from_floats(&part[..], &device.clone().autodiff()).require_grad()
            })
            .collect();
        let doubled = shards.iter().map(|x| x.clone() * 2.0).collect();
        let options = TopkOptions::new(k).with_sorted(sorted);
        let (values, indices) = topk_sharded(doubled, &options).map_err(|e| e.to_string())?;
        let selected: Vec<f32> = values.to_data().iter::<f32>().collect();
        let places: Vec<i64> = indices.into_data().iter::<i64>().collect();
        let shifted = values + 1.0;
        let w = Tensor::<1>::from_floats(&weights[..], &device);
        let gradients = (shifted.clone() * shifted * w).backward();

        let mut expected = vec![0.0; cut.iter().sum()];
        for (n, &at) in places.iter().enumerate() {
            expected[at as usize] = 4.0 * weights[n] * (selected[n] + 1.0);
        }
        let mut found = Vec::new();
        for (i, shard) in shards.iter().enumerate() {
            let gradient = shard.grad(&gradients);
            let gradient = gradient.ok_or(format!("shard {i} has no gradient"))?;
            found.extend(gradient.into_data().iter::<f32>());
        }
        if found != expected {
            return Err(format!("shards {cut:?}: gradient {found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

fn nothing(backend: &Backend) -> Result<(), String> {
    for cut in [&[3, 4][..], &[0, 0], &[0]] {
        let data = vec![1.0f32; 7];
        let shards = shards::<f32, Float>(backend, &data, cut);
        let (values, indices) =
            topk_sharded(shards, &TopkOptions::new(0)).map_err(|e| e.to_string())?;
        if values.dims() != [0] || indices.dims() != [0] {
            return Err(format!("{:?} and {:?}", values.dims(), indices.dims()));
        }
    }
    Ok(())
}

/// Invalid requests are refused before any launch.
fn errors(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let floats = |n: usize| Tensor::<1>::from_floats(&vec![0.0f32; n][..], device);
    let of = |shards: Vec<Tensor<1>>, options: TopkOptions| topk_sharded(shards, &options).err();
    let two = || vec![floats(2), floats(3)];
    let none = of(Vec::new(), TopkOptions::new(0));
    let many = of(two(), TopkOptions::new(6));
    let method = of(two(), TopkOptions::new(1).with_method(Method::EarlyStop(3)));
    let autodiff = Tensor::<1>::from_floats([1.0], &device.clone().autodiff());
    let autodiff = of(vec![floats(1), autodiff], TopkOptions::new(1));
    let found = (&none, &many, &method, &autodiff);
    let (
        Some(ShardedError::NoShards),
        Some(ShardedError::KTooLarge { k: 6, length: 5 }),
        Some(ShardedError::Method { .. }),
        Some(ShardedError::MixedAutodiff { shard: 1 }),
    ) = found
    else {
        return Err(format!("{found:?}"));
    };
    let ints = |dtype| Tensor::<1, Int>::from_data(TensorData::from([1i32, 2]), (device, dtype));
    let mixed = vec![ints(DType::I32), ints(DType::U32)];
    match topk_sharded(mixed, &TopkOptions::new(1)) {
        Err(ShardedError::MixedDtypes { shard: 1, .. }) => Ok(()),
        found => Err(format!("{:?}", found.err())),
    }
}

/// An out-of-memory error names the device, even if the result is on another one.
fn lacking_memory(backend: &Backend) -> Outcome {
    let Some(client) = &backend.client else {
        return Ok(Verdict::Skipped("running out of memory on Flex ends the process".into()));
    };
    if let Some(reason) = backend.loop_limit(usize::MAX) {
        return Ok(Verdict::Skipped(reason));
    }
    let page = client.properties().memory.max_page_size as usize;
    let here = Tensor::<1>::from_floats([2.0, 1.0], &Device::flex());
    let there = Tensor::<1>::empty([page / size_of::<f32>() + 1], &backend.device);
    let failing = format!("{:?}", backend.device);
    match topk_sharded(vec![here, there], &TopkOptions::new(1)) {
        Err(ShardedError::Device { device, .. }) if device == failing => Ok(Verdict::Passed),
        found => Err(format!("{:?} instead of {failing}'s", found.err())),
    }
}

/// A refusal names the device; nothing panics.
fn refused(backend: &Backend) -> Outcome {
    let length = 1 << 17;
    if backend.loop_limit(length).is_none() {
        let reason = "this device accepts shards of any length";
        return Ok(Verdict::Skipped(reason.into()));
    }
    let here = Tensor::<1>::from_floats([2.0, 1.0], &Device::flex());
    let there = Tensor::<1>::zeros([length], &backend.device);
    let failing = format!("{:?}", backend.device);
    match topk_sharded(vec![here, there], &TopkOptions::new(1)) {
        Err(ShardedError::Device { device, reason })
            if device == failing && reason.contains("131072") =>
        {
            Ok(Verdict::Passed)
        }
        found => Err(format!("{:?} instead of {failing}'s", found.err())),
    }
}
