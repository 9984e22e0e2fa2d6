//! Sums follow entry order.

use std::ops::Range;

use burn::{
    backend::{
        Flex,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Element, ElementConversion, Shape},
};
use burn_flex::FlexTensor;
use multiversion::multiversion;
use rayon::prelude::*;

use super::{
    element::{Float, filled, from_vec, with_float, with_index},
    parallel,
    topk::scatter,
    tuning::ROWS_AT_ONCE,
};
use crate::ops::{CompressedSpec, Factors, Operator, SpmmGradientOps, SpmmOps};

struct Pattern<'a> {
    indptr: &'a [i32],
    indices: &'a [i32],
}

impl<'a> Pattern<'a> {
    pub fn new(indptr: &'a FlexTensor, indices: &'a FlexTensor) -> Self {
        Self { indptr: ints(indptr), indices: ints(indices) }
    }

    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    pub fn column(&self, entry: usize) -> usize {
        self.indices[entry] as usize
    }

    pub fn row(&self, row: usize) -> Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }
}

fn ints(tensor: &FlexTensor) -> &[i32] {
    tensor.as_slice().expect("patterns are contiguous i32 tensors")
}

struct Sparse {
    operator: Operator<Flex>,
    weights: Option<FlexTensor>,
    entries: Option<FlexTensor>,
    rows: Option<FlexTensor>,
    cols: Option<FlexTensor>,
}

impl Sparse {
    fn new(operator: Operator<Flex>, factors: Factors<Flex>, entries: Option<FlexTensor>) -> Self {
        let contiguous = |tensor: FlexTensor| tensor.to_contiguous();
        Self {
            operator,
            weights: factors.weights.tensor().map(contiguous),
            entries,
            rows: factors.rows.tensor().map(contiguous),
            cols: factors.cols.tensor().map(contiguous),
        }
    }

    fn entries<E: Float>(&self) -> Entries<'_, E> {
        fn floats<T: Element + bytemuck::Pod>(tensor: &FlexTensor) -> &[T] {
            tensor.as_slice().expect("contiguous, of this dtype")
        }
        Entries {
            pattern: Pattern::new(&self.operator.indptr, &self.operator.indices),
            weights: self.weights.as_ref().map(floats),
            numbers: self.entries.as_ref().map(ints),
            rows: self.rows.as_ref().map(floats),
            cols: self.cols.as_ref().map(floats),
        }
    }
}

struct Entries<'a, E: Float> {
    pattern: Pattern<'a>,
    weights: Option<&'a [E]>,
    numbers: Option<&'a [i32]>,
    rows: Option<&'a [E::Sum]>,
    cols: Option<&'a [E::Sum]>,
}

impl<E: Float> Entries<'_, E> {
    fn row(&self, row: usize) -> Range<usize> {
        self.pattern.row(row)
    }

    fn factor(&self, entry: usize) -> Option<E::Sum> {
        let number = self.numbers.map_or(entry, |numbers| numbers[entry] as usize);
        let weight = self.weights.map(|weights| weights[number].widen());
        let col = self.cols.map(|cols| cols[self.pattern.column(entry)]);
        match (weight, col) {
            (Some(weight), Some(col)) => Some(weight * col),
            (one, other) => one.or(other),
        }
    }

    fn row_factor(&self, row: usize) -> Option<E::Sum> {
        self.rows.map(|rows| rows[row])
    }
}

fn sums<E: Float>(
    entries: &Entries<E>,
    width: usize,
    add: impl Fn(usize, Range<usize>, &mut [E::Sum]) + Sync,
) -> FlexTensor {
    let rows = entries.pattern.rows();
    let mut output = filled(E::narrow(Default::default()), rows * width);
    parallel::rows(&mut output, width, Vec::new, |sums, row, output| {
        sums.clear();
        sums.resize(width, Default::default());
        add(row, entries.row(row), sums);
        let factor = entries.row_factor(row);
        for (output, &sum) in output.iter_mut().zip(sums.iter()) {
            *output = E::narrow(factor.map_or(sum, |factor| factor * sum));
        }
    });
    from_vec(output, Shape::from([rows, width]))
}

fn add_all<E: Float>(
    sums: &mut [E::Sum],
    terms: impl Iterator<Item = (usize, E)>,
    factor: Option<E::Sum>,
) {
    match factor {
        None => terms.for_each(|(at, x)| sums[at] += x.widen()),
        Some(factor) => terms.for_each(|(at, x)| sums[at] += factor * x.widen()),
    }
}

#[multiversion(targets("x86_64+avx2"))]
pub(super) fn add_rows<E: Float, const N: usize>(
    sums: &mut [E::Sum],
    rows: [&[E]; N],
    factors: [E::Sum; N],
) {
    let width = sums.len();
    for row in rows {
        assert!(row.len() == width);
    }
    for (i, sum) in sums.iter_mut().enumerate() {
        let mut total = *sum;
        for (row, &factor) in rows.iter().zip(&factors) {
            total += factor * row[i].widen();
        }
        *sum = total;
    }
}

pub(super) fn add_range<'a, E: Float>(
    sums: &mut [E::Sum],
    range: Range<usize>,
    row: impl Fn(usize) -> &'a [E],
    factor: impl Fn(usize) -> E::Sum,
) {
    let last = range.end - range.len() % ROWS_AT_ONCE;
    for first in (range.start..last).step_by(ROWS_AT_ONCE) {
        let together: [usize; ROWS_AT_ONCE] = std::array::from_fn(|at| first + at);
        add_rows(sums, together.map(&row), together.map(&factor));
    }
    for at in last..range.end {
        add_rows(sums, [row(at)], [factor(at)]);
    }
}

fn product(x: FlexTensor, sparse: &Sparse) -> FlexTensor {
    let x = x.to_contiguous();
    let width = x.layout().shape()[1];
    with_float!(x.dtype(), E => {
        let source: &[E] = x.as_slice().expect("contiguous");
        let entries = sparse.entries::<E>();
        let row = |entry| &source[entries.pattern.column(entry) * width..][..width];
        let factor = |entry| entries.factor(entry).unwrap_or(1f32.elem());
        sums(&entries, width, |_, range, sums| add_range(sums, range, row, factor))
    })
}

impl SpmmOps for Flex {
    fn partition(indptr: IntTensor<Self>, _nnz: usize) -> IntTensor<Self> {
        indptr
    }

    fn block_columns(_like: IntTensor<Self>) -> IntTensor<Self> {
        from_vec(vec![0i32], [1].into())
    }

    fn column_blocks(
        _indptr: IntTensor<Self>,
        _indices: IntTensor<Self>,
        _cols: usize,
        _most: usize,
    ) -> IntTensor<Self> {
        unreachable!("block_columns is 0 on Flex")
    }

    fn spmm(
        x: FloatTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        product(x, &Sparse::new(operator, factors, None))
    }

    fn spmm_compressed(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self> {
        let [values, columns] = [values, columns].map(|tensor| tensor.to_contiguous());
        let k = values.layout().shape()[1];
        let sparse = Sparse::new(operator, factors, None);
        with_float!(values.dtype(), E => with_index!(columns.dtype(), I => {
            let source: &[E] = values.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let entries = sparse.entries::<E>();
            sums(&entries, spec.width, |_, range, sums| {
                for entry in range {
                    let start = entries.pattern.column(entry) * k;
                    let places = places[start..start + k].iter().map(|&place| place as usize);
                    let terms = places.zip(source[start..start + k].iter().copied());
                    add_all(sums, terms, entries.factor(entry));
                }
            })
        }))
    }

    fn expand(
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        width: usize,
    ) -> FloatTensor<Self> {
        scatter(values, columns, width, false)
    }

    fn spmm_max(x: FloatTensor<Self>, operator: Operator<Self>) -> FloatTensor<Self> {
        Self::spmm_max_winners(x, operator).0
    }

    fn sddmm(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let right = right.to_contiguous();
        let width = right.layout().shape()[1];
        with_float!(right.dtype(), E => {
            let source: &[E] = right.as_slice().expect("contiguous");
            dots::<E>(left, width, factors, operator, |column, left| {
                let right = &source[column * width..][..width];
                let mut sum = <E as Float>::Sum::default();
                left.iter().zip(right).for_each(|(a, b)| sum += a.widen() * b.widen());
                sum
            })
        })
    }
}

impl SpmmGradientOps for Flex {
    fn spmm_transposed(
        x: FloatTensor<Self>,
        factors: Factors<Self>,
        transposed: Operator<Self>,
    ) -> FloatTensor<Self> {
        let entries = transposed.transposed_entries.clone();
        product(x, &Sparse::new(transposed, factors, Some(entries)))
    }

    fn compressed_gradient(
        upstream: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
        spec: CompressedSpec,
    ) -> FloatTensor<Self> {
        let [upstream, columns] = [upstream, columns].map(|tensor| tensor.to_contiguous());
        let k = columns.layout().shape()[1];
        let entries = operator.transposed_entries.clone();
        let sparse = Sparse::new(operator.transposed(), factors.transposed(), Some(entries));
        with_float!(upstream.dtype(), E => with_index!(columns.dtype(), I => {
            let source: &[E] = upstream.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let entries = sparse.entries::<E>();
            sums(&entries, k, |row, range, sums| {
                let places = &places[row * k..row * k + k];
                for entry in range {
                    let start = entries.pattern.column(entry) * spec.width;
                    let terms = places.iter().map(|&place| source[start + place as usize]);
                    add_all(sums, terms.enumerate(), entries.factor(entry));
                }
            })
        }))
    }

    fn sddmm_compressed(
        left: FloatTensor<Self>,
        values: FloatTensor<Self>,
        columns: IntTensor<Self>,
        factors: Factors<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let [values, columns] = [values, columns].map(|tensor| tensor.to_contiguous());
        let k = values.layout().shape()[1];
        let width = left.layout().shape()[1];
        with_float!(values.dtype(), E => with_index!(columns.dtype(), I => {
            let source: &[E] = values.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            dots::<E>(left, width, factors, operator, |column, left| {
                let places = &places[column * k..][..k];
                let mut sum = <E as Float>::Sum::default();
                for (&place, value) in places.iter().zip(&source[column * k..][..k]) {
                    sum += left[place as usize].widen() * value.widen();
                }
                sum
            })
        }))
    }

    fn gather_columns(source: FloatTensor<Self>, columns: IntTensor<Self>) -> FloatTensor<Self> {
        let [source, columns] = [source, columns].map(|tensor| tensor.to_contiguous());
        let shape = columns.layout().shape().clone();
        let (k, width) = (shape[1], source.layout().shape()[1]);
        with_float!(source.dtype(), E => with_index!(columns.dtype(), I => {
            let from: &[E] = source.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let mut picked = filled(E::narrow(Default::default()), places.len());
            parallel::rows(&mut picked, k, || (), |_, row, picked| {
                for (picked, &place) in picked.iter_mut().zip(&places[row * k..]) {
                    *picked = from[row * width + place as usize];
                }
            });
            from_vec(picked, shape)
        }))
    }

    fn spmm_max_winners(
        x: FloatTensor<Self>,
        operator: Operator<Self>,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let x = x.to_contiguous();
        let width = x.layout().shape()[1];
        let pattern = Pattern::new(&operator.indptr, &operator.indices);
        let shape = Shape::from([pattern.rows(), width]);
        with_float!(x.dtype(), E => {
            let source: &[E] = x.as_slice().expect("contiguous");
            let zero = E::narrow(Default::default());
            let mut values = vec![zero; pattern.rows() * width];
            let mut winners = vec![-1i32; values.len()];
            let both = (&mut values[..], &mut winners[..]);
            parallel::row_pairs(both, width, || (), |_, row, values, winners| {
                let entries = pattern.row(row);
                let first = entries.start;
                for entry in entries {
                    let start = pattern.column(entry) * width;
                    let slots = values.iter_mut().zip(winners.iter_mut());
                    for ((value, winner), &x) in slots.zip(&source[start..start + width]) {
                        if entry == first || x > *value {
                            (*value, *winner) = (x, entry as i32);
                        }
                    }
                }
            });
            (from_vec(values, shape.clone()), from_vec(winners, shape))
        })
    }

    fn spmm_max_gradient(
        upstream: FloatTensor<Self>,
        winners: IntTensor<Self>,
        operator: Operator<Self>,
    ) -> FloatTensor<Self> {
        let (upstream, winners) = (upstream.to_contiguous(), winners.to_contiguous());
        let width = upstream.layout().shape()[1];
        let pattern = Pattern::new(&operator.transposed_indptr, &operator.transposed_indices);
        let ids: &[i32] = operator.transposed_entries.as_slice().expect("contiguous");
        let winners: &[i32] = winners.as_slice().expect("contiguous");
        let shape = Shape::from([pattern.rows(), width]);
        with_float!(upstream.dtype(), E => {
            let upstream: &[E] = upstream.as_slice().expect("contiguous");
            let sum = |row: usize, column: usize| {
                let mut sum = <E as Float>::Sum::default();
                for entry in pattern.row(row) {
                    let at = pattern.column(entry) * width + column;
                    if winners[at] == ids[entry] {
                        sum += upstream[at].widen();
                    }
                }
                E::narrow(sum)
            };
            let mut sums = filled(E::narrow(Default::default()), pattern.rows() * width);
            parallel::rows(&mut sums, width, || (), |_, row, sums| {
                for (column, output) in sums.iter_mut().enumerate() {
                    *output = sum(row, column);
                }
            });
            from_vec(sums, shape)
        })
    }
}

/// `rows[i] cols[j] dot(j, left[i])`.
fn dots<E: Float>(
    left: FlexTensor,
    width: usize,
    factors: Factors<Flex>,
    operator: Operator<Flex>,
    dot: impl Fn(usize, &[E]) -> E::Sum + Sync,
) -> FlexTensor {
    let left = left.to_contiguous();
    let left: &[E] = left.as_slice().expect("contiguous");
    let mut sparse = Sparse::new(operator, factors, None);
    sparse.weights = None;
    let entries = sparse.entries::<E>();
    let output: Vec<E> = (0..entries.pattern.rows())
        .into_par_iter()
        .flat_map_iter(|row| {
            let (entries, dot) = (&entries, &dot);
            let left = &left[row * width..][..width];
            entries.row(row).map(move |entry| {
                let mut sum = dot(entries.pattern.column(entry), left);
                for factor in [entries.factor(entry), entries.row_factor(row)] {
                    sum = factor.map_or(sum, |factor| factor * sum);
                }
                E::narrow(sum)
            })
        })
        .collect();
    let shape = Shape::from([output.len()]);
    from_vec(output, shape)
}
