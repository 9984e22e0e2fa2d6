//! Rows of one matrix laid dense beside one another, and gone through by the entries of the other's rows.

use multiversion::multiversion;

use super::{Ready, Two};
use crate::distance::{
    Dense,
    parts::WHOLE,
    semiring::{HostSemiring, Needs, Real},
};

/// Rows that lie dense beside one another.
pub(super) const LANES: usize = 32;
/// Rows times entries, for each pair of entries in one column, up to which rows are laid dense: movielens-1m has 7.4, kos-bow 14,
/// scrna-10x 2.6, edgar-trigrams 19.
const SPARSEST: usize = 16;

/// Bytes of the rows that lie dense, at most: a second-level cache holds about as much.
const ROOM: usize = 1 << 21;

/// A column of the rows.
pub(super) type Lanes<S> = [S; LANES];

/// Whether rows of `x` are laid dense: for sums of products of finite values that are zero where a value is, where there are not many
/// columns, and these are full.
pub(super) fn serves<S: Real>(x: &Ready<S>, y: &Ready<S>, needs: Needs) -> bool {
    let sums = needs.dense == Some(Dense::Products) && !needs.other;
    if !sums || y.matrix.cols.saturating_mul(size_of::<Lanes<S>>()) > ROOM {
        return false;
    }
    let mut counts = vec![[0usize; 2]; y.matrix.cols];
    for (side, ready) in [x, y].into_iter().enumerate() {
        for &column in ready.matrix.indices {
            counts[column as usize][side] += 1;
        }
    }
    let pairs: usize = counts.iter().map(|[x, y]| x * y).sum();
    let full = x.matrix.rows() * y.values.len() <= SPARSEST * pairs;
    let finite = |ready: &Ready<S>| {
        let infinite = S::new(f32::INFINITY);
        ready.values.iter().all(|value| value.abs() < infinite)
    };
    full && finite(x) && finite(y)
}

/// Rows that lie dense, and the columns of the parts of each row's sums, as powers of two.
struct Laid<'a, S> {
    values: &'a [Lanes<S>],
    parts: [u32; LANES],
}

/// The sums of products with a row that has these columns, values and parts.
#[multiversion(targets("x86_64+avx2"))]
fn sweep<M: HostSemiring, S: Real>(
    laid: &Laid<S>,
    (columns, values, bits): (&[u32], &[S], u32),
    p: S,
) -> Lanes<S> {
    let mut before = [M::identity(); LANES];
    let mut sums = [M::identity(); LANES];
    let mut at = 0;
    while let Some(first) = columns.get(at) {
        let rest = &columns[at..];
        let end = match bits {
            WHOLE => columns.len(),
            _ => at + rest.partition_point(|column| column >> bits == first >> bits),
        };
        // Of its own, so that it stays in registers.
        let mut on = sums;
        for (&column, &b) in columns[at..end].iter().zip(&values[at..end]) {
            for (sum, &a) in on.iter_mut().zip(&laid.values[column as usize]) {
                *sum = M::reduce(*sum, M::product(a, b, p));
            }
        }
        // Behind the last column is another part, whatever its size.
        let next = columns.get(end).copied().unwrap_or(u32::MAX);
        for lane in 0..LANES {
            let ends = (next ^ first) >> bits.max(laid.parts[lane]) != 0;
            let sum = M::reduce(before[lane], on[lane]);
            before[lane] = if ends { sum } else { before[lane] };
            sums[lane] = if ends { M::identity() } else { on[lane] };
        }
        at = end;
    }
    before
}

impl<M: HostSemiring, S: Real> Two<'_, M, S> {
    /// Distances of some rows, from `first` on, at most as many as lie dense, to the rows of `y`; of `y` itself only those from its own
    /// on. `laid` has a place for each column and is zero before and after.
    pub(super) fn tile(&self, first: usize, own: bool, laid: &mut [Lanes<S>], output: &mut [S]) {
        let across = self.y.matrix.rows();
        let rows = first..first + output.len() / across;
        for (lane, i) in rows.clone().enumerate() {
            for (column, value) in self.left().row(i) {
                laid[column as usize][lane] = value;
            }
        }
        let mut parts = [WHOLE; LANES];
        parts[..rows.len()].copy_from_slice(&self.left().parts[rows.clone()]);
        let dense = Laid {
            values: laid,
            parts,
        };
        for j in if own { first } else { 0 }..across {
            let entries = self.y.matrix.entries(j);
            let columns = &self.y.matrix.indices[entries.clone()];
            let row = (columns, &self.y.values[entries], self.y.parts[j]);
            let sums = sweep::<M, S>(&dense, row, self.p);
            for (row, sum) in output.chunks_exact_mut(across).zip(sums) {
                row[j] = sum;
            }
        }
        for i in rows.clone() {
            for (column, _) in self.left().row(i) {
                laid[column as usize] = [S::new(0.0); LANES];
            }
        }
        for (i, row) in rows.zip(output.chunks_exact_mut(across)) {
            let from = if own { i } else { 0 };
            let entries: Vec<(u32, S)> = self.left().row(i).collect();
            self.finish((i, &entries), from, &mut row[from..], &[]);
        }
    }
}
