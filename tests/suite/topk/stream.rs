//! `TopkStream`: parts of a vector, on all devices of the backend in turn.

use burn::tensor::{DType, Device, Int, Tensor, TensorData, kind::Autodiff};
use sparsek::topk::{Method, StreamError, TopkOptions, TopkStream, VectorOptions, topk_vector};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::{Dtype, Element},
    runner::{Cases, Outcome, Verdict},
    verify, with_dtype,
};

use super::common::elements;

pub fn add(cases: &mut Cases, backend: &Backend) {
    for dtype in Dtype::ALL {
        with_dtype!(dtype, T => cases.add(
            backend,
            format!("tensor/topk/stream/{}", T::NAME),
            of_dtype::<T>,
        ));
    }
    cases.add(backend, "tensor/topk/stream/merges", merges);
    cases.check(backend, "tensor/topk/stream/views", views);
    cases.check(backend, "tensor/topk/stream/errors", errors);
    cases.add(backend, "tensor/topk/stream/lacking-memory", lacking_memory);
}

/// Lengths repeat until the vector is cut.
fn of_dtype<T: Element>(backend: &Backend) -> Outcome
where
    T::Kind: Autodiff,
{
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    for distribution in Distribution::ALL {
        let matrix = Matrix::<T>::of(distribution, 1, 203, 5);
        for (k, largest, sorted) in
            [(0, true, false), (1, true, false), (20, false, true), (203, true, true)]
        {
            let options = TopkOptions::new(k).with_largest(largest).with_sorted(sorted);
            for cut in [&[203][..], &[50], &[1, 0, 100, 2]] {
                check(backend, &matrix, cut, &options)?;
            }
        }
    }
    Ok(Verdict::Passed)
}

fn check<T: Element>(
    backend: &Backend,
    matrix: &Matrix<T>,
    cut: &[usize],
    options: &TopkOptions,
) -> Result<(), String>
where
    T::Kind: Autodiff,
{
    let devices = backend.devices();
    let mut stream = TopkStream::<T::Kind>::new(options);
    let mut rest = &matrix.data[..];
    for (&length, device) in cut.iter().cycle().zip(devices.iter().cycle()) {
        let (part, after) = rest.split_at(length.min(rest.len()));
        let data = TensorData::new(part.to_vec(), [part.len()]);
        let part = Tensor::from_data(data, (device, T::dtype()));
        stream.try_push(part).map_err(|error| error.to_string())?;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    if stream.seen() != matrix.data.len() as u64 {
        return Err(format!("{} elements seen", stream.seen()));
    }
    let (values, indices) = stream.try_finish().map_err(|error| error.to_string())?;
    let values = elements::<T>(&values.into_data())?;
    let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
    verify::selection(matrix, options, Some(&values), &indices)
        .map_err(|e| format!("parts {cut:?}: {e}"))
}

/// More candidates than are kept, as `topk_vector` of the whole.
fn merges(backend: &Backend) -> Outcome {
    let (length, k) = (100_000, 5000);
    if let Some(reason) = backend.loop_limit(length) {
        return Ok(Verdict::Skipped(reason));
    }
    let matrix = Matrix::<f32>::of(Distribution::Eight, 1, length, 9);
    let upload = |part: &[f32]| Tensor::<1>::from_floats(part, &backend.device);
    let mut stream = TopkStream::new(&TopkOptions::new(k).with_sorted(true));
    for part in matrix.data.chunks(6000) {
        stream.push(upload(part));
    }
    let options = VectorOptions::new(k).with_sorted(true);
    let expected = topk_vector(upload(&matrix.data), &options);
    let found = stream.finish();
    let bytes = |values: Tensor<1>| values.into_data().as_bytes().to_vec();
    let places = |x: Tensor<1, Int>| -> Vec<i64> { x.into_data().iter::<i64>().collect() };
    match (bytes(found.0) == bytes(expected.0), places(found.1) == places(expected.1)) {
        (true, true) => Ok(Verdict::Passed),
        same => Err(format!("same values and indices: {same:?}")),
    }
}

/// Parts may be strided, and on autodiff devices.
fn views(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<f32>::of(Distribution::Normal, 1, 120, 3);
    let options = TopkOptions::new(17);
    let mut stream = TopkStream::new(&options);
    for part in matrix.data.chunks(40) {
        let twice: Vec<f32> = part.iter().flat_map(|&x| [x, f32::INFINITY]).collect();
        let device = backend.device.clone().autodiff();
        let pairs = Tensor::<1>::from_floats(&twice[..], &device).require_grad();
        stream.push(pairs.reshape([40, 2]).narrow(1, 0, 1).squeeze_dim(1));
    }
    let (values, indices) = stream.finish();
    let values = elements::<f32>(&values.into_data())?;
    let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
    verify::selection(&matrix, &options, Some(&values), &indices)
}

/// Parts that do not fit are refused before any launch, and left out.
fn errors(backend: &Backend) -> Result<(), String> {
    let device = &backend.device;
    let ints = |dtype| Tensor::<1, Int>::from_data(TensorData::from([1i32, 2]), (device, dtype));
    let options = TopkOptions::new(3);
    let mut stream = TopkStream::new(&options);
    stream.push(ints(DType::I32));
    let mixed = stream.try_push(ints(DType::U32)).err();
    let few = stream.try_finish().err();
    let none = TopkStream::<Int>::new(&options).try_finish().err();
    let method = TopkStream::<Int>::try_new(&options.with_method(Method::EarlyStop(3))).err();
    match (&mixed, &few, &none, &method) {
        (
            Some(StreamError::MixedDtypes { first: DType::I32, found: DType::U32 }),
            Some(StreamError::KTooLarge { k: 3, length: 2 }),
            Some(StreamError::NoParts),
            Some(StreamError::Method { .. }),
        ) => Ok(()),
        found => Err(format!("{found:?}")),
    }
}

/// An out-of-memory error names the device and stays.
fn lacking_memory(backend: &Backend) -> Outcome {
    let Some(client) = &backend.client else {
        return Ok(Verdict::Skipped("running out of memory on Flex ends the process".into()));
    };
    if let Some(reason) = backend.loop_limit(usize::MAX) {
        return Ok(Verdict::Skipped(reason));
    }
    let page = client.properties().memory.max_page_size as usize;
    let mut stream = TopkStream::new(&TopkOptions::new(1));
    stream.push(Tensor::<1>::from_floats([2.0, 1.0], &Device::flex()));
    let pushed =
        stream.try_push(Tensor::empty([page / size_of::<f32>() + 1], &backend.device)).err();
    let failing = format!("{:?}", backend.device);
    match stream.try_finish() {
        Err(StreamError::Device { device, .. }) if device == failing => Ok(Verdict::Passed),
        found => Err(format!("{pushed:?}, {:?} instead of {failing}'s", found.err())),
    }
}
