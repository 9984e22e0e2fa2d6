use multiversion::multiversion;

use super::types::PreparedRows;
use crate::distance::{
    prepare::parts::ONE_PART,
    semiring::{Dense, HostSemiring, Real},
    tuning::{HOST_DENSE_BYTES, HOST_DENSE_WORK, HOST_LANES as LANES},
};

pub(super) type Lanes<S> = [S; LANES];

pub(super) fn serves<M: HostSemiring, S: Real>(x: &PreparedRows<S>, y: &PreparedRows<S>) -> bool {
    let sums = M::STRATEGY.dense == Some(Dense::Products) && !M::ALGEBRA.other;
    if !sums || y.matrix.cols.saturating_mul(size_of::<Lanes<S>>()) > HOST_DENSE_BYTES {
        return false;
    }
    let mut counts = vec![[0usize; 2]; y.matrix.cols];
    for (side, rows) in [x, y].into_iter().enumerate() {
        for &column in rows.matrix.indices {
            counts[column as usize][side] += 1;
        }
    }
    let pairs: usize = counts.iter().map(|[x, y]| x * y).sum();
    let full = x.matrix.rows() * y.values.len() <= HOST_DENSE_WORK * pairs;
    let finite = |rows: &PreparedRows<S>| {
        let infinite = S::new(f32::INFINITY);
        rows.values.iter().all(|value| value.abs() < infinite)
    };
    full && finite(x) && finite(y)
}

struct DenseRows<'a, S> {
    values: &'a [Lanes<S>],
    parts: [u32; LANES],
}

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn multiply<M: HostSemiring, S: Real>(
    dense: &DenseRows<S>,
    (columns, values, bits): (&[u32], &[S], u32),
    p: S,
) -> Lanes<S> {
    let mut before = [M::identity(); LANES];
    let mut sums = [M::identity(); LANES];
    let mut at = 0;
    while let Some(first) = columns.get(at) {
        let rest = &columns[at..];
        let end = match bits {
            ONE_PART => columns.len(),
            _ => at + rest.partition_point(|column| column >> bits == first >> bits),
        };
        // A local copy stays in registers.
        let mut current = sums;
        for (&column, &b) in columns[at..end].iter().zip(&values[at..end]) {
            for (sum, &a) in current.iter_mut().zip(&dense.values[column as usize]) {
                *sum = M::reduce(*sum, M::product(a, b, p));
            }
        }
        // The row's end ends every part.
        let next = columns.get(end).copied().unwrap_or(u32::MAX);
        for lane in 0..LANES {
            let ends = (next ^ first) >> bits.max(dense.parts[lane]) != 0;
            let sum = M::reduce(before[lane], current[lane]);
            before[lane] = if ends { sum } else { before[lane] };
            sums[lane] = if ends { M::identity() } else { current[lane] };
        }
        at = end;
    }
    before
}

/// `dense` is zero on entry and return.
pub(super) fn tile<M: HostSemiring, S: Real>(
    [x, y]: [&PreparedRows<S>; 2],
    p: S,
    first: usize,
    same: bool,
    dense: &mut [Lanes<S>],
    output: &mut [S],
) {
    let across = y.matrix.rows();
    let rows = first..first + output.len() / across;
    for (lane, i) in rows.clone().enumerate() {
        for (column, value) in x.row(i) {
            dense[column as usize][lane] = value;
        }
    }
    let mut parts = [ONE_PART; LANES];
    parts[..rows.len()].copy_from_slice(&x.parts[rows.clone()]);
    let rows_of_x = DenseRows { values: dense, parts };
    for j in if same { first } else { 0 }..across {
        let entries = y.matrix.entries(j);
        let columns = &y.matrix.indices[entries.clone()];
        let row = (columns, &y.values[entries], y.parts[j]);
        let sums = multiply::<M, S>(&rows_of_x, row, p);
        for (row, sum) in output.chunks_exact_mut(across).zip(sums) {
            row[j] = sum;
        }
    }
    for i in rows {
        for (column, _) in x.row(i) {
            dense[column as usize] = [S::new(0.0); LANES];
        }
    }
}
