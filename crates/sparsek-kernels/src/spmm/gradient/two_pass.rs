//! ```text
//! for each part of the entries:
//!     pass 1, a plane for each row i:      products[e, s] = w[e] rows[i] dy[i, columns[j, s]]
//!     pass 2, a unit for each (j, s):      dx[j, s] += Σ products[e, s]   in order of e
//! scale dx[j] by cols[j]
//! ```
//!
//! Parts bound scratch memory; sums continue across parts.

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::types::Product;
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, aligned, allocate, argument, fill_zero},
    primitives::csr::first_from,
    spmm::{
        compressed::Compressed,
        operand::{Entries, Operand},
        partial_sums::PartialSums,
        partition::Item,
        plane_layout::{Limits, PlaneLayout, require_planes},
        tuning::{TWO_PASS_ADD_FLIGHT, TWO_PASS_MEMORY_FRACTION, TWO_PASS_WRITE_FLIGHT},
        types::Scales,
    },
};

const ROUTINE: &str = "two_pass";

pub(crate) fn check(client: &Client, dtype: ElemType, width: usize) -> Result<u32, KernelError> {
    if !matches!(dtype, ElemType::Float(FloatKind::F32 | FloatKind::F64)) {
        return Err(KernelError::Routine {
            routine: ROUTINE,
            reason: "it adds f32 and f64 only".into(),
        });
    }
    rounded_accumulator(client, dtype)?;
    require_planes(client, ROUTINE, |_| width * dtype.size())
}

/// Computes [`gradient`](crate::spmm::gradient) in two passes.
///
/// `scratch` limits product bytes: by default a sixteenth of device memory, ≤ the largest
/// allocation. Errors: dtypes besides f32 and f64; no equal planes.
pub fn gradient_two_pass(
    client: &Client,
    product: &Product,
    upstream: &Handle,
    x: &Compressed,
    scratch: Option<usize>,
) -> Result<Handle, KernelError> {
    let (dtype, width, k) = (x.dtype, x.width, x.k);
    let plane = check(client, dtype, width)?;
    let Product { operand, transposed, entries, .. } = product;
    let csr = operand.csr;
    let elements = csr.cols * k;
    let output = allocate(client, "gradient", elements, dtype)?;
    if elements == 0 || csr.nnz == 0 {
        fill_zero(client, &output, dtype, elements)?;
        return Ok(output);
    }
    let vector = client
        .io_optimized_vector_sizes(dtype.size())
        .filter(|&vector| k.is_multiple_of(vector) && aligned(x.columns, vector * x.index.size()))
        .max()
        .unwrap_or(1);
    let scratch = scratch.unwrap_or_else(|| default_scratch(client));
    let most = scratch / (k * dtype.size());
    let part = csr.nnz.div_ceil(csr.nnz.div_ceil(most.max(1)));
    let products = allocate(client, "products", part * k, dtype)?;
    let partials = PartialSums::new(client, transposed, [dtype; 2], k, vector)?;
    let limits = Limits { vector, sums: usize::MAX, flight: TWO_PASS_WRITE_FLIGHT };
    let layout = PlaneLayout::new(client, plane, [k, width], limits);
    // Pass 2 applies `cols`: rows of the transpose.
    let scales = Scales { cols: None, ..operand.scales };
    let without_cols = Operand { scales, ..*operand };
    let int = i32::elem_type_native();
    let largest = elements.max(csr.rows * width).max(csr.nnz).max(part * k);
    let items = operand.partition.items();
    let transposed_items = transposed.partition.items();
    for first in (0..csr.nnz).step_by(part) {
        let end = (first + part).min(csr.nnz);
        let range = [first, end].map(|entry| entry as i32);
        let products = || argument(&products, "products", dtype, part * k);
        let dim = CubeDim::new_2d(plane, layout.planes);
        let grid = Grid::new(client, items.div_ceil(layout.planes as usize), dim, largest)?;
        // SAFETY: lengths checked; inputs promise indices.
        unsafe {
            write_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                operand.partition.argument()?,
                without_cols.entries(client, dtype, dtype)?,
                argument(upstream, "upstream", dtype, csr.rows * width)?,
                argument(x.columns, "columns", x.index, elements)?,
                products()?,
                items,
                range[0],
                range[1],
                (k / vector) as u32,
                layout,
                [dtype, x.index],
            );
            let grid = Grid::elementwise(client, transposed_items * (k / vector), largest)?;
            add_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                transposed.partition.argument()?,
                argument(entries, "entries of the transpose", int, csr.nnz)?,
                products()?,
                transposed.row_factors(client, dtype)?,
                argument(&output, "gradient", dtype, elements)?,
                partials.argument()?,
                transposed_items,
                csr.nnz as i32,
                range[0],
                range[1],
                k / vector,
                transposed.scales.rows.is_some(),
                dtype,
            );
        }
    }
    partials.combine(client, &output)?;
    Ok(output)
}

fn default_scratch(client: &Client) -> usize {
    let memory = &client.properties().memory;
    let fraction =
        memory.max_memory().map_or(memory.max_page_size, |bytes| bytes / TWO_PASS_MEMORY_FRACTION);
    fraction.min(memory.max_page_size) as usize
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn write_kernel<S: Float, I: Numeric, N: Size>(
    parts: &[i32],
    source: Entries<S, S>,
    upstream: &[S],
    columns: &[Vector<I, N>],
    products: &mut [Vector<S, N>],
    items: usize,
    first: i32,
    end: i32,
    loads: u32,
    #[comptime] layout: PlaneLayout,
    #[define(S, I)] _dtypes: [ElemType; 2],
) {
    let number = CUBE_POS * comptime!(layout.planes as usize) + UNIT_POS_Y as usize;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    let start = max(item.start, first);
    let stop = min(item.end, end);
    if item.row < 0 || start >= stop {
        terminate!();
    }
    let width = comptime!(layout.width);
    let own = UNIT_POS_Y as usize * width;
    let mut dense = Shared::<[S]>::new_slice(comptime!(layout.planes as usize * layout.width));
    let row = item.row as usize;
    load_row::<S>(&mut dense, upstream, row, source.row_factor(row), layout);

    let teams = comptime!(layout.teams());
    let team = UNIT_POS_X / layout.team;
    let lane = UNIT_POS_X - team * layout.team;
    let mut entry = start + i32::cast_from(team);
    while entry < stop {
        let mut places = Array::<Vector<I, N>>::new(comptime!(layout.flight * layout.loads));
        let mut factors = Array::<S>::new(layout.flight);
        #[unroll]
        for i in 0..layout.flight {
            let read = min(entry + comptime!((i * teams) as i32), stop - 1);
            let column = source.column(read);
            factors[i] = source.factor(read, column);
            #[unroll]
            for m in 0..layout.loads {
                let load = min(lane + comptime!(m as u32 * layout.team), loads - 1);
                places[comptime!(i * layout.loads + m)] =
                    columns[column * loads as usize + load as usize];
            }
        }
        #[unroll]
        for i in 0..layout.flight {
            let at = entry + comptime!((i * teams) as i32);
            #[unroll]
            for m in 0..layout.loads {
                let load = lane + comptime!(m as u32 * layout.team);
                if at < stop && load < loads {
                    let places = places[comptime!(i * layout.loads + m)];
                    let mut values = Vector::<S, N>::empty();
                    #[unroll]
                    for v in 0..layout.vector {
                        let value = dense[own + usize::cast_from(places.extract(v))];
                        if comptime!(source.factors.weighted) {
                            values.insert(v, factors[i] * value);
                        } else {
                            values.insert(v, value);
                        }
                    }
                    products[(at - first) as usize * loads as usize + load as usize] = values;
                }
            }
        }
        entry += comptime!((layout.teams() * layout.flight) as i32);
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn add_kernel<S: Float, N: Size>(
    parts: &[i32],
    numbers: &[i32],
    products: &[Vector<S, N>],
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
        // Numbers ascend.
        entry = first_from(numbers, item.start, item.end, first);
    }
    let mut more = entry < item.end;
    while more {
        let mut values = Array::<Vector<S, N>>::new(TWO_PASS_ADD_FLIGHT);
        let mut counted = Array::<bool>::new(TWO_PASS_ADD_FLIGHT);
        #[unroll]
        for i in 0..TWO_PASS_ADD_FLIGHT {
            let at = entry + comptime!(i as i32);
            let number = numbers[min(at, item.end - 1) as usize];
            counted[i] = at < item.end && number < end;
            values[i] = products[select(counted[i], number - first, 0) as usize * across + place];
        }
        #[unroll]
        for i in 0..TWO_PASS_ADD_FLIGHT {
            if counted[i] {
                sum += values[i];
            }
        }
        entry += comptime!(TWO_PASS_ADD_FLIGHT as i32);
        more = counted[comptime!(TWO_PASS_ADD_FLIGHT - 1)] && entry < item.end;
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

#[cube]
fn load_row<S: Float>(
    dense: &mut Shared<[S]>,
    matrix: &[S],
    row: usize,
    factor: S,
    #[comptime] layout: PlaneLayout,
) {
    let width = comptime!(layout.width);
    let mut place = UNIT_POS_X as usize;
    while place < width {
        dense[UNIT_POS_Y as usize * width + place] = factor * matrix[row * width + place];
        place += comptime!(layout.plane as usize);
    }
    sync_plane();
}
