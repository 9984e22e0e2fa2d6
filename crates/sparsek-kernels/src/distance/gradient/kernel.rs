use cubecl::{ir::ElemType, prelude::*};

use crate::{
    distance::{
        semiring::{Gradient, Parameter},
        slopes::{
            bray_curtis, canberra, hellinger, jensen_shannon, kl, kl_of_second, may_be_absent,
            minkowski, sign, symmetric_kl,
        },
    },
    primitives::{csr::row_of, infinity::infinity},
};

pub(super) const fn per_pair(slope: Gradient) -> usize {
    if matches!(slope, Gradient::BrayCurtis | Gradient::Minkowski) { 2 } else { 1 }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn weights_kernel<S: Float>(
    upstream: &[S],
    distances: &[S],
    divisors: &[S],
    x_norms: &[S],
    y_norms: &[S],
    x_powers: &[S],
    weights: &mut [S],
    sums: &mut [S],
    rows: usize,
    across: usize,
    cols: f32,
    #[comptime] plane: u32,
    #[comptime] slope: Gradient,
    #[define(S)] _dtype: ElemType,
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if row >= rows {
        terminate!();
    }
    let zero = S::new(0.0);
    let one = S::new(1.0);
    let mut sum = zero;
    let mut constant = zero;
    let mut other = UNIT_POS_X as usize;
    while other < across {
        let at = row * across + other;
        let distance = distances[at];
        let mut weight = upstream[at];
        let mut own = zero;
        if comptime!(slope == Gradient::Sign) {
            own = weight;
        }
        if comptime!(slope == Gradient::Square) {
            own = S::new(2.0) * weight;
            weight = -own;
        }
        if comptime!(slope == Gradient::Root) {
            let distinct = distance > zero;
            own = select(distinct, weight / select(distinct, distance, one), zero);
            weight = -own;
        }
        if comptime!(slope == Gradient::Angle) {
            let x = x_norms[2 * row];
            let nonzero = x > zero && y_norms[2 * other] > zero;
            let x = select(nonzero, x, one);
            // Inverse norm: its square may overflow.
            let by_norm = weight / x.sqrt() * x_norms[2 * row + 1];
            own = select(nonzero, by_norm * (one - distance), zero);
            weight = select(nonzero, -by_norm, zero);
        }
        if comptime!(slope == Gradient::Correlation) {
            let cols = S::cast_from(cols);
            let x_sum = x_norms[2 * row];
            let y_sum = y_norms[2 * other];
            let x = cols * x_norms[2 * row + 1] - x_sum * x_sum;
            let y = cols * y_norms[2 * other + 1] - y_sum * y_sum;
            let varies = x > zero && y > zero;
            let x = select(varies, x, one);
            let y = select(varies, y, one);
            let weighted = select(varies, weight * x_powers[2 * row + 1], zero);
            let both = weighted / (x.sqrt() * y.sqrt());
            let alone = select(varies, one - distance, zero) * weighted / x;
            own = alone * cols;
            constant += both * y_sum - alone * x_sum;
            weight = -both * cols;
        }
        if comptime!(slope == Gradient::Hellinger || slope == Gradient::JensenShannon) {
            // Distances are ≤ 1.
            let distinct = distance > zero && distance < S::new(2.0);
            let share = select(distinct, x_norms[2 * row], one);
            let by_sum = weight / share * x_powers[2 * row + 1];
            weight = by_sum / (S::new(4.0) * select(distinct, distance, one));
            weight = select(distinct, weight, zero);
            if comptime!(slope == Gradient::Hellinger) {
                constant += weight * select(distinct, one - distance * distance, zero);
                weight = -weight;
            }
        }
        if comptime!(
            slope == Gradient::Kl
                || slope == Gradient::KlOfSecond
                || slope == Gradient::SymmetricKl
        ) {
            weight = select(distance < infinity::<S>(), weight, zero);
        }
        if comptime!(slope == Gradient::BrayCurtis) {
            let divisor = divisors[at];
            let positive = divisor > zero;
            weight = select(positive, weight / select(positive, divisor, one), zero);
            own = select(positive, weight * (one - distance), zero);
        }
        if comptime!(slope == Gradient::Minkowski) {
            let used = distance > zero && distance < infinity::<S>();
            weight = select(used, weight, zero);
        }
        if comptime!(per_pair(slope) == 2) {
            weights[2 * at] = weight;
            weights[2 * at + 1] = select(weight == zero, one, distance);
        } else {
            weights[at] = weight;
        }
        sum += own;
        other += plane as usize;
    }
    if comptime!(plane > 1) {
        sum = plane_sum(sum);
        constant = plane_sum(constant);
    }
    if UNIT_POS_X == 0 {
        sums[2 * row] = sum;
        sums[2 * row + 1] = constant;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn entries_kernel<E: Float, V: Float, S: Float>(
    indptr: &[i32],
    indices: &[i32],
    values: &[V],
    transposed_indptr: &[i32],
    transposed_rows: &[i32],
    transposed_entries: &[i32],
    others: &[V],
    weights: &[S],
    sums: &[S],
    output: &mut [E],
    parameter: Parameter,
    rows: u32,
    across: usize,
    #[comptime] plane: u32,
    #[comptime] slope: Gradient,
    #[define(E, V, S)] _dtypes: [ElemType; 3],
) {
    let at = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if at >= output.len() {
        terminate!();
    }
    let p = parameter.value::<S>();
    let zero = S::new(0.0);
    let entry = i32::cast_from(at);
    let row = row_of(indptr, rows, entry) as usize;
    let left = S::cast_from(values[at]);
    let column = indices[at] as usize;
    let mut place = transposed_indptr[column] as usize + UNIT_POS_X as usize;
    let end = transposed_indptr[column + 1] as usize;
    let mut sum = zero;
    while place < end {
        let other = S::cast_from(others[transposed_entries[place] as usize]);
        let pair = row * across + transposed_rows[place] as usize;
        if comptime!(slope == Gradient::Sign) {
            sum += weights[pair] * (sign::<S>(left - other) - sign::<S>(left));
        } else if comptime!(slope == Gradient::Canberra) {
            sum += weights[pair] * canberra::<S>(left, other);
        } else if comptime!(slope == Gradient::Kl) {
            sum += weights[pair] * kl::<S>(left, other);
        } else if comptime!(slope == Gradient::KlOfSecond) {
            sum += weights[pair] * kl_of_second::<S>(left, other);
        } else if comptime!(slope == Gradient::SymmetricKl) {
            sum += weights[pair] * symmetric_kl::<S>(left, other);
        } else if comptime!(slope == Gradient::JensenShannon) {
            sum += weights[pair] * jensen_shannon::<S>(left, other);
        } else if comptime!(slope == Gradient::Hellinger) {
            sum += weights[pair] * hellinger::<S>(left, other);
        } else if comptime!(slope == Gradient::BrayCurtis) {
            sum += weights[2 * pair] * bray_curtis::<S>(left, other, weights[2 * pair + 1]);
        } else if comptime!(slope == Gradient::Minkowski) {
            let distance = weights[2 * pair + 1];
            let absent = may_be_absent::<S>(left, distance);
            let present = minkowski::<S>(left - other, distance, p);
            let counted = select(absent > zero, minkowski::<S>(left, distance, p), zero);
            sum += weights[2 * pair] * (present - counted);
        } else {
            sum += weights[pair] * other;
        }
        place += plane as usize;
    }
    if comptime!(slope == Gradient::Minkowski) {
        // As if absent everywhere.
        let mut other = UNIT_POS_X as usize;
        while other < across {
            let pair = row * across + other;
            let distance = weights[2 * pair + 1];
            let absent = may_be_absent::<S>(left, distance);
            let counted = select(absent > zero, minkowski::<S>(left, distance, p), zero);
            sum += weights[2 * pair] * counted;
            other += plane as usize;
        }
    }
    if comptime!(plane > 1) {
        sum = plane_sum(sum);
    }
    if UNIT_POS_X == 0 {
        if comptime!(slope == Gradient::Sign || slope == Gradient::BrayCurtis) {
            sum += sign::<S>(left) * sums[2 * row];
        } else {
            sum += left * sums[2 * row];
        }
        if comptime!(slope == Gradient::Correlation) {
            sum += sums[2 * row + 1];
        }
        if comptime!(slope == Gradient::Hellinger) {
            sum = select(left > zero, sum + sums[2 * row + 1], zero);
        }
        output[at] = E::cast_from(sum);
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn project_kernel<E: Float, S: Float>(
    indptr: &[i32],
    shares: &[S],
    slopes: &[S],
    output: &mut [E],
    rows: usize,
    #[comptime] plane: u32,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if row >= rows {
        terminate!();
    }
    let first = indptr[row] as usize + UNIT_POS_X as usize;
    let end = indptr[row + 1] as usize;
    let mut mean = S::new(0.0);
    let mut entry = first;
    while entry < end {
        mean += shares[entry] * slopes[entry];
        entry += plane as usize;
    }
    if comptime!(plane > 1) {
        mean = plane_sum(mean);
    }
    entry = first;
    while entry < end {
        let slope = select(shares[entry] > S::new(0.0), slopes[entry] - mean, S::new(0.0));
        output[entry] = E::cast_from(slope);
        entry += plane as usize;
    }
}
