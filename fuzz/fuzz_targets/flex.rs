//! `topk`, `argtopk` and, for floats, `topk_mask` on Flex, including ragged rows.

#![no_main]

use burn::tensor::kind::Ordered;
use burn::tensor::{Device, Float, Int, Tensor, TensorData};
use libfuzzer_sys::fuzz_target;
use sparsek::topk::{
    argtopk, argtopk_ragged, topk, topk_mask, topk_mask_ragged, topk_ragged,
};
use sparsek_fuzz::Request;
use sparsek_tests::data::Matrix;
use sparsek_tests::element::Element;
use sparsek_tests::{verify, with_dtype};

fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = Request::read(bytes) {
        let result = with_dtype!(request.dtype, T => compare::<T>(&request));
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
});

fn compare<T: Element>(request: &Request) -> Result<(), String> {
    let matrix = request.matrix::<T>();
    let options = &request.options;
    let x = tensor::<T::Kind, T>(&matrix);
    let lengths = request.lengths.as_ref().map(|lengths| {
        let data = TensorData::new(lengths.clone(), [lengths.len()]);
        Tensor::<1, Int>::from_data(data, &Device::flex())
    });
    let (values, indices) = match lengths.clone() {
        Some(lengths) => topk_ragged(x.clone(), lengths, options, -1),
        None => topk(x.clone(), options, -1),
    };
    let values = elements::<T>(&values.into_data());
    verify::selection(&matrix, options, Some(&values), &positions(indices))?;
    let indices = match lengths.clone() {
        Some(lengths) => argtopk_ragged(x, lengths, options, -1),
        None => argtopk(x, options, -1),
    };
    verify::selection(&matrix, options, None, &positions(indices))?;
    if T::FLOAT {
        let x = tensor::<Float, T>(&matrix);
        let dense = match lengths {
            Some(lengths) => topk_mask_ragged(x, lengths, options, -1),
            None => topk_mask(x, options, -1),
        };
        verify::mask(&matrix, options, &elements::<T>(&dense.into_data()))?;
    }
    Ok(())
}

fn tensor<K: Ordered, T: Element>(matrix: &Matrix<T>) -> Tensor<2, K> {
    let data = TensorData::new(matrix.data.clone(), [matrix.rows, matrix.cols]);
    Tensor::from_data(data, (&Device::flex(), T::dtype()))
}

fn elements<T: Element>(data: &TensorData) -> Vec<T> {
    assert_eq!(data.dtype(), T::dtype());
    bytemuck::pod_collect_to_vec(data.as_bytes())
}

fn positions(indices: Tensor<2, Int>) -> Vec<i64> {
    indices.into_data().iter::<i64>().collect()
}
