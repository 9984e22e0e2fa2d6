//! Distances by the paper's hybrid of CSR and COO (Algorithm 3): a cube for each row of `x` holds it in shared memory, dense
//! or as a hash table ([`table`]), and its planes go through all entries of `y`, the sums of each row by a segmented scan
//! ([`scan`], [`sums`]). What a metric adds up over the columns of either row takes a second pass with the matrices exchanged, for the
//! columns of `x` that `y` lacks; a last kernel makes distances of the sums.
//!
//! The work is the rows of `x` times the entries of `y`: kept for comparison, and chosen nowhere. Deterministic: a row that
//! lies in the stretches of several planes is put together in their order, where the paper adds by atomics.

mod scan;
mod sink;
mod sums;
mod table;

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use crate::primitives::csr::row_of;
use cubecl::{
    features::{AtomicUsage, Plane},
    ir::ElemType,
    prelude::*,
    server::Handle,
};

use self::{
    scan::{Blueprint, Pass, ShapeLaunch, scan_kernel},
    table::Layout,
};
use super::{
    Job, Parameter, Prepared,
    pair::{Sparse, Two},
    semiring::{Needs, Semiring},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// Units of a cube: 32 planes of 32, as in the paper.
const UNITS: u32 = 1024;
/// Without planes: each unit keeps sums of its own in shared memory.
const LONE_UNITS: u32 = 256;
/// Shared memory of a cube: two of them have room on an SM of a V100, as in the paper.
const SHARED_BYTES: usize = 48 << 10;
/// The least that is worth running in.
const LEAST_BYTES: usize = 16 << 10;

fn refused(reason: String) -> KernelError {
    KernelError::Routine {
        routine: "hybrid",
        reason,
    }
}

/// Whether it can run.
pub(super) fn check(client: &Client) -> Result<(), KernelError> {
    if is_llvmpipe(client) {
        return Err(refused(LLVMPIPE_REFUSAL.into()));
    }
    if plane_or_unit(client) > 1 && !client.features().plane.contains(Plane::Sync) {
        return Err(refused("planes cannot wait for themselves".into()));
    }
    let atomic = Type::atomic(u32::elem_type_native());
    let has = client.properties().atomic_type_usage(atomic);
    if !has.is_superset(AtomicUsage::CompareExchange | AtomicUsage::Bitwise) {
        return Err(refused(
            "32-bit words cannot be compared and exchanged".into(),
        ));
    }
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < LEAST_BYTES {
        return Err(refused(format!(
            "{LEAST_BYTES} bytes of shared memory; there are {limit}"
        )));
    }
    Ok(())
}

/// Whether products run over the columns of either row, in two passes.
fn of_union(needs: &Needs) -> bool {
    needs.union || !needs.annihilates
}

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let (client, pairs) = (job.client, job.pairs());
    let dtype = job.x.dtype;
    let noted = if M::NEEDS.other { pairs } else { 1 };
    let others = allocate(client, "sums", noted, dtype)?;
    let grid = Grid::elementwise(client, pairs, job.elements())?;
    // SAFETY: `job.output` and `argument` check the lengths.
    unsafe {
        begin_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.output()?,
            argument(&others, "sums", dtype, noted)?,
            dtype,
        );
    }
    let first = if of_union(&M::NEEDS) {
        Pass::Either
    } else {
        Pass::Both
    };
    scan::<M>(job, &others, first)?;
    if of_union(&M::NEEDS) {
        scan::<M>(job, &others, Pass::Lacking)?;
    }
    let grid = Grid::elementwise(client, pairs, job.elements())?;
    let [x, y] = [job.x.arguments()?, job.y.arguments()?];
    // SAFETY: as above; offsets and columns are in range by the contract of `Matrix`.
    unsafe {
        finish_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            x.indptr,
            x.indices,
            x.values,
            x.norms,
            y.indptr,
            y.indices,
            y.values,
            y.norms,
            job.output()?,
            argument(&others, "sums", dtype, noted)?,
            job.parameter.launch(),
            job.rows.start,
            job.y.rows,
            job.x.cols as u32,
            job.own,
            dtype,
        );
    }
    Ok(())
}

/// One pass over the entries of one matrix by the rows of the other.
fn scan<M: Semiring>(job: &Job, others: &Handle, pass: Pass) -> Result<(), KernelError> {
    let client = job.client;
    let (dtype, int) = (job.x.dtype, i32::elem_type_native());
    let (count, across) = (job.rows.len(), job.y.rows);
    // What is held, what is scanned: the first row, how many, and how far they are apart in the output.
    let x = (job.x, [job.rows.start, count, across]);
    let y = (job.y, [0, across, 1]);
    let (held, scanned) = if pass == Pass::Lacking {
        (y, x)
    } else {
        (x, y)
    };
    if scanned.0.nnz == 0 {
        return Ok(());
    }
    let rows = entry_rows(client, scanned.0)?;
    let plane = plane_or_unit(client);
    let most = if plane > 1 {
        UNITS.max(plane)
    } else {
        LONE_UNITS
    };
    let planes = units_per_cube(client, most) / plane;
    let limit = client.properties().hardware.max_shared_memory_size;
    let carried = scan::carried_bytes(planes, dtype.size());
    let blueprint = Blueprint {
        plane,
        planes,
        pass,
        layout: Layout::new(SHARED_BYTES.min(limit) - carried, dtype, job.x.cols),
    };
    let dim = CubeDim::new_2d(plane, planes);
    let grid = Grid::new(client, held.1[1], dim, job.elements())?;
    let noted = if M::NEEDS.other { job.pairs() } else { 1 };
    let [kept, gone_through] = [held.0.arguments()?, scanned.0.arguments()?];
    // SAFETY: the lengths are checked; offsets and columns are in range by the contract of `Matrix`.
    unsafe {
        scan_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            kept.indptr,
            kept.indices,
            kept.values,
            kept.norms,
            gone_through.indptr,
            gone_through.indices,
            gone_through.values,
            gone_through.norms,
            argument(&rows, "rows", int, scanned.0.nnz)?,
            job.output()?,
            argument(others, "sums", dtype, noted)?,
            job.parameter.launch(),
            ShapeLaunch::new(
                held.1[0],
                held.1[1],
                held.1[2],
                scanned.1[0],
                scanned.1[1],
                scanned.1[2],
                (plane * planes) as usize,
            ),
            blueprint,
            dtype,
        );
    }
    Ok(())
}

/// The row of each entry: what COO has beyond CSR.
fn entry_rows(client: &Client, matrix: &Prepared) -> Result<Handle, KernelError> {
    let int = i32::elem_type_native();
    let rows = allocate(client, "rows", matrix.nnz, int)?;
    let grid = Grid::elementwise(client, matrix.nnz, matrix.nnz.max(matrix.rows + 1))?;
    // SAFETY: `argument` checks the lengths; offsets are in range by the contract of `Matrix`.
    unsafe {
        rows_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(&matrix.indptr, "indptr", int, matrix.rows + 1)?,
            argument(&rows, "rows", int, matrix.nnz)?,
            matrix.rows as u32,
        );
    }
    Ok(rows)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn rows_kernel(indptr: &[i32], rows: &mut [i32], count: u32) {
    if ABSOLUTE_POS >= rows.len() {
        terminate!();
    }
    let row = row_of(indptr, count, i32::cast_from(ABSOLUTE_POS));
    rows[ABSOLUTE_POS] = i32::cast_from(row);
}

/// Where all sums begin.
#[cube(launch_unchecked, address_type = "dynamic")]
fn begin_kernel<M: Semiring, S: Float>(
    totals: &mut [S],
    others: &mut [S],
    #[define(S)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= totals.len() {
        terminate!();
    }
    totals[ABSOLUTE_POS] = sums::identity::<M, S>();
    if comptime!(M::NEEDS.other) {
        others[ABSOLUTE_POS] = S::new(0.0);
    }
}

/// Distances of sums.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "two matrices of four buffers")]
fn finish_kernel<M: Semiring, S: Float>(
    x_indptr: &[i32],
    x_indices: &[i32],
    x_values: &[S],
    x_norms: &[S],
    y_indptr: &[i32],
    y_indices: &[i32],
    y_values: &[S],
    y_norms: &[S],
    output: &mut [S],
    others: &[S],
    parameter: Parameter,
    first: usize,
    across: usize,
    cols: u32,
    #[comptime] own: bool,
    #[define(S)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= output.len() {
        terminate!();
    }
    let x = Sparse::<S>::new(x_indptr, x_indices, x_values, x_norms);
    let y = Sparse::<S>::new(y_indptr, y_indices, y_values, y_norms);
    let two = Two::<S>::new(x, y, cols, &parameter, own);
    let i = ABSOLUTE_POS / across;
    let j = ABSOLUTE_POS - i * across;
    let total = output[ABSOLUTE_POS];
    let mut other = S::new(0.0);
    if comptime!(M::NEEDS.other) {
        other = others[ABSOLUTE_POS];
    }
    if comptime!(M::NEEDS.union) {
        output[ABSOLUTE_POS] = two.close::<M>(first + i, j, total, other);
    } else {
        output[ABSOLUTE_POS] = two.finish::<M>(first + i, j, total, other);
    }
}
