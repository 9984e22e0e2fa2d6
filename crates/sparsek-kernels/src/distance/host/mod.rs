//! Host distances: dense tiles for full finite data, an inverted index if columns of one row add
//! nothing, else merging.

mod columns;
mod pair;
mod tiles;
mod types;

use std::{marker::PhantomData, ops::Range};

use rayon::prelude::*;

pub use self::types::{HostMatrix, HostPair};
use self::{
    columns::HostColumns,
    pair::{MergedSums, finalize, merge},
    types::PreparedRows,
};
use super::{
    prepare::parts::ONE_PART,
    semiring::{CANCELLED, HostSemiring, Real, Sums},
    tuning::{HOST_LANES as LANES, HOST_STRIPE, HOST_STRIPE_PART},
};

fn number<S: Real>(cols: usize) -> S {
    let low = cols % (1 << 12);
    S::new((cols - low) as f32) + S::new(low as f32)
}

enum Method<S> {
    Dense,
    Columns(HostColumns<S>),
    Merge,
}

struct MatrixPair<'a, M, S> {
    x: Option<PreparedRows<'a, S>>,
    y: PreparedRows<'a, S>,
    method: Method<S>,
    p: S,
    semiring: PhantomData<fn() -> M>,
}

impl<'a, M: HostSemiring, S: Real> MatrixPair<'a, M, S> {
    fn left(&self) -> &PreparedRows<'a, S> {
        self.x.as_ref().unwrap_or(&self.y)
    }

    fn sums(&self, i: usize, j: usize, total: S, other: S) -> Sums<S> {
        let ([x, second_x], [y, second_y]) = (self.left().norms[i], self.y.norms[j]);
        Sums { total, other, x, y, second_x, second_y, cols: number(self.y.matrix.cols), p: self.p }
    }

    fn row(&self, i: usize, same: bool, output: &mut [S]) {
        let from = if same { i } else { 0 };
        let row: Vec<(u32, S)> = self.left().row(i).collect();
        let Method::Columns(columns) = &self.method else {
            for (j, output) in (from..).zip(output) {
                let merged = self.merge((i, &row), j, S::new(f32::INFINITY));
                let sums = self.sums(i, j, merged.total, merged.other);
                let core = M::core(sums);
                *output = finalize::<M, S>(&row, (&self.y, j), core, sums);
            }
            return;
        };
        let others = self.add_columns((i, &row), columns, same, output);
        self.finish((i, &row), from, output, &others);
    }

    fn merge(&self, (i, row): (usize, &[(u32, S)]), j: usize, most: S) -> MergedSums<S> {
        let bits = self.left().parts[i].min(self.y.parts[j]);
        merge::<M, S>(row, self.y.row(j), bits, [self.p, most])
    }

    /// Returns second sums.
    fn add_columns(
        &self,
        (i, row): (usize, &[(u32, S)]),
        columns: &HostColumns<S>,
        same: bool,
        output: &mut [S],
    ) -> Vec<S> {
        let from = if same { i } else { 0 };
        let first = self.left().matrix.entries(i).start;
        let bits = self.left().parts[i];
        let meet = |range: Range<usize>, sums: &mut [S], others: &mut [S]| {
            for (at, &(column, a)) in range.clone().zip(&row[range]) {
                for &(j, b) in columns.column(column, same.then_some(first + at)) {
                    let place = j as usize - from;
                    sums[place] = M::reduce(sums[place], M::product(a, b, self.p));
                    if M::ALGEBRA.other {
                        others[place] += M::other(a, b);
                    }
                }
            }
        };
        let count = output.len();
        let none = || vec![S::new(0.0); if M::ALGEBRA.other { count } else { 0 }];
        let mut others = none();
        output.fill(M::identity());
        if bits == ONE_PART {
            meet(0..row.len(), output, &mut others);
            return others;
        }
        let (mut part, mut part_others) = (vec![M::identity(); count], none());
        let mut at = 0;
        for range in row.chunk_by(|a, b| a.0 >> bits == b.0 >> bits) {
            let end = at + range.len();
            meet(at..end, &mut part, &mut part_others);
            for (place, sum) in output.iter_mut().enumerate() {
                let bits = bits.max(self.y.parts[from + place]);
                if row.get(end).is_none_or(|next| next.0 >> bits != row[at].0 >> bits) {
                    *sum = M::reduce(*sum, std::mem::replace(&mut part[place], M::identity()));
                    if M::ALGEBRA.other {
                        others[place] += std::mem::replace(&mut part_others[place], S::new(0.0));
                    }
                }
            }
            at = end;
        }
        others
    }

    fn finish(&self, (i, row): (usize, &[(u32, S)]), from: usize, output: &mut [S], others: &[S]) {
        for (place, output) in output.iter_mut().enumerate() {
            let j = from + place;
            let other = others.get(place).copied().unwrap_or(S::new(0.0));
            let sums = self.sums(i, j, *output, other);
            let mut core = M::core(sums);
            let kept = core >= S::new(CANCELLED) * M::scale(sums);
            if M::STRATEGY.direct && !kept {
                core = self.merge((i, row), j, *output).direct;
            }
            *output = finalize::<M, S>(row, (&self.y, j), core, sums);
        }
    }

    fn dense_tile(
        &self,
        first: usize,
        same: bool,
        dense: &mut [tiles::Lanes<S>],
        output: &mut [S],
    ) {
        tiles::tile::<M, S>([self.left(), &self.y], self.p, first, same, dense, output);
        let across = self.y.matrix.rows();
        for (i, row) in (first..).zip(output.chunks_exact_mut(across)) {
            let from = if same { i } else { 0 };
            let entries: Vec<(u32, S)> = self.left().row(i).collect();
            self.finish((i, &entries), from, &mut row[from..], &[]);
        }
    }

    fn rows(&self, first: usize, same: bool, output: &mut [S]) {
        let across = self.y.matrix.rows();
        if across == 0 {
            return;
        }
        if let Method::Dense = self.method {
            let empty = || vec![[S::new(0.0); LANES]; self.y.matrix.cols];
            each_chunk(output, LANES * across, &empty, &|dense, tile, output| {
                self.dense_tile(first + tile * LANES, same, dense, output);
            });
            return;
        }
        each_chunk(output, across, &Vec::new, &|_, at, output| {
            let i = first + at;
            self.row(i, same, &mut output[if same { i } else { 0 }..]);
        });
    }
}

impl<M: HostSemiring, S: Real> MatrixPair<'_, M, S> {
    fn distances_to_itself(&self, each: &mut dyn FnMut(usize, &[S])) {
        let rows = self.y.matrix.rows();
        let mut half = vec![S::new(0.0); rows * rows];
        self.rows(0, true, &mut half);
        let mut stripe = vec![S::new(0.0); HOST_STRIPE.min(rows) * rows];
        for first in (0..rows).step_by(HOST_STRIPE) {
            let stripe = &mut stripe[..HOST_STRIPE.min(rows - first) * rows];
            each_chunk(stripe, HOST_STRIPE_PART * rows, &Vec::new, &|_, part, output| {
                mirrored(&half, [first + part * HOST_STRIPE_PART, rows], output)
            });
            each(first, stripe);
        }
    }
}

type Scratch<S> = Vec<tiles::Lanes<S>>;
type Body<'a, S> = &'a (dyn Fn(&mut Scratch<S>, usize, &mut [S]) + Sync);

/// Compiles rayon's loop per float, not per metric.
fn each_chunk<S: Real>(
    output: &mut [S],
    length: usize,
    scratch: &(dyn Fn() -> Scratch<S> + Sync),
    body: Body<S>,
) {
    let chunks = output.par_chunks_mut(length).enumerate();
    chunks.for_each_init(scratch, |scratch, (number, chunk)| body(scratch, number, chunk));
}

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

pub(super) fn pairwise<M: HostSemiring, S: Real>(
    (x, y): HostPair<S>,
    p: S,
    batch: usize,
    each: &mut dyn FnMut(usize, &[S]),
) {
    let (rows, across) = (x.unwrap_or(y).rows(), y.rows());
    let y = PreparedRows::new::<M>(*y, p);
    let x = x.map(|x| PreparedRows::new::<M>(*x, p));
    let method = if tiles::serves::<M, S>(x.as_ref().unwrap_or(&y), &y) {
        Method::Dense
    } else if M::ALGEBRA.annihilates {
        Method::Columns(HostColumns::new(&y))
    } else {
        Method::Merge
    };
    let pair = MatrixPair::<M, S> { x, y, method, p, semiring: PhantomData };
    if pair.x.is_none() && M::ALGEBRA.symmetric && batch >= rows {
        return pair.distances_to_itself(each);
    }
    let batch = batch.clamp(1, rows.max(1));
    let mut output = vec![S::new(0.0); batch * across];
    for first in (0..rows).step_by(batch) {
        let count = batch.min(rows - first);
        let output = &mut output[..count * across];
        pair.rows(first, false, output);
        each(first, output);
    }
}
