use std::sync::mpsc::Sender;

use burn::{
    backend::{
        TensorMetadata,
        cubecl::dtype_to_elem_type,
        ops::IntTensorOps,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape, TensorData},
};
use burn_cubecl::{CubeBackend, kernel::into_contiguous, tensor::CubeTensor};
use sparsek_kernels::topk::{self, Draw, Pages, Remap, Rows, Scatter};

use super::tensor::{expect, tensor};
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

fn rows_of(input: CubeTensor, bounds: Bounds<CubeBackend>) -> (CubeTensor, Rows) {
    let last = input.meta.num_dims() - 1;
    let dense = input.meta.shape()[last] <= topk::MAX_COLS || input.meta.strides()[last] == 1;
    let input = if dense && row_stride(&input).is_some() { input } else { into_contiguous(input) };
    let shape = input.meta.shape().clone();
    let cols = shape[last];
    let handle = |bounds: CubeTensor| {
        assert_eq!(bounds.dtype, DType::U32, "the dtype of the bounds");
        Some(into_contiguous(bounds).handle)
    };
    let (starts, lengths) = match bounds {
        Bounds::Whole => (None, None),
        Bounds::Lengths(lengths) => (None, handle(lengths)),
        Bounds::Between { starts, ends } => (handle(starts), handle(ends)),
    };
    let rows = Rows {
        handle: input.handle.clone(),
        dtype: dtype_to_elem_type(input.dtype),
        rows: shape.num_elements() / cols.max(1),
        cols,
        row_stride: row_stride(&input).expect("contiguous"),
        col_stride: input.meta.strides()[last],
        starts,
        lengths,
    };
    (input, rows)
}

fn row_stride(input: &CubeTensor) -> Option<usize> {
    let shape = input.meta.shape();
    let strides = input.meta.strides();
    let last = shape.num_dims() - 1;
    if input.meta.num_elements() == 0 {
        return Some(shape[last]);
    }
    let mut outer = (0..last).rev().filter(|&dim| shape[dim] > 1);
    let Some(first) = outer.next() else {
        return Some(shape[last]);
    };
    let mut expected = strides[first] * shape[first];
    for dim in outer {
        if strides[dim] != expected {
            return None;
        }
        expected *= shape[dim];
    }
    Some(strides[first])
}

fn select(
    input: CubeTensor,
    bounds: Bounds<CubeBackend>,
    spec: &TopkSpec,
) -> (CubeTensor, CubeTensor) {
    let (input, rows) = rows_of(input, bounds);
    let index = DType::from(spec.index);
    let result = topk::topk(&input.client, &rows, &spec.options, dtype_to_elem_type(index), None);
    let selected = expect("topk", result);
    let shape = with_last(&input.shape(), spec.options.k);
    (
        tensor(&input, selected.values, shape.clone(), input.dtype),
        tensor(&input, selected.indices, shape, index),
    )
}

fn select_indices(input: CubeTensor, bounds: Bounds<CubeBackend>, spec: &TopkSpec) -> CubeTensor {
    let (input, rows) = rows_of(input, bounds);
    let index = DType::from(spec.index);
    let result =
        topk::argtopk(&input.client, &rows, &spec.options, dtype_to_elem_type(index), None);
    let indices = expect("argtopk", result);
    tensor(&input, indices, with_last(&input.shape(), spec.options.k), index)
}

fn select_from_vector(input: CubeTensor, spec: &VectorSpec) -> (CubeTensor, CubeTensor) {
    let input = into_contiguous(input);
    let (length, index) = (input.meta.num_elements(), DType::from(spec.index));
    let dtypes = [input.dtype, index].map(dtype_to_elem_type);
    let (client, handle) = (&input.client, &input.handle);
    let result = topk::topk_vector(client, handle, dtypes[0], length, &spec.options, dtypes[1]);
    let selected = expect("topk_vector", result);
    let shape = Shape::from([spec.options.k]);
    (
        tensor(&input, selected.values, shape.clone(), input.dtype),
        tensor(&input, selected.indices, shape, index),
    )
}

fn mask(
    input: CubeTensor,
    bounds: Bounds<CubeBackend>,
    spec: &TopkSpec,
    with_indices: bool,
) -> (CubeTensor, Option<CubeTensor>) {
    let (input, rows) = rows_of(input, bounds);
    let index = DType::from(spec.index);
    let wanted = with_indices.then(|| dtype_to_elem_type(index));
    let result = topk::topk_mask(&input.client, &rows, &spec.options, wanted, None);
    let masked = expect("topk_mask", result);
    let indices = masked
        .indices
        .map(|handle| tensor(&input, handle, with_last(&input.shape(), spec.options.k), index));
    (tensor(&input, masked.values, input.shape(), input.dtype), indices)
}

/// `dense`: `source` has whole rows.
pub(super) fn scatter(
    source: CubeTensor,
    indices: CubeTensor,
    cols: usize,
    dense: bool,
) -> CubeTensor {
    let source = into_contiguous(source);
    let indices = into_contiguous(indices);
    let shape = indices.shape();
    let k = shape[shape.num_dims() - 1];
    let full = with_last(&source.shape(), cols);
    let request = Scatter {
        source: &source.handle,
        dtype: dtype_to_elem_type(source.dtype),
        indices: &indices.handle,
        index: dtype_to_elem_type(indices.dtype),
        rows: full.num_elements() / cols.max(1),
        cols,
        k,
        dense,
    };
    let output = expect("scatter", topk::scatter(&source.client, &request));
    tensor(&source, output, full, source.dtype)
}

fn send(input: CubeTensor, spec: &TopkSpec, to: &Sender<Outcome>) -> CubeTensor {
    // Fails only if the receiver panicked.
    let _ = to.send(launch(input.clone(), spec));
    input
}

fn launch(input: CubeTensor, spec: &TopkSpec) -> Outcome {
    let (input, rows) = rows_of(input, Bounds::Whole);
    let client = input.client;
    let index = dtype_to_elem_type(DType::from(spec.index));
    let selected = topk::topk(&client, &rows, &spec.options, index, None);
    let selected = selected.map_err(|error| error.to_string())?;
    // Starts the device.
    client.flush().map_err(|error| error.to_string())?;
    Ok(SelectedBuffers::Device { client, values: selected.values, positions: selected.indices })
}

fn gather(input: CubeTensor, places: TensorData, spec: &TopkSpec) -> (CubeTensor, CubeTensor) {
    let device = input.device.clone();
    let (values, positions) = select(input, Bounds::Whole, spec);
    let places = CubeBackend::int_from_data(places, &device);
    (values, CubeBackend::int_select(places, 0, positions))
}

impl TopkOps for CubeBackend {
    fn topk_float(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        select(input, bounds, &spec)
    }

    fn topk_int(
        input: IntTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        select(input, bounds, &spec)
    }

    fn argtopk_float(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        select_indices(input, bounds, &spec)
    }

    fn argtopk_int(
        input: IntTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> IntTensor<Self> {
        select_indices(input, bounds, &spec)
    }

    fn topk_mask(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> FloatTensor<Self> {
        mask(input, bounds, &spec, false).0
    }

    fn remap(indices: IntTensor<Self>, map: IndexMap<Self>, page: usize) -> IntTensor<Self> {
        let indices = into_contiguous(indices);
        let (pages, offsets) = map.parts();
        let [pages, offsets] = [pages, offsets].map(|map| map.map(into_contiguous));
        let shape = indices.shape();
        let request = Remap {
            indices: &indices.handle,
            index: dtype_to_elem_type(indices.dtype),
            rows: shape[0],
            k: shape[1],
            pages: pages.as_ref().map(|table| Pages {
                table: &table.handle,
                per_row: table.shape()[1],
                size: page,
            }),
            offsets: offsets.as_ref().map(|offsets| &offsets.handle),
        };
        let mapped = expect("topk_ragged", topk::remap(&indices.client, &request));
        tensor(&indices, mapped, shape, indices.dtype)
    }

    fn draw(logits: FloatTensor<Self>, spec: DrawSpec) -> IntTensor<Self> {
        let sorted = !topk::draws_unsorted(&logits.client, spec.k);
        let (values, tokens) = select(logits, Bounds::Whole, &spec.candidates(sorted));
        let shape = values.shape();
        let request = Draw {
            values: &values.handle,
            dtype: dtype_to_elem_type(values.dtype),
            tokens: &tokens.handle,
            index: dtype_to_elem_type(tokens.dtype),
            sorted,
            settings: &spec.settings,
            seed: spec.seed,
            rows: shape[0],
            k: spec.k,
        };
        let drawn = expect("draw", topk::draw(&values.client, &request));
        tensor(&values, drawn, Shape::from([shape[0]]), tokens.dtype)
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

impl TopkGradientOps for CubeBackend {
    fn topk_mask_indices(
        input: FloatTensor<Self>,
        bounds: Bounds<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        let (values, indices) = mask(input, bounds, &spec, true);
        (values, indices.expect("asked for"))
    }

    fn scatter_selected(
        source: FloatTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
    ) -> FloatTensor<Self> {
        scatter(source, indices, cols, false)
    }

    fn keep_selected(source: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        let shape = source.shape();
        let cols = shape[shape.num_dims() - 1];
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
