//! Distances on the host, in plain Rust: an inverted index of one matrix, gone through by the rows of the other in parallel, or rows
//! of one laid dense, gone through by the entries of the other.

mod columns;
mod far;
mod merge;
mod tiles;

use std::{marker::PhantomData, ops::Range};

use rayon::prelude::*;

use super::{
    norms::BLOCK,
    numbers::Sums,
    parts::{WHOLE, part_bits},
    range::host::row_factor,
    semiring::{CANCELLED, HostSemiring, Needs, Real, Rescale, host::max},
};
use columns::Columns;
use merge::{Merged, merge};
use tiles::LANES;

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
    /// Columns of the parts of each row's sums, as powers of two.
    parts: Vec<u32>,
}

impl<S> HostMatrix<'_, S> {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    fn entries(&self, row: usize) -> Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }
}

impl<'a, S: Real> Ready<'a, S> {
    fn new<M: HostSemiring>(matrix: HostMatrix<'a, S>, p: S, needs: Needs) -> Self {
        let mut values = matrix.values.to_vec();
        let norms = (0..matrix.rows()).map(|row| {
            let row = &mut values[matrix.entries(row)];
            if needs.rescale == Some(Rescale::Rows) {
                let sizes = row.iter().map(|a| a.abs());
                let factor = row_factor(sizes.fold(S::new(0.0), max));
                row.iter_mut().for_each(|a| *a = *a * factor);
            }
            let norm = sum(row, |a| M::norm(a, p), |a, b| joined(needs, a, b));
            row.iter_mut().for_each(|a| *a = M::prepare(*a, norm));
            [norm, sum(row, M::second, |a, b| a + b)]
        });
        let norms = norms.collect();
        let parts = (0..matrix.rows())
            .map(|row| part_bits(matrix.entries(row).len() as u32, matrix.cols as u32));
        Self {
            matrix,
            values,
            norms,
            parts: parts.collect(),
        }
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (u32, S)> {
        let entries = self.matrix.entries(row);
        let columns = self.matrix.indices[entries.clone()].iter().copied();
        columns.zip(self.values[entries].iter().copied())
    }
}

/// A number of columns: exact in f64, the nearest in f32.
fn number<S: Real>(cols: usize) -> S {
    let low = cols % (1 << 12);
    S::new((cols - low) as f32) + S::new(low as f32)
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
            cols: number(self.y.matrix.cols),
            p: self.p,
        }
    }

    /// Distances of row `i` to the rows of `y`, or of `y` itself from that row on.
    fn row(&self, i: usize, own: bool, output: &mut [S]) {
        let from = if own { i } else { 0 };
        let row: Vec<(u32, S)> = self.left().row(i).collect();
        let Way::Columns(columns) = &self.way else {
            for (j, output) in (from..).zip(output) {
                let merged = self.merge((i, &row), j, S::new(f32::INFINITY));
                let sums = self.sums(i, j, merged.total, merged.other);
                let core = M::core(sums);
                *output = far::finalise::<M, S>(&row, (&self.y, j), core, sums, self.needs);
            }
            return;
        };
        let others = self.add_up((i, &row), columns, own, output);
        self.finish((i, &row), from, output, &others);
    }

    fn merge(&self, (i, row): (usize, &[(u32, S)]), j: usize, most: S) -> Merged<S> {
        let bits = self.left().parts[i].min(self.y.parts[j]);
        merge::<M, S>(row, self.y.row(j), bits, [self.p, most], self.needs)
    }

    /// Sums of row `i`, whose entries these are, with the rows of `y`, or of `y` itself from that row on; gives the second ones.
    fn add_up(
        &self,
        (i, row): (usize, &[(u32, S)]),
        columns: &Columns<S>,
        own: bool,
        output: &mut [S],
    ) -> Vec<S> {
        let from = if own { i } else { 0 };
        let first = self.left().matrix.entries(i).start;
        let bits = self.left().parts[i];
        let meet = |stretch: Range<usize>, sums: &mut [S], others: &mut [S]| {
            for (at, &(column, a)) in stretch.clone().zip(&row[stretch]) {
                for &(j, b) in columns.column(column, own.then_some(first + at)) {
                    let place = j as usize - from;
                    sums[place] = M::reduce(sums[place], M::product(a, b, self.p));
                    if self.needs.other {
                        others[place] += M::other(a, b);
                    }
                }
            }
        };
        let count = output.len();
        let none = || vec![S::new(0.0); if self.needs.other { count } else { 0 }];
        let mut others = none();
        output.fill(M::identity());
        if bits == WHOLE {
            meet(0..row.len(), output, &mut others);
            return others;
        }
        let (mut part, mut part_others) = (vec![M::identity(); count], none());
        let mut at = 0;
        for stretch in row.chunk_by(|a, b| a.0 >> bits == b.0 >> bits) {
            let end = at + stretch.len();
            meet(at..end, &mut part, &mut part_others);
            for (place, sum) in output.iter_mut().enumerate() {
                let bits = bits.max(self.y.parts[from + place]);
                if row
                    .get(end)
                    .is_none_or(|next| next.0 >> bits != row[at].0 >> bits)
                {
                    *sum = M::reduce(*sum, std::mem::replace(&mut part[place], M::identity()));
                    if self.needs.other {
                        others[place] += std::mem::replace(&mut part_others[place], S::new(0.0));
                    }
                }
            }
            at = end;
        }
        others
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
                core = self.merge((i, row), j, *output).direct;
            }
            *output = far::finalise::<M, S>(row, (&self.y, j), core, sums, self.needs);
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
