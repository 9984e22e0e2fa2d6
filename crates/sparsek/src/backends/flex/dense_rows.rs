use burn::{
    backend::TensorMetadata,
    tensor::{DType, Element, Shape},
};
use burn_flex::FlexTensor;
use bytemuck::Pod;
use num_traits::Float;
use sparsek_kernels::distance::{DenseForm, SquareRange};

use super::{
    element::{filled, from_vec, with_index},
    parallel,
};
use crate::ops::ListedSpec;

const LANES: usize = 8;
/// Summed apart, against rounding.
const BLOCK: usize = 256;

/// Keeps squares in range; mostly 1.
fn factor<S: Float>(greatest: S) -> S {
    let range = SquareRange::of(size_of::<S>() == 8);
    let power = |exponent: i32| (S::one() + S::one()).powi(exponent);
    if greatest > power(range.greatest) {
        power(-range.scale)
    } else if greatest < power(range.least) {
        power(range.scale)
    } else {
        S::one()
    }
}

fn sum<S: Float>(x: &[S], y: &[S], term: impl Fn(S, S) -> S) -> S {
    let mut total = S::zero();
    for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
        let mut lanes = [S::zero(); LANES];
        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
        for (x, y) in x.iter().zip(y) {
            for lane in 0..LANES {
                lanes[lane] = lanes[lane] + term(x[lane], y[lane]);
            }
        }
        for (lane, (&x, &y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
            *lane = *lane + term(x, y);
        }
        total = total + lanes.iter().fold(S::zero(), |sum, &lane| sum + lane);
    }
    total
}

/// Ignores NaN.
fn greatest<S: Float>(values: impl Iterator<Item = S>) -> S {
    values.fold(S::zero(), |most, value| if value.abs() > most { value.abs() } else { most })
}

fn distance<S: Float>(form: DenseForm, x: &[S], y: &[S]) -> S {
    let two = S::one() + S::one();
    let squares = |factor: S| {
        sum(x, y, |x, y| {
            let difference = (y - x) * factor;
            difference * difference
        })
    };
    match form {
        DenseForm::Product => sum(x, y, |x, y| x * y),
        DenseForm::Angle { .. } => {
            let half = squares(S::one()) / two;
            if half > two { two } else { half }
        }
        DenseForm::Difference { root } => {
            let factor = factor(greatest(x.iter().zip(y).map(|(&x, &y)| y - x)));
            let (total, back) = (squares(factor), factor.recip());
            if root { total.sqrt() * back } else { total * back * back }
        }
    }
}

fn to_unit<S: Float>(row: &mut [S], centered: bool) {
    let total = |row: &[S]| sum(row, row, |x, _| x);
    let scale = |row: &mut [S]| {
        let factor = factor(greatest(row.iter().copied()));
        row.iter_mut().for_each(|x| *x = *x * factor);
    };
    scale(row);
    if centered {
        let count = S::from(row.len()).expect("a float");
        // Removes the first mean's rounding.
        for _ in 0..2 {
            let mean = total(row) / count;
            row.iter_mut().for_each(|x| *x = *x - mean);
        }
        scale(row);
    }
    let norm = sum(row, row, |x, y| x * y).sqrt();
    row.iter_mut().for_each(|x| *x = *x / norm);
}

fn unit_rows_of<S: Float + Element + Pod>(rows: &FlexTensor, centered: bool) -> FlexTensor {
    let shape = rows.shape();
    let mut output = rows.to_contiguous().as_slice::<S>().expect("contiguous").to_vec();
    parallel::rows(&mut output, shape[1], || (), |_, _, row| to_unit(row, centered));
    from_vec(output, shape)
}

fn distances_of<S: Float + Element + Pod>(
    [queries, rows]: [&FlexTensor; 2],
    candidates: Option<&FlexTensor>,
    form: DenseForm,
) -> FlexTensor {
    let [count, columns] = queries.shape().dims();
    let across = candidates.unwrap_or(rows).shape()[usize::from(candidates.is_some())];
    let candidates = candidates.map(places);
    let [queries, rows] = [queries, rows].map(FlexTensor::to_contiguous);
    let [queries, rows] = [&queries, &rows].map(|all| all.as_slice::<S>().expect("contiguous"));
    let mut output = filled(S::zero(), count * across);
    parallel::rows(
        &mut output,
        across,
        || (),
        |_, query, distances| {
            let x = &queries[query * columns..][..columns];
            for (place, found) in distances.iter_mut().enumerate() {
                let row = candidates.as_ref().map_or(place, |all| all[query * across + place]);
                *found = distance(form, x, &rows[row * columns..][..columns]);
            }
        },
    );
    from_vec(output, Shape::from([count, across]))
}

fn places(candidates: &FlexTensor) -> Vec<usize> {
    let candidates = candidates.to_contiguous();
    with_index!(candidates.dtype(), I => {
        let candidates = candidates.as_slice::<I>().expect("contiguous");
        candidates.iter().map(|&place| place as usize).collect()
    })
}

pub(super) fn unit_rows(rows: &FlexTensor, centered: bool) -> FlexTensor {
    match rows.dtype() {
        DType::F64 => unit_rows_of::<f64>(rows, centered),
        _ => unit_rows_of::<f32>(rows, centered),
    }
}

pub(super) fn distances(
    operands: [&FlexTensor; 2],
    candidates: Option<&FlexTensor>,
    form: DenseForm,
) -> FlexTensor {
    match operands[0].dtype() {
        DType::F64 => distances_of::<f64>(operands, candidates, form),
        _ => distances_of::<f32>(operands, candidates, form),
    }
}

/// As the operation, with products in f32.
pub(super) fn near_distances(
    [factors, index, offsets, limits]: [&FlexTensor; 4],
    [queries, rows]: [&FlexTensor; 2],
    ListedSpec { form, capacity, index: dtype }: ListedSpec,
) -> (FlexTensor, FlexTensor) {
    let [count, inputs] = factors.shape().dims();
    let [row_count, columns] = rows.shape().dims();
    let operands = [factors, index, offsets, limits, queries, rows].map(FlexTensor::to_contiguous);
    let slices = operands.each_ref().map(|all| all.as_slice::<f32>().expect("contiguous f32"));
    let [factors, index, offsets, limits, queries, rows] = slices;
    let farthest = match form {
        DenseForm::Product => f32::NEG_INFINITY,
        _ => f32::INFINITY,
    };
    let mut distances = filled(farthest, count * capacity);
    let mut numbers = filled(row_count as i64 - 1, count * capacity);
    let both = (&mut distances[..], &mut numbers[..]);
    parallel::row_pairs(
        both,
        capacity,
        || (),
        |_, query, distances, numbers| {
            let factor = &factors[query * inputs..][..inputs];
            let x = &queries[query * columns..][..columns];
            let near = (0..row_count).filter(|&row| {
                let product = sum(factor, &index[row * inputs..][..inputs], |x, y| x * y);
                product + offsets[row] <= limits[query]
            });
            for (slot, row) in near.enumerate() {
                if slot == capacity {
                    distances.fill(f32::NAN);
                    break;
                }
                distances[slot] = distance(form, x, &rows[row * columns..][..columns]);
                numbers[slot] = row as i64;
            }
        },
    );
    let shape = Shape::from([count, capacity]);
    let numbers = with_index!(DType::from(dtype), I => {
        let numbers: Vec<I> = numbers.iter().map(|&number| number as I).collect();
        from_vec(numbers, shape.clone())
    });
    (from_vec(distances, shape), numbers)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn rows(elements: &[f32], columns: usize) -> FlexTensor {
        from_vec(elements.to_vec(), Shape::from([elements.len() / columns, columns]))
    }

    #[test]
    fn candidates_have_any_index_dtype() {
        let (queries, all) = (rows(&[1.0, 2.0], 2), rows(&[0.0, 0.0, 1.0, 2.0, 4.0, 6.0], 2));
        let shape = || Shape::from([1, 2]);
        let candidates = [from_vec(vec![2i64, 1], shape()), from_vec(vec![2i32, 1], shape())];
        for candidates in candidates {
            let form = DenseForm::Difference { root: true };
            let found = distances([&queries, &all], Some(&candidates), form);
            assert_eq!(found.as_slice::<f32>().expect("f32"), [5.0, 0.0]);
        }
    }

    #[rstest]
    #[case::huge(1e30)]
    #[case::tiny(1e-30)]
    #[case::one(1.0)]
    fn magnitudes_scale_differences_and_leave_angles(#[case] scale: f32) {
        let (x, y) = (rows(&[3.0 * scale, 0.0], 2), rows(&[0.0, 4.0 * scale], 2));
        let form = DenseForm::Difference { root: true };
        let found = distances([&x, &y], None, form);
        let found = found.as_slice::<f32>().expect("f32")[0];
        assert!((found / (5.0 * scale) - 1.0).abs() < 1e-6, "{found}");
        let [x, y] = [x, y].map(|rows| unit_rows(&rows, false));
        let angle = distances([&x, &y], None, DenseForm::Angle { centered: false });
        assert!((angle.as_slice::<f32>().expect("f32")[0] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn sums_of_long_rows_keep_their_digits() {
        let ones = rows(&vec![0.1; 100_003], 100_003);
        let found = distances([&ones, &ones], None, DenseForm::Product);
        let found = f64::from(found.as_slice::<f32>().expect("f32")[0]);
        let expected = 100_003.0 * f64::from(0.1f32).powi(2);
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    }
}
