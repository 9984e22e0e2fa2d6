use cubecl::{features::AtomicUsage, prelude::*, server::Handle};

use super::{
    kernel::{begin_kernel, finish_kernel, rows_kernel, scan_kernel},
    table::Layout,
    types::{HybridConfig, HybridShapeLaunch, Pass, carried_bytes},
};
use crate::{
    device::{has_plane_barrier, plane_or_unit, units_per_cube},
    distance::{
        job::Job,
        launch::{check_shared_sums, refused},
        semiring::Semiring,
        tuning::{HYBRID_LEAST_BYTES, HYBRID_LONE_UNITS, HYBRID_SHARED_BYTES, HYBRID_UNITS},
        types::{Prepared, Routine},
    },
    error::KernelError,
    launch::{Grid, allocate, argument},
};

const BUFFERS: usize = 11;

pub(in crate::distance) fn check(client: &Client) -> Result<(), KernelError> {
    check_shared_sums(client, Routine::Hybrid, BUFFERS)?;
    if plane_or_unit(client) > 1 && !has_plane_barrier(client) {
        return Err(refused(Routine::Hybrid, "planes cannot synchronize"));
    }
    let atomic = Type::atomic(u32::elem_type_native());
    let has = client.properties().atomic_type_usage(atomic);
    if !has.is_superset(AtomicUsage::CompareExchange | AtomicUsage::Bitwise) {
        let reason = "there is no atomic compare-exchange of 32-bit words";
        return Err(refused(Routine::Hybrid, reason));
    }
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < HYBRID_LEAST_BYTES {
        let reason = format!(
            "{HYBRID_LEAST_BYTES} bytes of shared memory are required; the device has {limit}"
        );
        return Err(refused(Routine::Hybrid, reason));
    }
    Ok(())
}

pub(in crate::distance) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let (client, pairs) = (job.client, job.pairs());
    let dtype = job.x.dtype;
    let others_len = if M::ALGEBRA.other { pairs } else { 1 };
    let others = allocate(client, "sums", others_len, dtype)?;
    let grid = Grid::elementwise(client, pairs, job.elements())?;
    // SAFETY: lengths checked.
    unsafe {
        begin_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.output()?,
            argument(&others, "sums", dtype, others_len)?,
            dtype,
        );
    }
    let either = M::STRATEGY.union || !M::ALGEBRA.annihilates;
    let first = if either { Pass::Either } else { Pass::Both };
    scan::<M>(job, &others, first)?;
    if either {
        scan::<M>(job, &others, Pass::Lacking)?;
    }
    let grid = Grid::elementwise(client, pairs, job.elements())?;
    // SAFETY: as above; `Matrix` bounds positions.
    unsafe {
        finish_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            job.output()?,
            argument(&others, "sums", dtype, others_len)?,
            job.rows.start,
            job.y.rows,
            dtype,
        );
    }
    Ok(())
}

fn scan<M: Semiring>(job: &Job, others: &Handle, pass: Pass) -> Result<(), KernelError> {
    let client = job.client;
    let (dtype, int) = (job.x.dtype, i32::elem_type_native());
    let (count, across) = (job.rows.len(), job.y.rows);
    // First row, rows, output stride.
    let x = (job.x, [job.rows.start, count, across]);
    let y = (job.y, [0, across, 1]);
    let (held, scanned) = if pass == Pass::Lacking { (y, x) } else { (x, y) };
    if scanned.0.nnz == 0 {
        return Ok(());
    }
    let rows = entry_rows(client, scanned.0)?;
    let plane = plane_or_unit(client);
    let most = if plane > 1 { HYBRID_UNITS.max(plane) } else { HYBRID_LONE_UNITS };
    let planes = units_per_cube(client, most) / plane;
    let limit = client.properties().hardware.max_shared_memory_size;
    let carried = carried_bytes(planes, dtype.size());
    let config = HybridConfig {
        plane,
        planes,
        pass,
        layout: Layout::new(HYBRID_SHARED_BYTES.min(limit) - carried, dtype, job.x.cols),
    };
    let dim = CubeDim::new_2d(plane, planes);
    let grid = Grid::new(client, held.1[1], dim, job.elements())?;
    let others_len = if M::ALGEBRA.other { job.pairs() } else { 1 };
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        scan_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            held.0.arguments()?,
            scanned.0.arguments()?,
            argument(&rows, "rows", int, scanned.0.nnz)?,
            job.output()?,
            argument(others, "sums", dtype, others_len)?,
            job.parameter.launch(),
            HybridShapeLaunch::new(
                held.1[0],
                held.1[1],
                held.1[2],
                scanned.1[0],
                scanned.1[1],
                scanned.1[2],
                (plane * planes) as usize,
            ),
            config,
            dtype,
        );
    }
    Ok(())
}

fn entry_rows(client: &Client, matrix: &Prepared) -> Result<Handle, KernelError> {
    let int = i32::elem_type_native();
    let rows = allocate(client, "rows", matrix.nnz, int)?;
    let grid = Grid::elementwise(client, matrix.nnz, matrix.nnz.max(matrix.rows + 1))?;
    // SAFETY: lengths checked; `Matrix` bounds offsets.
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
