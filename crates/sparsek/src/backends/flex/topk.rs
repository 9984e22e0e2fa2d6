//! Selections in plain Rust.

use std::sync::mpsc::Sender;

use burn::{
    backend::{
        Flex,
        ops::IntTensorOps,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape, TensorData},
};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::{
    element::{filled, from_vec, with_element, with_float, with_index},
    select::{Key, Selector},
};
use crate::ops::{
    Lengths, Outcome, SelectedBuffers, TopkGradientOps, TopkOps, TopkSpec, VectorSpec,
};

fn with_last(shape: &Shape, last: usize) -> Shape {
    let mut shape = shape.clone();
    let rank = shape.num_dims();
    shape[rank - 1] = last;
    shape
}

fn last(shape: &Shape) -> usize {
    shape[shape.num_dims() - 1]
}

struct Rows {
    input: FlexTensor,
    /// Valid elements per row.
    lengths: Option<FlexTensor>,
    shape: Shape,
    selected: Shape,
    cols: usize,
    count: usize,
}

impl Rows {
    fn new(input: &FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> Self {
        let input = input.to_contiguous();
        let shape = input.layout().shape().clone();
        let cols = last(&shape);
        Self {
            selected: with_last(&shape, spec.options.k),
            cols,
            count: shape.num_elements() / cols.max(1),
            input,
            lengths: match lengths {
                Lengths::Whole => None,
                Lengths::Each(lengths) => Some(lengths.to_contiguous()),
            },
            shape,
        }
    }

    fn existing<'a, E: Sync>(
        &'a self,
        source: &'a [E],
    ) -> impl IndexedParallelIterator<Item = &'a [E]> {
        let lengths = self.lengths.as_ref();
        let lengths = lengths.map(|lengths| lengths.as_slice::<u32>().expect("lengths in u32"));
        let rows = source.par_chunks_exact(self.cols).enumerate();
        rows.map(move |(i, row)| match lengths {
            None => row,
            Some(lengths) => &row[..row.len().min(lengths[i] as usize)],
        })
    }
}

fn pairs(input: FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> (FlexTensor, FlexTensor) {
    let rows = Rows::new(&input, lengths, spec);
    with_element!(rows.input.dtype(), E => with_index!(DType::from(spec.index), I => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let unset: I = if rows.lengths.is_some() { !0 } else { 0 };
        let mut values = filled(E::ZERO, rows.count * spec.options.k);
        let mut indices = filled(unset, rows.count * spec.options.k);
        if spec.options.k > 0 {
            rows.existing(source)
                .zip(values.par_chunks_exact_mut(spec.options.k))
                .zip(indices.par_chunks_exact_mut(spec.options.k))
                .for_each_init(Selector::new, |selector, ((row, values), indices)| {
                    for (i, &column) in selector.select(row, &spec.options).iter().enumerate() {
                        values[i] = row[column];
                        indices[i] = column as I;
                    }
                });
        }
        (from_vec(values, rows.selected.clone()), from_vec(indices, rows.selected))
    }))
}

fn indices(input: FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> FlexTensor {
    let rows = Rows::new(&input, lengths, spec);
    with_element!(rows.input.dtype(), E => with_index!(DType::from(spec.index), I => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let unset: I = if rows.lengths.is_some() { !0 } else { 0 };
        let mut indices = filled(unset, rows.count * spec.options.k);
        if spec.options.k > 0 {
            rows.existing(source)
                .zip(indices.par_chunks_exact_mut(spec.options.k))
                .for_each_init(Selector::new, |selector, (row, indices)| {
                    for (i, &column) in selector.select(row, &spec.options).iter().enumerate() {
                        indices[i] = column as I;
                    }
                });
        }
        from_vec(indices, rows.selected)
    }))
}

/// Strategies do not change results.
fn select_from_vector(input: FlexTensor, spec: &VectorSpec) -> (FlexTensor, FlexTensor) {
    let spec = TopkSpec { options: spec.options.row_options(), index: spec.index };
    pairs(input, Lengths::Whole, &spec)
}

fn mask(input: FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> FlexTensor {
    let rows = Rows::new(&input, lengths, spec);
    with_element!(rows.input.dtype(), E => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let mut values = filled(E::ZERO, source.len());
        if spec.options.k > 0 {
            rows.existing(source)
                .zip(values.par_chunks_exact_mut(rows.cols))
                .for_each_init(Selector::new, |selector, (row, values)| {
                    for &column in selector.select(row, &spec.options) {
                        values[column] = row[column];
                    }
                });
        }
        from_vec(values, rows.shape)
    })
}

/// Scatters `source`, compact or dense, to `indices` in rows of zeros.
pub(super) fn scatter(
    source: FlexTensor,
    indices: FlexTensor,
    cols: usize,
    dense: bool,
) -> FlexTensor {
    let source = source.to_contiguous();
    let indices = indices.to_contiguous();
    let k = last(indices.layout().shape());
    let shape = with_last(source.layout().shape(), cols);
    with_float!(source.dtype(), E => with_index!(indices.dtype(), I => {
        let from: &[E] = source.as_slice().expect("contiguous");
        let columns: &[I] = indices.as_slice().expect("contiguous");
        let mut output = filled(<E as Key>::ZERO, shape.num_elements());
        if k > 0 {
            output
                .par_chunks_exact_mut(cols)
                .zip(from.par_chunks_exact(if dense { cols } else { k }))
                .zip(columns.par_chunks_exact(k))
                .for_each(|((output, from), columns)| {
                    for (i, &column) in columns.iter().enumerate() {
                        let column = column as usize;
                        // -1 is unused.
                        if column < cols {
                            output[column] = from[if dense { column } else { i }];
                        }
                    }
                });
        }
        from_vec(output, shape)
    }))
}

fn send(input: FlexTensor, spec: &TopkSpec, to: &Sender<Outcome>) -> FlexTensor {
    let (values, positions) = pairs(input.clone(), Lengths::Whole, spec);
    // Fails only if the receiver panicked.
    let _ = to.send(Ok(SelectedBuffers::Host {
        values: values.into_data(),
        positions: positions.into_data(),
    }));
    input
}

fn gather(input: FlexTensor, places: TensorData, spec: &TopkSpec) -> (FlexTensor, FlexTensor) {
    let (values, positions) = pairs(input, Lengths::Whole, spec);
    (values, Flex::int_select(FlexTensor::from_data(places), 0, positions))
}

impl TopkOps for Flex {
    fn topk_float(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        pairs(input, lengths, &spec)
    }

    fn topk_int(
        input: IntTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        pairs(input, lengths, &spec)
    }

    fn argtopk_float(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        indices(input, lengths, &spec)
    }

    fn argtopk_int(
        input: IntTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        indices(input, lengths, &spec)
    }

    fn topk_mask(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self> {
        mask(input, lengths, &spec)
    }

    fn topk_vector_float(
        input: FloatTensor<Self>,
        spec: VectorSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        select_from_vector(input, &spec)
    }

    fn topk_vector_int(
        input: IntTensor<Self>,
        spec: VectorSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        select_from_vector(input, &spec)
    }
}

impl TopkGradientOps for Flex {
    fn topk_mask_indices(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        // Scattering the selection gives the mask.
        let cols = last(input.layout().shape());
        let unsorted = TopkSpec { options: spec.options.with_sorted(false), ..spec };
        let (values, indices) = pairs(input, lengths, &unsorted);
        (scatter(values, indices.clone(), cols, false), indices)
    }

    fn scatter_selected(
        source: FloatTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
    ) -> FloatTensor<Self> {
        scatter(source, indices, cols, false)
    }

    fn keep_selected(source: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        let cols = last(source.layout().shape());
        scatter(source, indices, cols, true)
    }

    fn topk_send_float(
        input: FloatTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> FloatTensor<Self> {
        send(input, &spec, &to)
    }

    fn topk_send_int(
        input: IntTensor<Self>,
        spec: TopkSpec,
        to: Sender<Outcome>,
    ) -> IntTensor<Self> {
        send(input, &spec, &to)
    }

    fn topk_gather_float(
        input: FloatTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        gather(input, places, &spec)
    }

    fn topk_gather_int(
        input: IntTensor<Self>,
        places: TensorData,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        gather(input, places, &spec)
    }
}
