//! Products of sparse matrices with dense and compressed ones, parallel over rows; the entries of a row are added up in order.

use std::ops::Range;

use burn::{
    backend::{
        Flex,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Element, ElementConversion, Shape, bf16, f16},
};
use burn_flex::FlexTensor;
use multiversion::multiversion;
use rayon::prelude::*;

use super::{
    from_vec, scatter,
    sparse::{Float, Pattern, ints},
};
use crate::ops::{AggregateGradientOps, AggregateOps, CompressedSpec, Factors, Operator};

/// Rows that are added to sums together.
const TOGETHER: usize = 4;

/// A sparse operand in contiguous tensors.
struct Sparse {
    operator: Operator<Flex>,
    weights: Option<FlexTensor>,
    /// Which weight is that of an entry.
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

/// The same as slices.
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

    /// The weight of an entry times the factor of its column, if there are any.
    fn factor(&self, entry: usize) -> Option<E::Sum> {
        let number = self
            .numbers
            .map_or(entry, |numbers| numbers[entry] as usize);
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

/// A matrix of `width` columns: for each row `add` puts its entries into sums.
fn sums<E: Float>(
    entries: &Entries<E>,
    width: usize,
    add: impl Fn(usize, Range<usize>, &mut [E::Sum]) + Sync,
) -> FlexTensor {
    let rows = entries.pattern.rows();
    let mut output = super::filled(E::narrow(Default::default()), rows * width);
    if width > 0 {
        output
            .par_chunks_exact_mut(width)
            .enumerate()
            .for_each_init(
                || vec![<E as Float>::Sum::default(); width],
                |sums, (row, output)| {
                    sums.fill(Default::default());
                    add(row, entries.row(row), sums);
                    let factor = entries.row_factor(row);
                    for (output, &sum) in output.iter_mut().zip(sums.iter()) {
                        *output = E::narrow(factor.map_or(sum, |factor| factor * sum));
                    }
                },
            );
    }
    from_vec(output, Shape::from([rows, width]))
}

/// Adds terms, each times a factor if there is one.
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

/// Adds rows, each times a factor, one after another.
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

/// Adds the rows of all that a range counts, each times its factor, some at a time.
pub(super) fn add_range<'a, E: Float>(
    sums: &mut [E::Sum],
    range: Range<usize>,
    row: impl Fn(usize) -> &'a [E],
    factor: impl Fn(usize) -> E::Sum,
) {
    let last = range.end - range.len() % TOGETHER;
    for first in (range.start..last).step_by(TOGETHER) {
        let together: [usize; TOGETHER] = std::array::from_fn(|at| first + at);
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

impl AggregateOps for Flex {
    fn partition(indptr: IntTensor<Self>, _nnz: usize) -> IntTensor<Self> {
        // Threads take rows as they come.
        indptr
    }

    fn most_columns(_like: IntTensor<Self>) -> IntTensor<Self> {
        from_vec(vec![0i32], [1].into())
    }

    fn stretches(
        _indptr: IntTensor<Self>,
        _indices: IntTensor<Self>,
        _cols: usize,
        _most: usize,
    ) -> IntTensor<Self> {
        unreachable!("no stretch has columns")
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
}

impl AggregateGradientOps for Flex {
    fn spmm_turned(
        x: FloatTensor<Self>,
        factors: Factors<Self>,
        turned: Operator<Self>,
    ) -> FloatTensor<Self> {
        let entries = turned.turned_entries.clone();
        product(x, &Sparse::new(turned, factors, Some(entries)))
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
        let entries = operator.turned_entries.clone();
        let sparse = Sparse::new(operator.turned(), factors.turned(), Some(entries));
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

    fn pick(source: FloatTensor<Self>, columns: IntTensor<Self>) -> FloatTensor<Self> {
        let [source, columns] = [source, columns].map(|tensor| tensor.to_contiguous());
        let shape = columns.layout().shape().clone();
        let (k, width) = (shape[1], source.layout().shape()[1]);
        with_float!(source.dtype(), E => with_index!(columns.dtype(), I => {
            let from: &[E] = source.as_slice().expect("contiguous");
            let places: &[I] = columns.as_slice().expect("contiguous");
            let picked = places.par_iter().enumerate();
            let picked = picked.map(|(at, &place)| from[at / k * width + place as usize]);
            from_vec(picked.collect::<Vec<E>>(), shape)
        }))
    }
}

/// `rows[i] cols[j]` times what `dot` makes of `j` and a row of `left`, for each entry `(i, j)`.
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
