//! Masks of truth values, with fill values, by scores and by magnitude.

use burn::tensor::{Bool, Float, Int, Tensor, TensorData, kind::Ordered};
use sparsek::topk::{
    Method, TopkOptions, topk_bool_mask, topk_mask, topk_mask_by, topk_mask_fill,
    topk_mask_magnitude,
};
use sparsek_kernels::topk::MAX_COLS;
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::Element,
    oracle::topk::select,
    runner::{Cases, Outcome, Verdict},
};

use super::common::{elements, upload};

pub fn add(cases: &mut Cases, backend: &Backend) {
    cases.check(backend, "tensor/topk/masks/f32", by_value::<f32, Float>);
    cases.check(backend, "tensor/topk/masks/i32", by_value::<i32, Int>);
    cases.check(backend, "tensor/topk/masks/scores", by_score);
    cases.check(backend, "tensor/topk/masks/magnitude", by_magnitude);
    cases.check(backend, "tensor/topk/masks/gradient", gradients);
    cases.check(backend, "tensor/topk/masks/empty", empty);
    cases.add(backend, "tensor/topk/masks/long-row", long_row);
}

/// Where the oracle selects from the scores.
fn kept<T: Element>(scores: &Matrix<T>, options: &TopkOptions) -> Vec<bool> {
    let mut kept = vec![false; scores.data.len()];
    for i in 0..scores.rows {
        for j in select(scores.row(i), options) {
            kept[i * scores.cols + j] = true;
        }
    }
    kept
}

fn check_truths(found: Tensor<2, Bool>, kept: &[bool]) -> Result<(), String> {
    let found: Vec<bool> = found.into_data().iter::<bool>().collect();
    match (0..kept.len()).find(|&i| found[i] != kept[i]) {
        Some(i) => Err(format!("truth value {i} is {}", found[i])),
        None if found.len() == kept.len() => Ok(()),
        None => Err(format!("{} truth values instead of {}", found.len(), kept.len())),
    }
}

/// Checks the truth values of `matrix` as a tensor whose rows lie along `dim`.
pub fn check<K: Ordered, T: Element>(
    x: Tensor<2, K>,
    matrix: &Matrix<T>,
    options: &TopkOptions,
    dim: isize,
) -> Result<(), String> {
    let mask = topk_bool_mask(x, options, dim);
    let mask = if dim == 0 { mask.transpose() } else { mask };
    check_truths(mask, &kept(matrix, options)).map_err(|e| format!("topk_bool_mask: {e}"))
}

/// Kept elements have their bits, the others those of `fill`.
fn check_filled<K: Ordered, T: Element>(
    found: Tensor<2, K>,
    matrix: &Matrix<T>,
    kept: &[bool],
    fill: T,
) -> Result<(), String> {
    let found = elements::<T>(&found.into_data())?;
    if found.len() != kept.len() {
        return Err(format!("{} elements instead of {}", found.len(), kept.len()));
    }
    let wanted = |i: usize| if kept[i] { matrix.data[i] } else { fill };
    match (0..kept.len()).find(|&i| !found[i].same(wanted(i))) {
        Some(i) => Err(format!("element {i} is {:?} instead of {:?}", found[i], wanted(i))),
        None => Ok(()),
    }
}

fn by_value<T: Element, K: Ordered>(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<T>::mixed(18, 203, 41);
    let x = upload::<K, T>(&matrix, backend);
    for (k, largest, method) in [
        (0, true, Method::Exact),
        (1, false, Method::Exact),
        (32, true, Method::Exact),
        (203, false, Method::Exact),
        (32, true, Method::EarlyStop(4)),
    ] {
        let options = TopkOptions::new(k).with_largest(largest).with_method(method);
        let kept = kept(&matrix, &options);
        let context = |e: String| format!("{options:?}: {e}");
        // `sorted` changes nothing.
        check(x.clone(), &matrix, &options.with_sorted(true), -1).map_err(context)?;
        check(x.clone(), &matrix, &options, -1).map_err(context)?;
        check(x.clone().transpose(), &matrix, &options, 0).map_err(context)?;
        for fill in [0.0, -3.0, 7.0] {
            let dense = topk_mask_fill(x.clone(), &options, -1, fill);
            check_filled(dense, &matrix, &kept, T::of(fill)).map_err(context)?;
        }
    }
    Ok(())
}

fn by_score(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<f32>::of(Distribution::Normal, 18, 203, 42);
    let x = upload::<Float, f32>(&matrix, backend);
    let options = TopkOptions::new(20).with_largest(false);
    let minus_inf = f32::NEG_INFINITY;

    let floats = Matrix::<f32>::mixed(18, 203, 43);
    let scores = upload::<Float, f32>(&floats, backend);
    let dense = topk_mask_by(x.clone(), scores, &options, 1, minus_inf);
    check_filled(dense, &matrix, &kept(&floats, &options), minus_inf)?;

    let ints = Matrix::<i32>::mixed(18, 203, 44);
    let scores = upload::<Int, i32>(&ints, backend).transpose();
    let dense = topk_mask_by(x.transpose(), scores, &options, 0, minus_inf);
    check_filled(dense.transpose(), &matrix, &kept(&ints, &options), minus_inf)
}

fn by_magnitude(backend: &Backend) -> Result<(), String> {
    let mut matrix = Matrix::<f32>::of(Distribution::Normal, 18, 203, 45);
    // Equal magnitudes of both signs are ties.
    matrix.data.iter_mut().step_by(3).for_each(|x| *x = x.signum() * 1.5);
    let magnitudes = matrix.data.iter().map(|x| x.abs()).collect();
    let magnitudes = Matrix { data: magnitudes, ..matrix.clone() };
    let x = upload::<Float, f32>(&matrix, backend);
    for largest in [true, false] {
        let options = TopkOptions::new(60).with_largest(largest);
        let dense = topk_mask_magnitude(x.clone(), &options, -1, 0.0);
        check_filled(dense, &matrix, &kept(&magnitudes, &options), 0.0)?;
    }
    Ok(())
}

/// The upstream gradient passes at kept elements and is 0 elsewhere, whatever the fill value.
fn gradients(backend: &Backend) -> Result<(), String> {
    let matrix = Matrix::<f32>::of(Distribution::Normal, 9, 40, 46);
    let weights = Matrix::<f32>::of(Distribution::Normal, 9, 40, 47);
    let options = TopkOptions::new(11);
    type Mask = fn(Tensor<2>, Tensor<2>, &TopkOptions) -> Tensor<2>;
    let magnitudes = matrix.data.iter().map(|x| x.abs()).collect();
    let magnitudes = Matrix { data: magnitudes, ..matrix.clone() };
    let masks: [(&str, Mask, &Matrix<f32>); 3] = [
        ("fill", |x, _, options| topk_mask_fill(x, options, 1, -5.0), &matrix),
        ("magnitude", |x, _, options| topk_mask_magnitude(x, options, 1, 2.0), &magnitudes),
        ("scores", |x, scores, options| topk_mask_by(x, scores, options, 1, 0.0), &weights),
    ];
    for (name, mask, scores) in masks {
        let x = upload::<Float, f32>(&matrix, backend).autodiff().require_grad();
        let w = upload::<Float, f32>(&weights, backend).autodiff();
        let loss = mask(x.clone(), w.clone(), &options) * w;
        let gradient = x.grad(&loss.backward()).ok_or("a gradient")?;
        check_filled(gradient, &weights, &kept(scores, &options), 0.0)
            .map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(())
}

fn empty(backend: &Backend) -> Result<(), String> {
    for shape in [[0, 5], [3, 0], [0, 0]] {
        let data = TensorData::new(Vec::<f32>::new(), shape);
        let x = Tensor::<2>::from_data(data, &backend.device);
        let none = TopkOptions::new(0);
        let mask = topk_bool_mask(x.clone(), &none, -1).dims();
        let dense = topk_mask_fill(x, &none, -1, 1.0).dims();
        if mask != shape || dense != shape {
            return Err(format!("{mask:?} and {dense:?} instead of {shape:?}"));
        }
    }
    Ok(())
}

/// A row longer than rows of a matrix may be, with its gradient.
fn long_row(backend: &Backend) -> Outcome {
    const LENGTH: usize = MAX_COLS + 5;
    if let Some(reason) = backend.loop_limit(LENGTH) {
        return Ok(Verdict::Skipped(reason));
    }
    let matrix = Matrix::<f32>::of(Distribution::Normal, 1, LENGTH, 48);
    let options = TopkOptions::new(1000);
    let kept = kept(&matrix, &options);
    let x = upload::<Float, f32>(&matrix, backend).autodiff().require_grad();
    let dense = topk_mask(x.clone(), &options, 1);
    check_filled(dense.clone().inner(), &matrix, &kept, 0.0)?;
    let gradient = x.grad(&dense.backward()).ok_or("a gradient")?;
    let ones = Matrix { data: vec![1.0; LENGTH], ..matrix };
    check_filled(gradient, &ones, &kept, 0.0)?;
    Ok(Verdict::Passed)
}
