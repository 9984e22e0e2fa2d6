//! The gradient of products with compressed rows by atomics: a plane has the gradient of a row of the result in shared memory
//! and adds to those of all its entries. The order of the terms depends on the run.

use crate::launch::fill_zero;
use cubecl::{
    ir::{ElemType, FloatKind, Type, features::AtomicUsage},
    prelude::*,
    server::Handle,
};

use super::{
    Operand,
    entries::{Entries, row_factor},
    gather::Picked,
    partition::Item,
    shape::{self, Shape, load_row},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// Bytes of the gradient that are added to before the next, and fewest members of such a slice: additions are made in the cache. For
/// k = 64 of 256 on a graph of Reddit's size 64 members at a time, 60 MB, took 12.9 ms, 32 9.3 and 16 11.6; k = 32 took 4.2, and
/// 5.3 in two slices (NVIDIA H200, whose cache has 50 MB).
const SLICE_BYTES: usize = 40_000_000;
const SLICE_MEMBERS: usize = 32;

/// Members of a unit that are under way at a time.
const FLIGHT: usize = 8;

/// Members of a slice: all where that is not too much, or slices of the fewest still are.
fn slice(cols: usize, k: usize) -> usize {
    let fitting = SLICE_BYTES / size_of::<f32>() / cols.max(1);
    match fitting - fitting % SLICE_MEMBERS {
        0 => k,
        members => members.min(k),
    }
}

/// Units of a plane, where rows of `width` can be added up so.
pub(super) fn check(client: &Client, dtype: ElemType, width: usize) -> Result<u32, KernelError> {
    let refuse = |reason: &str| {
        Err(KernelError::Routine {
            routine: "atomic",
            reason: reason.into(),
        })
    };
    if dtype != ElemType::Float(FloatKind::F32) {
        return refuse("it adds f32 only");
    }
    let usage = client.properties().atomic_type_usage(Type::atomic(dtype));
    if !usage.contains(AtomicUsage::Add) {
        return refuse("the device has no atomic additions of f32");
    }
    shape::check(client, "atomic", |_| width * dtype.size())
}

/// `operand` is that of the product, not its transpose; `upstream` is `[rows, width]`, the result `[cols, k]`.
pub(super) fn launch(
    client: &Client,
    operand: &Operand,
    upstream: &Handle,
    dtype: ElemType,
    width: usize,
    picked: Picked,
) -> Result<Handle, KernelError> {
    let plane = check(client, dtype, width)?;
    let Operand { csr, partition, .. } = operand;
    let elements = csr.cols * picked.k;
    let output = allocate(client, "gradient", elements, dtype)?;
    fill_zero(client, &output, dtype, elements)?;
    if elements == 0 || csr.nnz == 0 {
        return Ok(output);
    }
    let slice = slice(csr.cols, picked.k);
    let shape = Shape::new(
        client,
        plane,
        operand,
        [slice, width],
        [1, usize::MAX, FLIGHT],
    );
    let cubes = partition.items().div_ceil(shape.planes as usize);
    let largest = elements.max(csr.rows * width).max(csr.nnz);
    for from in (0..picked.k).step_by(slice) {
        let dim = CubeDim::new_2d(plane, shape.planes);
        let grid = Grid::new(client, cubes, dim, largest)?;
        let arguments = operand.arguments(client, dtype, dtype)?;
        // SAFETY: `argument` checks the lengths; offsets and columns are in range by the contracts of `Csr` and `Compressed`;
        // unused buffers stand in for absent ones and are not read.
        unsafe {
            atomic_kernel::launch_unchecked::<f32>(
                client,
                grid.count,
                grid.dim,
                grid.address,
                partition.argument()?,
                arguments.indices,
                arguments.weights,
                arguments.entries,
                arguments.rows,
                arguments.cols,
                argument(upstream, "upstream", dtype, csr.rows * width)?,
                argument(picked.columns, "columns", picked.index, elements)?,
                argument(&output, "gradient", dtype, elements)?,
                partition.items(),
                picked.k as u32,
                from as u32,
                (picked.k - from).min(slice) as u32,
                shape,
                picked.index,
            );
        }
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "two matrices, one with its factors"
)]
fn atomic_kernel<S: Float, I: Numeric>(
    parts: &[i32],
    indices: &[i32],
    weights: &[S],
    entries: &[i32],
    rows: &[S],
    cols: &[S],
    upstream: &[S],
    columns: &[I],
    gradient: &[Atomic<S>],
    items: usize,
    k: u32,
    from: u32,
    members: u32,
    #[comptime] shape: Shape,
    #[define(I)] _index: ElemType,
) {
    let number = CUBE_POS * comptime!(shape.planes as usize) + UNIT_POS_Y as usize;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    if item.row < 0 {
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
    let source = Entries::<S, S>::new(indices, weights, entries, cols, comptime!(shape.factors));
    let stride = comptime!((shape.teams() * shape.flight) as i32);
    let mut entry = item.start + i32::cast_from(team);
    while entry < item.end {
        let mut targets = Array::<usize>::new(comptime!(shape.flight * shape.members));
        let mut places = Array::<u32>::new(comptime!(shape.flight * shape.members));
        let mut factors = Array::<S>::new(shape.flight);
        #[unroll]
        for i in 0..shape.flight {
            let read = min(entry + comptime!((i * teams) as i32), item.end - 1);
            let column = source.column(read);
            factors[i] = source.factor(read, column);
            #[unroll]
            for m in 0..shape.members {
                let member = min(lane + comptime!(m as u32 * shape.team), members - 1);
                let target = column * k as usize + (from + member) as usize;
                targets[comptime!(i * shape.members + m)] = target;
                places[comptime!(i * shape.members + m)] = u32::cast_from(columns[target]);
            }
        }
        #[unroll]
        for i in 0..shape.flight {
            let inside = entry + comptime!((i * teams) as i32) < item.end;
            #[unroll]
            for m in 0..shape.members {
                let member = lane + comptime!(m as u32 * shape.team);
                if inside && member < members {
                    let value = dense[own + places[comptime!(i * shape.members + m)] as usize];
                    let term = if comptime!(shape.factors.any()) {
                        factors[i] * value
                    } else {
                        value
                    };
                    gradient[targets[comptime!(i * shape.members + m)]].fetch_add(term);
                }
            }
        }
        entry += stride;
    }
}
