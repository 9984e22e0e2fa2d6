//! The gradient of products with compressed rows in two steps: a plane has the gradient of a row of the result in shared memory and writes
//! the terms of its entries, all of a row's one after the other; then the terms of each member are gathered and added up in order.
//! Deterministic.
//!
//! Entries are gone through in parts, so that there are not too many terms at a time; sums go on from part to part.

use crate::device::rounded_accumulator;
use crate::launch::fill_zero;
use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::{
    Product,
    entries::{Entries, row_factor},
    gather::{Cut, Picked},
    partition::Item,
    shape::{self, Shape, load_row},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::aligned;
use crate::launch::allocate;
use crate::launch::argument;

/// The part of the device's memory that terms may take. For k = 32 and 124 million entries, 15.8 GB of terms, the gradient took 12.3 ms
/// with all of them at a time, 14.3 in 4 parts and 22.8 in 15 (NVIDIA H200).
const SHARE: u64 = 16;
/// Members of a unit that are under way at a time.
const FLIGHT: usize = 8;
/// Terms that a unit gathers at a time.
const GATHERED: usize = 8;

/// Units of a plane, where the gradient can be added up so.
pub(super) fn check(client: &Client, dtype: ElemType, width: usize) -> Result<u32, KernelError> {
    if !matches!(dtype, ElemType::Float(FloatKind::F32 | FloatKind::F64)) {
        return Err(KernelError::Routine {
            routine: "terms",
            reason: "it adds f32 and f64 only".into(),
        });
    }
    rounded_accumulator(client, dtype)?;
    shape::check(client, "terms", |_| width * dtype.size())
}

/// `upstream` is `[rows, width]`, the result `[cols, k]`.
pub(super) fn launch(
    client: &Client,
    product: &Product,
    upstream: &Handle,
    (dtype, width): (ElemType, usize),
    picked: Picked,
    scratch: Option<usize>,
) -> Result<Handle, KernelError> {
    let plane = check(client, dtype, width)?;
    let Product {
        operand,
        turned,
        entries,
        ..
    } = product;
    let (csr, k) = (operand.csr, picked.k);
    let elements = csr.cols * k;
    let output = allocate(client, "gradient", elements, dtype)?;
    if elements == 0 || csr.nnz == 0 {
        fill_zero(client, &output, dtype, elements)?;
        return Ok(output);
    }
    let vector = client
        .io_optimized_vector_sizes(dtype.size())
        .filter(|&vector| {
            k.is_multiple_of(vector) && aligned(picked.columns, vector * picked.index.size())
        })
        .max()
        .unwrap_or(1);
    let memory = &client.properties().memory;
    let share = memory
        .max_memory()
        .map_or(memory.max_page_size, |memory| memory / SHARE);
    let scratch = scratch.unwrap_or(share.min(memory.max_page_size) as usize);
    let most = scratch / (k * dtype.size());
    let part = csr.nnz.div_ceil(csr.nnz.div_ceil(most.max(1)));
    let terms = allocate(client, "terms", part * k, dtype)?;
    let slots = (turned.partition.slots() * k).max(vector);
    let partials = allocate(client, "partials", slots, dtype)?;
    let shape = Shape::new(
        client,
        plane,
        operand,
        [k, width],
        [vector, usize::MAX, FLIGHT],
    );
    let int = i32::elem_type_native();
    let largest = elements.max(csr.rows * width).max(csr.nnz).max(part * k);
    let items = operand.partition.items();
    let turned_items = turned.partition.items();
    for first in (0..csr.nnz).step_by(part) {
        let end = (first + part).min(csr.nnz);
        let range = [first, end].map(|entry| entry as i32);
        let terms = || argument(&terms, "terms", dtype, part * k);
        let dim = CubeDim::new_2d(plane, shape.planes);
        let grid = Grid::new(client, items.div_ceil(shape.planes as usize), dim, largest)?;
        let arguments = operand.arguments(client, dtype, dtype)?;
        // SAFETY: `argument` checks the lengths; offsets, columns and numbers of entries are in range by the contracts of `Csr`,
        // `Compressed` and `Product`; unused buffers stand in for absent ones and are not read.
        unsafe {
            write_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                operand.partition.argument()?,
                arguments.indices,
                arguments.weights,
                arguments.entries,
                arguments.rows,
                arguments.cols,
                argument(upstream, "upstream", dtype, csr.rows * width)?,
                argument(picked.columns, "columns", picked.index, elements)?,
                terms()?,
                items,
                range[0],
                range[1],
                (k / vector) as u32,
                shape,
                [dtype, picked.index],
            );
            let grid = Grid::elementwise(client, turned_items * (k / vector), largest)?;
            add_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                turned.partition.argument()?,
                argument(entries, "entries of the transpose", int, csr.nnz)?,
                terms()?,
                turned.arguments(client, dtype, dtype)?.rows,
                argument(&output, "gradient", dtype, elements)?,
                argument(&partials, "partials", dtype, slots)?,
                turned_items,
                csr.nnz as i32,
                range[0],
                range[1],
                k / vector,
                turned.scales.rows.is_some(),
                dtype,
            );
        }
    }
    let cut = Cut {
        operand: turned,
        partials: &partials,
        output: &output,
        dtype,
        sum: dtype,
        across: k,
    };
    cut.combine(client)?;
    Ok(output)
}

/// A plane for each item writes the terms of its entries from `first` to `end`, but for the factors of their columns.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "two matrices, one with its factors"
)]
fn write_kernel<S: Float, I: Numeric, N: Size>(
    parts: &[i32],
    indices: &[i32],
    weights: &[S],
    entries: &[i32],
    rows: &[S],
    cols: &[S],
    upstream: &[S],
    columns: &[Vector<I, N>],
    terms: &mut [Vector<S, N>],
    items: usize,
    first: i32,
    end: i32,
    loads: u32,
    #[comptime] shape: Shape,
    #[define(S, I)] _dtypes: [ElemType; 2],
) {
    let number = CUBE_POS * comptime!(shape.planes as usize) + UNIT_POS_Y as usize;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    let start = max(item.start, first);
    let stop = min(item.end, end);
    if item.row < 0 || start >= stop {
        terminate!();
    }
    let width = comptime!(shape.width);
    let own = UNIT_POS_Y as usize * width;
    let mut dense = Shared::<[S]>::new_slice(comptime!(shape.planes as usize * shape.width));
    let row = item.row as usize;
    let factor = row_factor::<S>(rows, row, comptime!(shape.factors));
    load_row::<S>(&mut dense, upstream, row, factor, shape);

    let teams = comptime!(shape.teams());
    let team = UNIT_POS_X / shape.team;
    let lane = UNIT_POS_X - team * shape.team;
    let factors = comptime!(shape.factors);
    // The factors of columns are those of whole rows of the transpose.
    let source = Entries::<S, S>::new(indices, weights, entries, cols, factors.without_cols());
    let mut entry = start + i32::cast_from(team);
    while entry < stop {
        let mut places = Array::<Vector<I, N>>::new(comptime!(shape.flight * shape.members));
        let mut factors = Array::<S>::new(shape.flight);
        #[unroll]
        for i in 0..shape.flight {
            let read = min(entry + comptime!((i * teams) as i32), stop - 1);
            let column = source.column(read);
            factors[i] = source.factor(read, column);
            #[unroll]
            for m in 0..shape.members {
                let load = min(lane + comptime!(m as u32 * shape.team), loads - 1);
                places[comptime!(i * shape.members + m)] =
                    columns[column * loads as usize + load as usize];
            }
        }
        #[unroll]
        for i in 0..shape.flight {
            let at = entry + comptime!((i * teams) as i32);
            #[unroll]
            for m in 0..shape.members {
                let load = lane + comptime!(m as u32 * shape.team);
                if at < stop && load < loads {
                    let places = places[comptime!(i * shape.members + m)];
                    let mut values = Vector::<S, N>::empty();
                    #[unroll]
                    for v in 0..shape.vector {
                        let value = dense[own + usize::cast_from(places.extract(v))];
                        if comptime!(shape.factors.weighted) {
                            values.insert(v, factors[i] * value);
                        } else {
                            values.insert(v, value);
                        }
                    }
                    terms[(at - first) as usize * loads as usize + load as usize] = values;
                }
            }
        }
        entry += comptime!((shape.teams() * shape.flight) as i32);
    }
}

/// A unit for each vector of each item of the transpose adds up the terms of its entries that are numbered from `first` to `end`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn add_kernel<S: Float, N: Size>(
    parts: &[i32],
    numbers: &[i32],
    terms: &[Vector<S, N>],
    rows: &[S],
    output: &mut [Vector<S, N>],
    partials: &mut [Vector<S, N>],
    items: usize,
    nnz: i32,
    first: i32,
    end: i32,
    across: usize,
    #[comptime] scaled: bool,
    #[define(S)] _dtype: ElemType,
) {
    let number = ABSOLUTE_POS / across;
    let place = ABSOLUTE_POS - number * across;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    if item.row < 0 {
        terminate!();
    }
    let whole = item.slot < 0;
    let target = select(whole, item.row, item.slot) as usize * across + place;
    let mut sum = Vector::<S, N>::zeroed();
    let mut entry = item.start;
    if first > 0 {
        if whole {
            sum = output[target];
        } else {
            sum = partials[target];
        }
        // The first that is not numbered below: numbers ascend.
        let mut high = item.end;
        while entry < high {
            let middle = entry + (high - entry) / 2;
            if numbers[middle as usize] < first {
                entry = middle + 1;
            } else {
                high = middle;
            }
        }
    }
    let mut more = entry < item.end;
    while more {
        let mut values = Array::<Vector<S, N>>::new(GATHERED);
        let mut counted = Array::<bool>::new(GATHERED);
        #[unroll]
        for i in 0..GATHERED {
            let at = entry + comptime!(i as i32);
            let number = numbers[min(at, item.end - 1) as usize];
            counted[i] = at < item.end && number < end;
            // Past the end a term is read for nothing.
            values[i] = terms[select(counted[i], number - first, 0) as usize * across + place];
        }
        #[unroll]
        for i in 0..GATHERED {
            if counted[i] {
                sum += values[i];
            }
        }
        entry += comptime!(GATHERED as i32);
        more = counted[comptime!(GATHERED - 1)] && entry < item.end;
    }
    if whole {
        if comptime!(scaled) && end == nnz {
            sum *= Vector::<S, N>::new(rows[item.row as usize]);
        }
        output[target] = sum;
    } else {
        partials[target] = sum;
    }
}
