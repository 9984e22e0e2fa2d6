//! Distances on the host, in plain Rust: an inverted index of one matrix, gone through by the rows of the other in parallel, or rows
//! of one laid dense, gone through by the entries of the other.

mod tiles;

use std::marker::PhantomData;

use rayon::prelude::*;

use super::{
    norms::BLOCK,
    numbers::Sums,
    semiring::{CANCELLED, HostSemiring, Needs, Real, host::max},
};
use tiles::LANES;

/// Entries of a row that are added up before their sum is added to that of the row: terms that are alike, as those of counts are, are
/// all rounded the same way, and errors of a long row would add up.
const PART: usize = 128;

/// A CSR matrix in the host's memory; columns of a row ascend.
#[derive(Clone, Copy, Debug)]
pub struct HostMatrix<'a, S> {
    /// `rows + 1` offsets.
    pub indptr: &'a [u32],
    /// Column of each entry.
    pub indices: &'a [u32],
    /// Value of each entry.
    pub values: &'a [S],
    /// Columns.
    pub cols: usize,
}

/// Two matrices, the first nothing where both are the same.
pub type HostPair<'a, S> = (Option<&'a HostMatrix<'a, S>>, &'a HostMatrix<'a, S>);

/// A matrix with its norms, values prepared.
struct Ready<'a, S> {
    matrix: HostMatrix<'a, S>,
    values: Vec<S>,
    norms: Vec<[S; 2]>,
}

impl<S> HostMatrix<'_, S> {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    fn entries(&self, row: usize) -> std::ops::Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }
}

impl<'a, S: Real> Ready<'a, S> {
    fn new<M: HostSemiring>(matrix: HostMatrix<'a, S>, p: S, needs: Needs) -> Self {
        let mut values = matrix.values.to_vec();
        let norms = (0..matrix.rows()).map(|row| {
            let row = &mut values[matrix.entries(row)];
            let norm = sum(row, |a| M::norm(a, p), |a, b| joined(needs, a, b));
            row.iter_mut().for_each(|a| *a = M::prepare(*a, norm));
            [norm, sum(row, M::second, |a, b| a + b)]
        });
        let norms = norms.collect();
        Self {
            matrix,
            values,
            norms,
        }
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (u32, S)> {
        let entries = self.matrix.entries(row);
        let columns = self.matrix.indices[entries.clone()].iter().copied();
        columns.zip(self.values[entries].iter().copied())
    }
}

/// Two norms, or two sums of [`HostSemiring::direct`], in one.
fn joined<S: Real>(needs: Needs, a: S, b: S) -> S {
    if needs.maxima { max(a, b) } else { a + b }
}

/// The sum of what values add, block by block, so that rounding stays small in long rows.
fn sum<S: Real>(values: &[S], term: impl Fn(S) -> S, add: impl Fn(S, S) -> S) -> S {
    let blocks = values.chunks(BLOCK).map(|block| {
        let terms = block.iter().map(|&a| term(a));
        terms.fold(S::new(0.0), &add)
    });
    blocks.fold(S::new(0.0), &add)
}

/// The entries of each column.
struct Columns<S> {
    starts: Vec<usize>,
    entries: Vec<(u32, S)>,
    /// Where each entry of the matrix went.
    places: Vec<u32>,
}

impl<S: Real> Columns<S> {
    fn new(ready: &Ready<S>) -> Self {
        let mut starts = vec![0; ready.matrix.cols + 1];
        for &column in ready.matrix.indices {
            starts[column as usize + 1] += 1;
        }
        for column in 0..ready.matrix.cols {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut entries = vec![(0, S::new(0.0)); ready.values.len()];
        let mut places = Vec::with_capacity(entries.len());
        for row in 0..ready.matrix.rows() {
            for (column, value) in ready.row(row) {
                let slot = &mut next[column as usize];
                entries[*slot] = (row as u32, value);
                places.push(*slot as u32);
                *slot += 1;
            }
        }
        Self {
            starts,
            entries,
            places,
        }
    }

    /// All of a column, or those from an entry of the matrix on.
    fn column(&self, column: u32, from: Option<usize>) -> &[(u32, S)] {
        let column = column as usize;
        let start = from.map_or(self.starts[column], |entry| self.places[entry] as usize);
        &self.entries[start..self.starts[column + 1]]
    }
}

/// Sums over the columns of two rows.
struct Merged<S> {
    total: S,
    other: S,
    direct: S,
}

impl<S: Real> Merged<S> {
    fn none<M: HostSemiring>() -> Self {
        let zero = S::new(0.0);
        Self {
            total: M::identity(),
            other: zero,
            direct: zero,
        }
    }

    fn and<M: HostSemiring>(self, next: Self, needs: Needs) -> Self {
        Self {
            total: M::reduce(self.total, next.total),
            other: self.other + next.other,
            direct: joined(needs, self.direct, next.direct),
        }
    }
}

/// Goes through both rows, or as far as a maximum of [`HostSemiring::direct`] is as great as any can be.
fn merge<M: HostSemiring, S: Real>(
    x: &[(u32, S)],
    y: impl Iterator<Item = (u32, S)>,
    [p, most]: [S; 2],
    needs: Needs,
) -> Merged<S> {
    let zero = S::new(0.0);
    let mut before = Merged::none::<M>();
    let mut x = x.iter().copied().peekable();
    let mut y = y.peekable();
    loop {
        let mut merged = Merged::none::<M>();
        for _ in 0..PART {
            let column = match (x.peek(), y.peek()) {
                (Some(a), Some(b)) => a.0.min(b.0),
                (Some(a), None) => a.0,
                (None, Some(b)) => b.0,
                (None, None) => return before.and::<M>(merged, needs),
            };
            let a = x.next_if(|entry| entry.0 == column);
            let b = y.next_if(|entry| entry.0 == column);
            let both = a.is_some() && b.is_some();
            let [a, b] = [a, b].map(|entry| entry.map_or(zero, |entry| entry.1));
            if both || !needs.annihilates {
                merged.total = M::reduce(merged.total, M::product(a, b, p));
                merged.other += M::other(a, b);
            }
            merged.direct = joined(needs, merged.direct, M::direct(a, b, p));
            if needs.maxima && merged.direct >= most {
                return before.and::<M>(merged, needs);
            }
        }
        before = before.and::<M>(merged, needs);
    }
}

/// How sums are found.
enum Way<S> {
    /// Rows of the one are laid dense, and the entries of the other meet them.
    Dense,
    /// Entries of the one meet those of a column of `y`: products run over the columns of both only.
    Columns(Columns<S>),
    /// Both rows are gone through.
    Merge,
}

/// Two matrices, ready for distances between their rows.
struct Two<'a, M, S> {
    /// Nothing where both are the same.
    x: Option<Ready<'a, S>>,
    y: Ready<'a, S>,
    way: Way<S>,
    p: S,
    needs: Needs,
    semiring: PhantomData<fn() -> M>,
}

impl<'a, M: HostSemiring, S: Real> Two<'a, M, S> {
    fn left(&self) -> &Ready<'a, S> {
        self.x.as_ref().unwrap_or(&self.y)
    }

    fn sums(&self, i: usize, j: usize, total: S, other: S) -> Sums<S> {
        let ([x, second_x], [y, second_y]) = (self.left().norms[i], self.y.norms[j]);
        Sums {
            total,
            other,
            x,
            y,
            second_x,
            second_y,
            cols: S::new(self.y.matrix.cols as f32),
            p: self.p,
        }
    }

    /// Distances of row `i` to the rows of `y`, or of `y` itself from that row on.
    fn row(&self, i: usize, own: bool, output: &mut [S]) {
        let (needs, p) = (self.needs, self.p);
        let from = if own { i } else { 0 };
        let row: Vec<(u32, S)> = self.left().row(i).collect();
        let Way::Columns(columns) = &self.way else {
            for (j, output) in (from..).zip(output) {
                let merged = merge::<M, S>(&row, self.y.row(j), [p, S::new(f32::INFINITY)], needs);
                let sums = self.sums(i, j, merged.total, merged.other);
                *output = M::finalise(M::core(sums), sums);
            }
            return;
        };
        let none = || vec![S::new(0.0); if needs.other { output.len() } else { 0 }];
        let (mut others, mut next_others) = (none(), none());
        let mut next = vec![M::identity(); if row.len() > PART { output.len() } else { 0 }];
        let first = self.left().matrix.entries(i).start;
        let add = |at: usize, sums: &mut [S], others: &mut [S]| {
            sums.fill(M::identity());
            others.fill(S::new(0.0));
            let part = at..(at + PART).min(row.len());
            for (at, &(column, a)) in part.clone().zip(&row[part]) {
                for &(j, b) in columns.column(column, own.then_some(first + at)) {
                    let place = j as usize - from;
                    let sum = &mut sums[place];
                    *sum = M::reduce(*sum, M::product(a, b, p));
                    if needs.other {
                        others[place] += M::other(a, b);
                    }
                }
            }
        };
        add(0, output, &mut others);
        for at in (PART..row.len()).step_by(PART) {
            add(at, &mut next, &mut next_others);
            for (sum, &next) in output.iter_mut().zip(&next) {
                *sum = M::reduce(*sum, next);
            }
            for (other, &next) in others.iter_mut().zip(&next_others) {
                *other += next;
            }
        }
        self.finish((i, &row), from, output, &others);
    }

    /// Distances from their sums: of row `i`, whose entries these are, to the rows of `y` from one on.
    fn finish(&self, (i, row): (usize, &[(u32, S)]), from: usize, output: &mut [S], others: &[S]) {
        for (place, output) in output.iter_mut().enumerate() {
            let j = from + place;
            let other = others.get(place).copied().unwrap_or(S::new(0.0));
            let sums = self.sums(i, j, *output, other);
            let mut core = M::core(sums);
            let kept = core >= S::new(CANCELLED) * M::scale(sums);
            if self.needs.direct && !kept {
                core = merge::<M, S>(row, self.y.row(j), [self.p, *output], self.needs).direct;
            }
            *output = M::finalise(core, sums);
        }
    }

    /// Distances of all rows in `output`, from `first` on, to those of `y`; of `y` itself only those from their own on.
    fn rows(&self, first: usize, own: bool, output: &mut [S]) {
        let across = self.y.matrix.rows();
        if across == 0 {
            return;
        }
        if let Way::Dense = self.way {
            let lay = || vec![[S::new(0.0); LANES]; self.y.matrix.cols];
            let tiles = output.par_chunks_mut(LANES * across).enumerate();
            tiles.for_each_init(lay, |laid, (tile, output)| {
                self.tile(first + tile * LANES, own, laid, output);
            });
            return;
        }
        let rows = output.par_chunks_mut(across).enumerate();
        rows.for_each(|(at, output)| {
            let i = first + at;
            self.row(i, own, &mut output[if own { i } else { 0 }..]);
        });
    }
}

/// Rows that are given out together, and those of them that a thread fills.
const STRIPE: usize = 512;
const FILLED: usize = 64;

impl<M: HostSemiring, S: Real> Two<'_, M, S> {
    /// Distances of a matrix to itself: half of them are computed.
    fn own(&self, each: &mut dyn FnMut(usize, &[S])) {
        let rows = self.y.matrix.rows();
        let mut half = vec![S::new(0.0); rows * rows];
        self.rows(0, true, &mut half);
        let mut stripe = vec![S::new(0.0); STRIPE.min(rows) * rows];
        for first in (0..rows).step_by(STRIPE) {
            let stripe = &mut stripe[..STRIPE.min(rows - first) * rows];
            let parts = stripe.par_chunks_mut(FILLED * rows).enumerate();
            parts.for_each(|(part, output)| mirrored(&half, [first + part * FILLED, rows], output));
            each(first, stripe);
        }
    }
}

/// Whole rows, from the first on, of a symmetric matrix of which the upper half is known.
fn mirrored<S: Real>(upper: &[S], [first, rows]: [usize; 2], output: &mut [S]) {
    let count = output.len() / rows;
    for i in 0..count {
        let diagonal = first + i;
        output[i * rows..][diagonal..rows]
            .copy_from_slice(&upper[diagonal * rows..][diagonal..rows]);
    }
    for j in 0..first + count {
        let above = &upper[j * rows + first..][..count];
        for i in (j + 1).saturating_sub(first)..count {
            output[i * rows + j] = above[i];
        }
    }
}

/// Distances of the rows of `x`, or of `y` itself, to all of `y`, `batch` rows at a time: `each` gets the first row of a batch and
/// its distances, row after row. Where all rows are a batch, a matrix with itself costs half.
pub(super) fn pairwise<M: HostSemiring, S: Real>(
    (x, y): HostPair<S>,
    p: S,
    needs: Needs,
    batch: usize,
    each: &mut dyn FnMut(usize, &[S]),
) {
    let (rows, across) = (x.unwrap_or(y).rows(), y.rows());
    let y = Ready::new::<M>(*y, p, needs);
    let x = x.map(|x| Ready::new::<M>(*x, p, needs));
    let way = if tiles::serves::<S>(x.as_ref().unwrap_or(&y), &y, needs) {
        Way::Dense
    } else if needs.annihilates {
        Way::Columns(Columns::new(&y))
    } else {
        Way::Merge
    };
    let two = Two::<M, S> {
        x,
        y,
        way,
        p,
        needs,
        semiring: PhantomData,
    };
    if two.x.is_none() && needs.symmetric && batch >= rows {
        return two.own(each);
    }
    let batch = batch.clamp(1, rows.max(1));
    let mut output = vec![S::new(0.0); batch * across];
    for first in (0..rows).step_by(batch) {
        let count = batch.min(rows - first);
        let output = &mut output[..count * across];
        two.rows(first, false, output);
        each(first, output);
    }
}
