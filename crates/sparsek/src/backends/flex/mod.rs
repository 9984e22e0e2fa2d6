//! The operations in plain Rust, parallel over rows.

use burn::{
    backend::{
        Flex,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{DType, Shape, TensorData, bf16, f16},
};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use self::{keys::Key, select::Selector};
use crate::ops::{GradientOps, Lengths, SparsekOps, TopkSpec};

/// Runs an expression with `$element` standing for the Rust type of a dtype.
macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $element = f32;
                $body
            }
            DType::F64 => {
                type $element = f64;
                $body
            }
            DType::F16 => {
                type $element = f16;
                $body
            }
            DType::BF16 => {
                type $element = bf16;
                $body
            }
            DType::I32 => {
                type $element = i32;
                $body
            }
            DType::I64 => {
                type $element = i64;
                $body
            }
            DType::U32 => {
                type $element = u32;
                $body
            }
            dtype => panic!(
                "dtype {dtype:?} is not supported by this operation (supported: {})",
                sparsek_kernels::topk::SUPPORTED_DTYPES
            ),
        }
    };
}

/// Runs an expression with `$float` standing for the Rust type of a float dtype.
macro_rules! with_float {
    ($dtype:expr, $float:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $float = f32;
                $body
            }
            DType::F64 => {
                type $float = f64;
                $body
            }
            DType::F16 => {
                type $float = f16;
                $body
            }
            DType::BF16 => {
                type $float = bf16;
                $body
            }
            dtype => panic!("dtype {dtype:?} is not a float that this operation supports"),
        }
    };
}

/// Runs an expression with `$int` standing for the Rust type of an index dtype.
macro_rules! with_index {
    ($dtype:expr, $int:ident => $body:expr) => {
        match $dtype {
            DType::I32 => {
                type $int = i32;
                $body
            }
            DType::I64 => {
                type $int = i64;
                $body
            }
            DType::U32 => {
                type $int = u32;
                $body
            }
            DType::U16 => {
                type $int = u16;
                $body
            }
            DType::U8 => {
                type $int = u8;
                $body
            }
            dtype => panic!("dtype {dtype:?} is not supported for indices"),
        }
    };
}

mod aggregate;
mod count;
mod dense;
mod distance;
mod keys;
mod lists;
mod maximum;
mod members;
mod select;
mod sparse;

fn with_last(shape: &Shape, last: usize) -> Shape {
    let mut shape = shape.clone();
    let rank = shape.num_dims();
    shape[rank - 1] = last;
    shape
}

fn last(shape: &Shape) -> usize {
    shape[shape.num_dims() - 1]
}

/// `len` times the same, written by all threads: a new page is a fault of the thread that touches it first.
fn filled<T: Copy + Send + Sync>(value: T, len: usize) -> Vec<T> {
    let values = rayon::iter::repeat_n(value, len);
    values.with_min_len(1 << 14).collect()
}

fn from_vec<E: burn::tensor::Element>(values: Vec<E>, shape: Shape) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

/// A contiguous input and the shape of what is selected from it.
struct Rows {
    input: FlexTensor,
    /// How many elements of each row exist, where not all do.
    lengths: Option<FlexTensor>,
    shape: Shape,
    members: Shape,
    cols: usize,
    count: usize,
}

impl Rows {
    fn new(input: &FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> Self {
        let input = input.to_contiguous();
        let shape = input.layout().shape().clone();
        let cols = last(&shape);
        Self {
            members: with_last(&shape, spec.k),
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

    /// The elements of the rows that exist.
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

/// Values and indices of the members.
fn pairs(input: FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> (FlexTensor, FlexTensor) {
    let rows = Rows::new(&input, lengths, spec);
    with_element!(rows.input.dtype(), E => with_index!(DType::from(spec.index), I => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let unset: I = if rows.lengths.is_some() { !0 } else { 0 };
        let mut values = filled(E::ZERO, rows.count * spec.k);
        let mut indices = filled(unset, rows.count * spec.k);
        if spec.k > 0 {
            rows.existing(source)
                .zip(values.par_chunks_exact_mut(spec.k))
                .zip(indices.par_chunks_exact_mut(spec.k))
                .for_each_init(Selector::new, |selector, ((row, values), indices)| {
                    for (i, &column) in selector.select(row, spec).iter().enumerate() {
                        values[i] = row[column];
                        indices[i] = column as I;
                    }
                });
        }
        (from_vec(values, rows.members.clone()), from_vec(indices, rows.members))
    }))
}

/// Indices of the members.
fn indices(input: FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> FlexTensor {
    let rows = Rows::new(&input, lengths, spec);
    with_element!(rows.input.dtype(), E => with_index!(DType::from(spec.index), I => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let unset: I = if rows.lengths.is_some() { !0 } else { 0 };
        let mut indices = filled(unset, rows.count * spec.k);
        if spec.k > 0 {
            rows.existing(source)
                .zip(indices.par_chunks_exact_mut(spec.k))
                .for_each_init(Selector::new, |selector, (row, indices)| {
                    for (i, &column) in selector.select(row, spec).iter().enumerate() {
                        indices[i] = column as I;
                    }
                });
        }
        from_vec(indices, rows.members)
    }))
}

/// The input with everything but the members set to zero.
fn mask(input: FlexTensor, lengths: Lengths<Flex>, spec: &TopkSpec) -> FlexTensor {
    let rows = Rows::new(&input, lengths, spec);
    with_element!(rows.input.dtype(), E => {
        let source: &[E] = rows.input.as_slice().expect("contiguous");
        let mut values = filled(E::ZERO, source.len());
        if spec.k > 0 {
            rows.existing(source)
                .zip(values.par_chunks_exact_mut(rows.cols))
                .for_each_init(Selector::new, |selector, (row, values)| {
                    for &column in selector.select(row, spec) {
                        values[column] = row[column];
                    }
                });
        }
        from_vec(values, rows.shape)
    })
}

/// Writes `source` at `indices` of rows of `cols` zeros; the source holds the members, or is dense.
fn scatter(source: FlexTensor, indices: FlexTensor, cols: usize, dense: bool) -> FlexTensor {
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
                        // -1 marks a slot without a member.
                        if column < cols {
                            output[column] = from[if dense { column } else { i }];
                        }
                    }
                });
        }
        from_vec(output, shape)
    }))
}

impl SparsekOps for Flex {
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
}

impl GradientOps for Flex {
    fn topk_mask_indices(
        input: FloatTensor<Self>,
        lengths: Lengths<Self>,
        spec: TopkSpec,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        // The mask is the members put back: one selection serves both.
        let cols = last(input.layout().shape());
        let unsorted = TopkSpec {
            sorted: false,
            ..spec
        };
        let (values, indices) = pairs(input, lengths, &unsorted);
        (scatter(values, indices.clone(), cols, false), indices)
    }

    fn scatter_members(
        source: FloatTensor<Self>,
        indices: IntTensor<Self>,
        cols: usize,
    ) -> FloatTensor<Self> {
        scatter(source, indices, cols, false)
    }

    fn keep_members(source: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        let cols = last(source.layout().shape());
        scatter(source, indices, cols, true)
    }
}
