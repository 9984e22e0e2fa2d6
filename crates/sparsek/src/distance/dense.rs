//! Nearest neighbors among dense rows: a matrix product filters, direct evaluation decides.
//!
//! ```text
//! bound(q, x) <= distance(q, x), by one product of queries and index
//! candidates: the c = 2 k + 16 rows of least bound
//! evaluate the candidates directly; sort by (distance, row); keep k
//! if the greatest bound of the candidates > the k-th distance: done
//! else: again with 8 c candidates, at last with all rows and no bound
//! ```
//!
//! With TF32 and 2^16 rows, the first pass keeps bounds out of memory:
//!
//! ```text
//! limit <- a low rank of the bounds of a row in 32, to expect more than c rows
//! candidates: all rows with bound <= limit, listed as the product is computed
//! rejected bounds are above the limit; a list that overflows proves nothing
//! ```
//!
//! **Exact.** If the greatest candidate bound exceeds the k-th distance, no rejected row beats or
//! ties it.
//!
//! **Bounds.** TF32 or pairs of bf16 make products G' differ from q·x by ≤ ε |q| |x|, ε = 2^-9 plus
//! the rounding of sums. ε' also covers norms, centering and direct evaluation.
//!
//! - Difference, of centered rows: (1 − ε') (|q|² + |x|²) − 2 G'.
//! - Angle, of unit rows: 1 − ε' − G'.
//! - Product, of queries over their norms: (−G' − ε' |x|) |q|.
//!
//! Without a valid bound, rows have −∞ (always candidates), or +∞ if their distances are
//! never finite; queries always fail.
//!
//! Cost: the product, a selection and 2 k + 16 evaluations per query, of lists up to a few
//! thousand; at worst n.

use burn::{
    backend::Dispatch,
    tensor::{Bool, DType, Float, Int, Tensor, TensorData},
};
#[cfg(feature = "cubecl")]
use sparsek_kernels::dense::filters_columns;
use sparsek_kernels::distance::{DenseForm as Form, SquareRange};

use super::types::{Nearest, NearestNeighbors};
#[cfg(feature = "cubecl")]
use crate::backends::ask_client;
use crate::{
    ops::{DenseOps, DistanceOps, ListedSpec, distance_dtype},
    topk::{TopkOptions, topk},
};

const MORE_CANDIDATES: usize = 16;
const WIDEN: usize = 8;
/// With fewer rows per candidate, evaluates all.
const LEAST_FRACTION: usize = 4;
const BOUND_BYTES: usize = 1 << 30;
const ALL_BYTES: usize = 128 << 20;
/// Rows per product.
const WHOLE_BATCH: usize = 256;
/// Least index rows for lists.
const LISTED_ROWS: usize = 1 << 16;
/// Index rows per sampled row.
const SAMPLE_SHARE: usize = 32;
/// Products store whole blocks of columns.
const SAMPLE_MULTIPLE: usize = 128;
/// Standard deviations of sampled ranks and list lengths.
const RANK_MARGIN: f64 = 4.0;
const LIST_MARGIN: f64 = 6.0;
const LIST_MULTIPLE: usize = 128;
const MAX_LIST: usize = 4096;
/// Least index rows per list place.
const LIST_FRACTION: usize = 16;
const RUNS: &str = "the device runs";

/// f32 or f64; for angles, unit rows.
fn evaluated_rows(form: Form, rows: Tensor<2>) -> Tensor<2> {
    let dtype = distance_dtype(rows.dtype());
    let rows = rows.detach().cast(dtype);
    match form {
        Form::Angle { centered } => Tensor::from_dispatch(<Dispatch as DistanceOps>::unit_rows(
            rows.into_dispatch(),
            centered,
        )),
        _ => rows,
    }
}

struct Limits {
    /// ε': constant, and per column.
    epsilon: [f64; 2],
    /// Greatest element for which bounds hold.
    greatest: f64,
    /// Covers underflow of squares.
    floor: f64,
}

impl Limits {
    fn of(dtype: DType) -> Self {
        let power = |exponent: i32| 2.0_f64.powi(exponent);
        let double = dtype == DType::F64;
        let greatest = power(SquareRange::of(double).greatest);
        match double {
            true => Self { epsilon: [power(-44), power(-50)], greatest, floor: power(-900) },
            false => Self { epsilon: [2.5e-3, power(-21)], greatest, floor: power(-98) },
        }
    }

    fn epsilon(&self, columns: usize) -> f64 {
        self.epsilon[0] + self.epsilon[1] * columns as f64
    }

    /// No NaN, infinity or great element: `[rows, 1]`.
    fn are_usable(&self, rows: &Tensor<2>) -> Tensor<2, Bool> {
        rows.clone().abs().lower_equal_elem(self.greatest).all_dim(1)
    }
}

/// Adds in fixed order: `[rows, 1]`.
fn row_sums(mut rows: Tensor<2>) -> Tensor<2> {
    let mut odd: Option<Tensor<2>> = None;
    loop {
        let mut width = rows.dims()[1];
        if width == 1 {
            break;
        }
        if width % 2 == 1 {
            width -= 1;
            let last = rows.clone().narrow(1, width, 1);
            odd = Some(match odd {
                Some(odd) => odd + last,
                None => last,
            });
        }
        let half = width / 2;
        rows = rows.clone().narrow(1, 0, half) + rows.narrow(1, half, half);
    }
    match odd {
        Some(odd) => rows + odd,
        None => rows,
    }
}

fn usable_rows(rows: Tensor<2>, usable: &Tensor<2, Bool>) -> Tensor<2> {
    let shape = rows.dims();
    rows.mask_fill(usable.clone().bool_not().expand(shape), 0.0)
}

/// Prepared index rows.
#[derive(Clone)]
pub struct Index {
    form: Form,
    rows: Tensor<2>,
    /// For products; zero if unusable.
    factors: Tensor<2>,
    /// Of the bounds: `[n]`.
    offsets: Tensor<1>,
    means: Option<Tensor<2>>,
    /// Factors and offsets of a row in 32, if rows can be listed.
    sample: Option<(Tensor<2>, Tensor<1>)>,
}

/// Candidates from lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listing {
    /// Of the limit, among sampled bounds.
    rank: usize,
    capacity: usize,
}

impl Listing {
    /// Lists that fit, and most likely hold `candidates` of `rows` rows.
    fn new(candidates: usize, rows: usize) -> Option<Self> {
        let share = SAMPLE_SHARE as f64;
        let expected = candidates as f64 / share;
        let rank = (expected + RANK_MARGIN * (expected.sqrt() + 1.0)).ceil();
        let capacity = (share * (rank + LIST_MARGIN * rank.sqrt())).ceil() as usize;
        let capacity = capacity.next_multiple_of(LIST_MULTIPLE);
        let fits = capacity <= MAX_LIST && capacity * LIST_FRACTION <= rows;
        fits.then_some(Self { rank: rank as usize, capacity })
    }
}

enum Candidates {
    Listed(Listing),
    /// Rows of least bound.
    Least(usize),
    All,
}

/// Whether the device lists rows without their bounds in memory.
fn lists(rows: &Tensor<2>) -> bool {
    #[cfg(feature = "cubecl")]
    if rows.dtype() == DType::F32 {
        let ([_, columns], device) = (rows.dims(), rows.device());
        // Narrow integers cannot number the rows; selections refuse them.
        let numbered = DType::from(device.settings().int_dtype).size() >= 4;
        let filters = ask_client(&device, |client| filters_columns(client, columns));
        return numbered && filters == Some(true);
    }
    let _ = rows;
    false
}

/// Bound of row x: (factors · x + offset of x + shift) · scale.
#[derive(Clone)]
struct Queries {
    rows: Tensor<2>,
    factors: Tensor<2>,
    shifts: Tensor<2>,
    scales: Tensor<2>,
}

impl Queries {
    fn map(&self, part: impl Fn(Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            rows: part(self.rows.clone()),
            factors: part(self.factors.clone()),
            shifts: part(self.shifts.clone()),
            scales: part(self.scales.clone()),
        }
    }

    fn count(&self) -> usize {
        self.rows.dims()[0]
    }
}

/// Prepares ≤ `most` rows per part.
pub fn parts(index: &Tensor<2>, form: Form, most: usize) -> Vec<Index> {
    let [rows, _] = index.dims();
    let starts = (0..rows).step_by(most);
    let part = |first| index.clone().narrow(0, first, most.min(rows - first));
    starts.map(|first| Index::new(part(first), form)).collect()
}

impl Index {
    fn new(rows: Tensor<2>, form: Form) -> Self {
        let rows = evaluated_rows(form, rows);
        let limits = Limits::of(rows.dtype());
        let epsilon = limits.epsilon(rows.dims()[1]);
        let usable = limits.are_usable(&rows);
        let clean = usable_rows(rows.clone(), &usable);
        let other = usable.clone().bool_not();
        let (factors, offsets, means) = match form {
            Form::Difference { .. } => {
                let means = clean.clone().mean_dim(0);
                let factors = usable_rows(clean - means.clone(), &usable);
                let norms = row_sums(factors.clone().square());
                let offsets = norms.mul_scalar(1.0 - epsilon).sub_scalar(limits.floor);
                // Their distances are never finite.
                let finite = rows.clone().is_finite().all_dim(1);
                let offsets = offsets
                    .mask_fill(other, f64::NEG_INFINITY)
                    .mask_fill(finite.bool_not(), f64::INFINITY);
                (factors, offsets, Some(means))
            }
            Form::Angle { .. } => {
                let offsets = rows.clone().narrow(1, 0, 1).zeros_like();
                let offsets = offsets.mask_fill(other, f64::INFINITY);
                (clean, offsets, None)
            }
            Form::Product => {
                let norms = norm_bounds(&clean, &limits);
                let offsets = norms.mul_scalar(-epsilon).mask_fill(other, f64::NEG_INFINITY);
                (clean, offsets, None)
            }
        };
        let offsets: Tensor<1> = offsets.flatten(0, 1);
        let index = Self { form, rows, factors, offsets, means, sample: None };
        let many = index.rows.dims()[0] >= LISTED_ROWS && lists(&index.rows);
        let sample = many.then(|| index.sample());
        Self { sample, ..index }
    }

    fn sample(&self) -> (Tensor<2>, Tensor<1>) {
        let count = self.rows.dims()[0] / SAMPLE_SHARE;
        let count = count - count % SAMPLE_MULTIPLE.min(count);
        // Hash, as rows may repeat a pattern.
        let place = |at: usize| {
            let hash = (at as u32).wrapping_mul(0x9E37_79B9) >> 16;
            (at * SAMPLE_SHARE + hash as usize % SAMPLE_SHARE) as i64
        };
        let places = TensorData::new((0..count).map(place).collect::<Vec<i64>>(), [count]);
        let places = Tensor::<1, Int>::from_data(places, &self.rows.device());
        (self.factors.clone().select(0, places.clone()), self.offsets.clone().select(0, places))
    }

    fn queries(&self, query: &Tensor<2>) -> Queries {
        let rows = evaluated_rows(self.form, query.clone());
        let limits = Limits::of(rows.dtype());
        let epsilon = limits.epsilon(rows.dims()[1]);
        let usable = limits.are_usable(&rows);
        let clean = usable_rows(rows.clone(), &usable);
        let column = rows.clone().narrow(1, 0, 1).zeros_like();
        let (factors, shifts, scales) = match self.form {
            Form::Difference { .. } => {
                let means = self.means.clone().expect("an index of differences has means");
                let factors = usable_rows(clean - means, &usable);
                let norms = row_sums(factors.clone().square());
                let shifts = norms.mul_scalar(1.0 - epsilon);
                (factors.mul_scalar(-2.0), shifts, column.ones_like())
            }
            Form::Angle { .. } => {
                let shifts = column.clone().add_scalar(1.0 - epsilon);
                (clean.neg(), shifts, column.ones_like())
            }
            Form::Product => {
                let norms = norm_bounds(&clean, &limits);
                ((clean / norms.clone()).neg(), column, norms)
            }
        };
        // No bound holds.
        let shifts = shifts.mask_fill(usable.bool_not(), f64::NEG_INFINITY);
        Queries { rows, factors, shifts, scales }
    }

    fn distances(&self, queries: Tensor<2>, candidates: Tensor<2, Int>) -> Tensor<2> {
        Tensor::from_dispatch(<Dispatch as DistanceOps>::candidate_distances(
            queries.into_dispatch(),
            self.rows.clone().into_dispatch(),
            candidates.into_dispatch(),
            self.form,
        ))
    }

    fn all_distances(&self, queries: Tensor<2>) -> Tensor<2> {
        Tensor::from_dispatch(<Dispatch as DistanceOps>::dense_distances(
            queries.into_dispatch(),
            self.rows.clone().into_dispatch(),
            self.form,
        ))
    }

    /// Queries whose sampled bounds and lists, with distances, fit.
    fn listing_batch(&self, listing: Listing) -> usize {
        let sample = self.rows.dims()[0].div_ceil(SAMPLE_SHARE);
        BOUND_BYTES / (size_of::<f32>() * (sample + 4 * listing.capacity))
    }

    fn fitting(&self, bytes: usize) -> usize {
        let [rows, _] = self.rows.dims();
        bytes / (self.rows.dtype().size() * rows.max(1))
    }

    fn nearest(&self, distances: Tensor<2>, k: usize) -> Nearest {
        let options =
            TopkOptions::new(k).with_largest(self.form == Form::Product).with_sorted(true);
        topk(distances, &options, 1)
    }

    fn filtered(
        &self,
        queries: Queries,
        k: usize,
        candidates: usize,
    ) -> (Nearest, Tensor<2, Bool>) {
        let Queries { rows: query, factors, shifts, scales } = queries;
        let bounds = products(factors, &self.factors, &self.offsets);
        // Unsorted candidates ascend, so ties go to the lowest row.
        let options = TopkOptions::new(candidates).with_largest(false);
        let (bounds, rows) = topk::<2, Float>(bounds, &options, 1);
        let distances = self.distances(query, rows.clone());
        let (distances, places) = self.nearest(distances, k);
        let proven = self.proven(&distances, bounds.max_dim(1), &shifts, &scales);
        ((distances, rows.gather(1, places)), proven)
    }

    /// As [`filtered`](Self::filtered), by lists of a part of the rows.
    fn listed(
        &self,
        queries: Queries,
        k: usize,
        Listing { rank, capacity }: Listing,
    ) -> (Nearest, Tensor<2, Bool>) {
        let (sample, sample_offsets) = self.sample.as_ref().expect("planned with a sample");
        let bounds = products(queries.factors.clone(), sample, sample_offsets);
        let (bounds, _) = topk::<2, Float>(bounds, &TopkOptions::new(rank).with_largest(false), 1);
        let limits = bounds.max_dim(1);
        let index = queries.rows.device().settings().int_dtype;
        let (distances, rows) = <Dispatch as DistanceOps>::near_distances(
            queries.factors.into_dispatch(),
            self.factors.clone().into_dispatch(),
            self.offsets.clone().into_dispatch(),
            limits.clone().into_dispatch(),
            queries.rows.into_dispatch(),
            self.rows.clone().into_dispatch(),
            ListedSpec { form: self.form, capacity, index },
        );
        let rows = Tensor::<2, Int>::from_dispatch(rows);
        let (distances, places) = self.nearest(Tensor::from_dispatch(distances), k);
        let proven = self.proven(&distances, limits, &queries.shifts, &queries.scales);
        ((distances, rows.gather(1, places)), proven)
    }

    /// Whether rows with at least these bounds are farther than the k-th nearest.
    fn proven(
        &self,
        distances: &Tensor<2>,
        bounds: Tensor<2>,
        shifts: &Tensor<2>,
        scales: &Tensor<2>,
    ) -> Tensor<2, Bool> {
        let [_, k] = distances.dims();
        let worst = distances.clone().narrow(1, k - 1, 1);
        let worst = match self.form {
            Form::Difference { root: true } => worst.square(),
            Form::Product => worst.neg(),
            _ => worst,
        };
        ((bounds + shifts.clone()) * scales.clone()).greater(worst)
    }

    fn pass(
        &self,
        queries: &Queries,
        k: usize,
        candidates: Candidates,
        batch: Option<usize>,
    ) -> (Nearest, Option<Tensor<2, Bool>>) {
        let batch = match candidates {
            Candidates::Listed(listing) => batch.unwrap_or_else(|| self.listing_batch(listing)),
            Candidates::Least(_) => batch.unwrap_or_else(|| self.fitting(BOUND_BYTES)),
            Candidates::All => batch.unwrap_or(usize::MAX).min(self.fitting(ALL_BYTES)),
        };
        let batch = whole_batch(batch);
        let with_flags = |(found, flags)| (found, Some(flags));
        let (mut distances, mut indices, mut proven) = (Vec::new(), Vec::new(), Vec::new());
        for first in (0..queries.count()).step_by(batch) {
            let count = batch.min(queries.count() - first);
            let tile = queries.map(|all| all.narrow(0, first, count));
            let (found, flags) = match candidates {
                Candidates::Listed(listing) => with_flags(self.listed(tile, k, listing)),
                Candidates::Least(count) => with_flags(self.filtered(tile, k, count)),
                Candidates::All => (self.nearest(self.all_distances(tile.rows), k), None),
            };
            proven.extend(flags);
            distances.push(found.0);
            indices.push(found.1);
        }
        let found = (Tensor::cat(distances, 0), Tensor::cat(indices, 0));
        (found, (!proven.is_empty()).then(|| Tensor::cat(proven, 0)))
    }

    async fn search(&self, queries: &Queries, k: usize, batch: Option<usize>) -> Nearest {
        let [rows, _] = self.rows.dims();
        let least = |wanted: usize| match wanted <= rows / LEAST_FRACTION {
            true => Candidates::Least(wanted),
            false => Candidates::All,
        };
        let mut wanted = 2 * k + MORE_CANDIDATES;
        let listing = self.sample.as_ref().and_then(|_| Listing::new(wanted, rows));
        let first = listing.map_or_else(|| least(wanted), Candidates::Listed);
        let (mut found, mut proven) = self.pass(queries, k, first, batch);
        let mut open: Vec<i64> = (0..queries.count() as i64).collect();
        while let Some(flags) = proven {
            let flags = flags.into_data_async().await.expect(RUNS);
            let flags = flags.iter::<bool>().zip(&open);
            open = flags.filter(|(proven, _)| !proven).map(|(_, &query)| query).collect();
            if open.is_empty() {
                break;
            }
            let device = queries.rows.device();
            let upload = |places: &[i64]| {
                let places = TensorData::new(places.to_vec(), [places.len()]);
                Tensor::<1, Int>::from_data(places, &device)
            };
            let at = upload(&open);
            wanted *= WIDEN;
            let again = queries.map(|all| all.select(0, at.clone()));
            let (better, flags) = self.pass(&again, k, least(wanted), batch);
            proven = flags;
            let mut places: Vec<i64> = (0..queries.count() as i64).collect();
            for (place, &query) in open.iter().enumerate() {
                places[query as usize] = (queries.count() + place) as i64;
            }
            let places = upload(&places);
            found = (
                Tensor::cat(vec![found.0, better.0], 0).select(0, places.clone()),
                Tensor::cat(vec![found.1, better.1], 0).select(0, places),
            );
        }
        found
    }
}

/// `x · yᵀ + bias`.
fn products(x: Tensor<2>, y: &Tensor<2>, bias: &Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as DenseOps>::row_products(
        x.into_dispatch(),
        y.clone().into_dispatch(),
        bias.clone().into_dispatch(),
    ))
}

fn whole_batch(fitting: usize) -> usize {
    match fitting / WHOLE_BATCH {
        0 => fitting.max(1),
        whole => whole * WHOLE_BATCH,
    }
}

/// Upper bounds, also where squares underflow.
fn norm_bounds(rows: &Tensor<2>, limits: &Limits) -> Tensor<2> {
    row_sums(rows.clone().square()).add_scalar(limits.floor).sqrt()
}

impl NearestNeighbors<Tensor<2>> {
    pub(super) async fn nearest_dense(
        &self,
        parts: &[Index],
        query: &Tensor<2>,
        k: usize,
        exclude_self: bool,
    ) -> Nearest {
        let [queries, _] = query.dims();
        if k == 0 || queries == 0 {
            let device = query.device();
            let dtype = distance_dtype(query.dtype());
            let none = || TensorData::new(Vec::<f32>::new(), [queries, k]);
            let indices = TensorData::new(Vec::<i64>::new(), [queries, k]);
            let distances = Tensor::from_data(none(), (&device, dtype));
            return (distances, Tensor::from_data(indices, &device));
        }
        let requested = k + usize::from(exclude_self);
        let (mut found, mut first) = (Vec::new(), 0);
        for part in parts {
            let [rows, _] = part.rows.dims();
            let prepared = part.queries(query);
            let nearest = part.search(&prepared, requested.min(rows), self.query_batch).await;
            found.push((first, nearest));
            first += rows;
        }
        self.join_parts(found, k, exclude_self)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use rstest::rstest;

    use super::*;

    const COLUMNS: usize = 37;

    fn rows(count: usize, seed: u32, [scale, middle]: [f32; 2]) -> Tensor<2> {
        let element = |at: usize| {
            let mixed = (at as u32 ^ seed.rotate_left(16)).wrapping_mul(0x9e37_79b9);
            let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b);
            middle + scale * (f64::from(mixed ^ mixed >> 13) / 2.0_f64.powi(31) - 1.0) as f32
        };
        let elements: Vec<f32> = (0..count * COLUMNS).map(element).collect();
        Tensor::from_data(TensorData::new(elements, [count, COLUMNS]), &Device::flex())
    }

    fn truncated(rows: Tensor<2>) -> Tensor<2> {
        let shape = rows.dims();
        let elements: Vec<f32> = rows.into_data().iter::<f32>().collect();
        let elements = elements.iter().map(|x| f32::from_bits(x.to_bits() & !0x1fff));
        let elements = TensorData::new(elements.collect::<Vec<_>>(), shape);
        Tensor::from_data(elements, &Device::flex())
    }

    #[rstest]
    fn bounds_hold_for_truncated_factors(
        #[values(
            Form::Difference { root: false },
            Form::Angle { centered: false },
            Form::Angle { centered: true },
            Form::Product
        )]
        form: Form,
        #[values([1.0, 0.0], [1e-9, 0.0], [1e9, 0.0], [1.0, 30.0], [1e-3, -1e3])] spread: [f32; 2],
    ) {
        let (index, query) = (rows(90, 1, spread), rows(20, 2, spread));
        let near = query.clone().narrow(0, 0, 1).mul_scalar(1.0 + 1e-6);
        let index = Tensor::cat(vec![index, query.clone().narrow(0, 3, 1), near], 0);
        let prepared = Index::new(index, form);
        let queries = prepared.queries(&query);
        let factors = truncated(prepared.factors.clone()).transpose();
        let products = truncated(queries.factors.clone()).matmul(factors);
        let bounds =
            (products + prepared.offsets.clone().unsqueeze() + queries.shifts) * queries.scales;
        let bounds: Vec<f64> = bounds.into_data().iter::<f64>().collect();
        let distances = prepared.all_distances(queries.rows).into_data();
        let distances: Vec<f64> = distances.iter::<f64>().collect();
        let sign = if form == Form::Product { -1.0 } else { 1.0 };
        let mut tight = 0;
        for (&bound, &distance) in bounds.iter().zip(&distances) {
            assert!(bound < sign * distance, "{bound} {distance}");
            tight += usize::from(bound > sign * distance - 0.1 * distance.abs());
        }
        if spread == [1.0, 0.0] && form != Form::Product {
            assert!(tight > 1000, "{tight}");
        }
    }

    #[rstest]
    #[case(216, 1_000_000, Some((22, 1664)))]
    #[case(36, 100_000, Some((10, 1024)))]
    #[case(36, 16_383, None)]
    #[case(4000, 1_000_000, None)]
    fn lists_hold_the_candidates(
        #[case] candidates: usize,
        #[case] rows: usize,
        #[case] expected: Option<(usize, usize)>,
    ) {
        let listing = Listing::new(candidates, rows);
        assert_eq!(listing.map(|listing| (listing.rank, listing.capacity)), expected);
    }

    #[rstest]
    fn lists_change_no_neighbor(
        #[values(
            Form::Difference { root: true },
            Form::Angle { centered: true },
            Form::Product
        )]
        form: Form,
        #[values(false, true)] equal: bool,
    ) {
        let (mut index, query) = (rows(15_000, 3, [1.0, 0.0]), rows(9, 4, [1.0, 0.0]));
        if equal {
            // Lists overflow.
            index = index.narrow(0, 0, 5).repeat_dim(0, 3000);
        }
        let plain = Index::new(index, form);
        let sampled = Index { sample: Some(plain.sample()), ..plain.clone() };
        assert!(Listing::new(2 * 3 + MORE_CANDIDATES, 15_000).is_some());
        let search = |index: &Index| {
            let queries = index.queries(&query);
            let (distances, rows) = burn::tensor::read_sync(index.search(&queries, 3, Some(4)));
            (distances.into_data(), rows.into_data())
        };
        assert_eq!(search(&sampled), search(&plain));
    }

    #[rstest]
    fn sums_take_any_width(#[values(1, 2, 3, 5, 7, 8, 31, 37, 64, 100)] width: usize) {
        let elements: Vec<f32> = (0..3 * width).map(|at| at as f32).collect();
        let all = TensorData::new(elements.clone(), [3, width]);
        let sums = row_sums(Tensor::from_data(all, &Device::flex())).into_data();
        let expected: Vec<f32> = elements.chunks(width).map(|row| row.iter().sum()).collect();
        sums.assert_eq(&TensorData::new(expected, [3, 1]), true);
    }
}
