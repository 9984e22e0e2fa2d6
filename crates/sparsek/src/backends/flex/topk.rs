use std::{ops::Range, sync::mpsc::Sender};

use burn::{
    backend::{
        Flex,
        ops::IntTensorOps,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, ElementConversion, Shape, TensorData},
};
use burn_flex::FlexTensor;
use sparsek_kernels::topk::{DrawSettings, draw_uniform};

use super::{
    element::{filled, from_vec, with_element, with_float, with_index},
    parallel,
    select::{Key, Selector},
};
use crate::ops::{
    Bounds, DrawSpec, IndexMap, Outcome, SelectedBuffers, TopkGradientOps, TopkOps, TopkSpec,
    VectorSpec,
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
    starts: Option<FlexTensor>,
    /// Exclusive.
    ends: Option<FlexTensor>,
    shape: Shape,
    selected: Shape,
    cols: usize,
    count: usize,
}

impl Rows {
    fn new(input: &FlexTensor, bounds: Bounds<Flex>, spec: &TopkSpec) -> Self {
        let input = input.to_contiguous();
        let shape = input.layout().shape().clone();
        let cols = last(&shape);
        let (starts, ends) = match bounds {
            Bounds::Whole => (None, None),
            Bounds::Lengths(lengths) => (None, Some(lengths.to_contiguous())),
            Bounds::Between { starts, ends } => {
                (Some(starts.to_contiguous()), Some(ends.to_contiguous()))
            }
        };
        Self {
            selected: with_last(&shape, spec.options.k),
            cols,
            count: shape.num_elements() / cols.max(1),
            input,
            starts,
            ends,
            shape,
        }
    }

    fn bounds(&self) -> RowRanges<'_> {
        RowRanges { starts: bounds(&self.starts), ends: bounds(&self.ends), cols: self.cols }
    }
}

fn bounds(tensor: &Option<FlexTensor>) -> Option<&[u32]> {
    tensor.as_ref().map(|tensor| tensor.as_slice().expect("bounds in u32"))
}

#[derive(Clone, Copy)]
struct RowRanges<'a> {
    starts: Option<&'a [u32]>,
    ends: Option<&'a [u32]>,
    cols: usize,
}

impl RowRanges<'_> {
    fn columns(&self, row: usize) -> Range<usize> {
        let bound = |bounds: Option<&[u32]>, whole: usize| {
            bounds.map_or(whole, |bounds| self.cols.min(bounds[row] as usize))
        };
        let end = bound(self.ends, self.cols);
        bound(self.starts, 0).min(end)..end
    }
}

fn pairs(input: FlexTensor, bounds: Bounds<Flex>, spec: &TopkSpec) -> (FlexTensor, FlexTensor) {
    let rows = Rows::new(&input, bounds, spec);
    with_element!(rows.input.dtype(), E => with_index!(DType::from(spec.index), I => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let bounds = rows.bounds();
        let unset: I = if rows.ends.is_some() { !0 } else { 0 };
        let mut values = filled(E::ZERO, rows.count * spec.options.k);
        let mut indices = filled(unset, rows.count * spec.options.k);
        let both = (&mut values[..], &mut indices[..]);
        parallel::row_pairs(both, spec.options.k, Selector::new, |selector, at, values, indices| {
            let columns = bounds.columns(at);
            let row = &source[at * rows.cols..][columns.clone()];
            for (i, &column) in selector.select(row, &spec.options).iter().enumerate() {
                values[i] = row[column];
                indices[i] = (columns.start + column) as I;
            }
        });
        (from_vec(values, rows.selected.clone()), from_vec(indices, rows.selected))
    }))
}

fn indices(input: FlexTensor, bounds: Bounds<Flex>, spec: &TopkSpec) -> FlexTensor {
    let rows = Rows::new(&input, bounds, spec);
    with_element!(rows.input.dtype(), E => with_index!(DType::from(spec.index), I => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let bounds = rows.bounds();
        let unset: I = if rows.ends.is_some() { !0 } else { 0 };
        let mut indices = filled(unset, rows.count * spec.options.k);
        parallel::rows(&mut indices, spec.options.k, Selector::new, |selector, at, indices| {
            let columns = bounds.columns(at);
            let row = &source[at * rows.cols..][columns.clone()];
            for (i, &column) in selector.select(row, &spec.options).iter().enumerate() {
                indices[i] = (columns.start + column) as I;
            }
        });
        from_vec(indices, rows.selected)
    }))
}

/// Strategies change no result.
fn select_from_vector(input: FlexTensor, spec: &VectorSpec) -> (FlexTensor, FlexTensor) {
    let spec = TopkSpec { options: spec.options.row_options(), index: spec.index };
    pairs(input, Bounds::Whole, &spec)
}

fn mask(input: FlexTensor, bounds: Bounds<Flex>, spec: &TopkSpec) -> FlexTensor {
    let rows = Rows::new(&input, bounds, spec);
    with_element!(rows.input.dtype(), E => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let bounds = rows.bounds();
        let mut values = filled(E::ZERO, source.len());
        if spec.options.k > 0 {
            parallel::rows(&mut values, rows.cols, Selector::new, |selector, at, values| {
                let columns = bounds.columns(at);
                let row = &source[at * rows.cols..][columns.clone()];
                for &column in selector.select(row, &spec.options) {
                    values[columns.start + column] = row[column];
                }
            });
        }
        from_vec(values, rows.shape)
    })
}

/// `dense`: `source` has whole rows.
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
            let given = if dense { cols } else { k };
            parallel::rows(&mut output, cols, || (), |_, row, output| {
                let from = &from[row * given..][..given];
                for (i, &column) in columns[row * k..][..k].iter().enumerate() {
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
    let (values, positions) = pairs(input.clone(), Bounds::Whole, spec);
    // Fails only if the receiver panicked.
    let _ = to.send(Ok(SelectedBuffers::Host {
        values: values.into_data(),
        positions: positions.into_data(),
    }));
    input
}

fn gather(input: FlexTensor, places: TensorData, spec: &TopkSpec) -> (FlexTensor, FlexTensor) {
    let (values, positions) = pairs(input, Bounds::Whole, spec);
    (values, Flex::int_select(FlexTensor::from_data(places), 0, positions))
}

/// `logits` descend.
fn drawn(logits: &[f64], settings: &DrawSettings, uniform: f32) -> usize {
    let DrawSettings { temperature, top_p, min_p, count } = *settings;
    let [temperature, top_p, min_p, uniform] = [temperature, top_p, min_p, uniform].map(f64::from);
    let weights = logits[..logits.len().min(count as usize)].iter();
    let weight = |x: &f64| ((x - logits[0]) / temperature).exp();
    // NaN and infinities weigh nothing.
    let weights = weights.map(weight).map(|w| if w.is_finite() { w } else { 0.0 });
    let mut weights: Vec<f64> = weights.collect();
    let limit = top_p * weights.iter().sum::<f64>();
    let mut before = 0.0;
    let kept = weights.iter().take_while(|&&weight| {
        let stays = weight > 0.0 && weight >= min_p && before < limit;
        before += weight;
        stays
    });
    let kept = kept.count().max(1);
    weights.truncate(kept);
    let point = uniform * weights.iter().sum::<f64>();
    let mut through = 0.0;
    let passed = weights.iter().take_while(|&&weight| {
        through += weight;
        through <= point
    });
    passed.count().min(kept - 1)
}

fn draw(logits: FlexTensor, spec: &DrawSpec) -> FlexTensor {
    let (values, tokens) = pairs(logits, Bounds::Whole, &spec.candidates(true));
    let [rows, k] = [0, 1].map(|dim| values.layout().shape()[dim]);
    let places = with_float!(values.dtype(), E => {
        let values: &[E] = values.as_slice().expect("contiguous");
        parallel::collect(rows, &|row| {
            let logits = values[row * k..][..k].iter().map(|x| x.elem::<f64>());
            let settings = &spec.settings[row % spec.settings.len()];
            let uniform = draw_uniform(spec.seed, row as u32);
            drawn(&logits.collect::<Vec<_>>(), settings, uniform)
        })
    });
    with_index!(tokens.dtype(), I => {
        let tokens: &[I] = tokens.as_slice().expect("contiguous");
        let drawn = places.iter().enumerate().map(|(row, place)| tokens[row * k + place]);
        from_vec(drawn.collect::<Vec<I>>(), Shape::from([rows]))
    })
}

fn remap(indices: FlexTensor, map: IndexMap<Flex>, page: usize) -> FlexTensor {
    let indices = indices.to_contiguous();
    let (pages, offsets) = map.parts();
    let [pages, offsets] = [pages, offsets].map(|map| map.map(|map| map.to_contiguous()));
    let shape = indices.layout().shape().clone();
    let per_row = pages.as_ref().map_or(0, |pages| pages.layout().shape()[1]);
    with_index!(indices.dtype(), I => {
        let slice = |map: &FlexTensor| map.as_slice::<I>().expect("maps as indices").to_vec();
        let (pages, offsets) = (pages.as_ref().map(slice), offsets.as_ref().map(slice));
        let missing: I = !0;
        let place = |row: usize, index: I| {
            let mut place = index;
            if let Some(pages) = &pages {
                let column = index as usize;
                let own = &pages[row * per_row..][..per_row];
                let first = own.get(column / page)?;
                place = first * page as I + (column % page) as I;
            }
            Some(offsets.as_ref().map_or(place, |offsets| place + offsets[row]))
        };
        let source: &[I] = indices.as_slice().expect("contiguous");
        let mapped = source.iter().enumerate().map(|(at, &index)| match index == missing {
            true => missing,
            false => place(at / shape[1], index).unwrap_or(missing),
        });
        from_vec(mapped.collect::<Vec<I>>(), shape.clone())
    })
}

impl TopkOps for Flex {
    fn topk_float(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        pairs(input, bounds, &spec)
    }

    fn topk_int(
        input: IntTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        pairs(input, bounds, &spec)
    }

    fn argtopk_float(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        indices(input, bounds, &spec)
    }

    fn argtopk_int(
        input: IntTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        indices(input, bounds, &spec)
    }

    fn topk_mask(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self> {
        mask(input, bounds, &spec)
    }

    fn remap(indices: IntTensor<Self>, map: IndexMap<Self>, page: usize) -> IntTensor<Self> {
        remap(indices, map, page)
    }

    fn draw(logits: FloatTensor<Self>, spec: DrawSpec) -> IntTensor<Self> {
        draw(logits, &spec)
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
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let cols = last(input.layout().shape());
        let unsorted = TopkSpec { options: spec.options.with_sorted(false), ..spec };
        let (values, indices) = pairs(input, bounds, &unsorted);
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
