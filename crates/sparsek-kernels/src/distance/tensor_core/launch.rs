use std::ops::Range;

use cubecl::{ir::FloatKind, prelude::*};

use super::kernel::{LEFT, RIGHT, TensorCoreShapeLaunch, finish_kernel, tensor_core_kernel};
use crate::{
    device::accumulator,
    distance::{
        job::Job,
        launch,
        merge::join,
        prepare::packed::Packed,
        semiring::{Inner, Semiring},
        tuning::{TENSOR_CORE_BYTES, TENSOR_CORE_PLANES},
        types::{Matrix, Prepared, Routine},
    },
    error::KernelError,
    launch::{Grid, argument},
    primitives::mma::{LANES, has_instruction},
};

const INSTRUCTION: [u32; 3] = [16, 8, 16];
/// Whole numbers exact in f16, f32.
const MOST: f32 = 2048.0;
const MOST_SUM: f64 = 16_777_216.0;

const BUFFERS: usize = 11;

fn refused(reason: impl Into<String>) -> KernelError {
    launch::refused(Routine::TensorCore, reason)
}

/// Whether f16 tensor cores exist.
pub fn multiplies(client: &Client) -> bool {
    has_instruction(client, FloatKind::F16, INSTRUCTION)
}

pub(in crate::distance) fn check(
    client: &Client,
    inner: Option<Inner>,
    matrix: &Matrix,
) -> Result<(), KernelError> {
    if inner.is_none() {
        return Err(refused("the total is not an inner product"));
    }
    let dtype = accumulator(client, matrix.dtype)?;
    if dtype != f32::elem_type_native() {
        return Err(refused(format!("sums are {dtype}, not f32")));
    }
    if !multiplies(client) {
        return Err(refused(format!(
            "the device lacks f16 matrix instructions for planes of {LANES}"
        )));
    }
    launch::check_buffers(client, Routine::TensorCore, BUFFERS)?;
    check_size([matrix.rows, matrix.cols])
}

pub(in crate::distance) fn check_size(size: [usize; 2]) -> Result<(), KernelError> {
    match Packed::bytes(size) {
        bytes if bytes > TENSOR_CORE_BYTES => Err(refused(format!(
            "{} rows of {} columns take {bytes} bytes laid out densely; the limit is {}",
            size[0], size[1], TENSOR_CORE_BYTES
        ))),
        _ => Ok(()),
    }
}

/// Sums are ≤ `greatest² · longest`.
fn exact(inner: Option<Inner>, greatest: Option<f32>, longest: usize) -> bool {
    let greatest = match inner {
        Some(Inner::Ones) => 1.0,
        _ => greatest.unwrap_or(f32::INFINITY),
    };
    greatest <= MOST && f64::from(greatest).powi(2) * longest as f64 <= MOST_SUM
}

pub(in crate::distance) fn suits(inner: Option<Inner>, matrix: &Matrix) -> bool {
    let small = check_size([matrix.rows, matrix.cols]).is_ok();
    small && exact(inner, matrix.greatest, matrix.longest)
}

pub(in crate::distance) fn check_values(
    inner: Option<Inner>,
    matrix: &Prepared,
) -> Result<(), KernelError> {
    let (greatest, longest) = (matrix.greatest, matrix.longest);
    match exact(inner, greatest, longest) {
        true => Ok(()),
        false => Err(refused(format!(
            "it requires that values are whole numbers up to {MOST}, and sums of squares up to \
             {MOST_SUM}; values are up to {}, in rows of {longest} entries",
            greatest.unwrap_or(f32::INFINITY),
        ))),
    }
}

fn inner<M: Semiring>() -> Inner {
    M::STRATEGY.inner.expect("checked with the index")
}

pub(in crate::distance) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let y = job.packed.expect("made with the index");
    let packed;
    let x = match job.whole() {
        true => y,
        false => {
            packed = Packed::new(job.client, job.x, job.rows.clone(), inner::<M>())?;
            &packed
        }
    };
    let half = job.half::<M>();
    multiply::<M>(job, [x, y], half)?;
    if M::STRATEGY.direct {
        finish::<M>(job, half)?;
    }
    match half {
        true => join::mirror::<M>(job),
        false => Ok(()),
    }
}

fn multiply<M: Semiring>(job: &Job, [x, y]: [&Packed; 2], half: bool) -> Result<(), KernelError> {
    let client = job.client;
    let tiles = job.y.rows.div_ceil(RIGHT);
    let dim = CubeDim::new_2d(LANES, TENSOR_CORE_PLANES as u32);
    let cubes = job.rows.len().div_ceil(LEFT) * tiles;
    let elements = job.elements().max(x.loads()).max(y.loads());
    let grid = Grid::new(client, cubes, dim, elements)?;
    let word = u32::elem_type_native();
    // SAFETY: lengths checked; `Matrix` bounds positions.
    unsafe {
        tensor_core_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(x.handle(), "rows", word, 4 * x.loads())?,
            argument(y.handle(), "rows", word, 4 * y.loads())?,
            job.matrices()?,
            job.output()?,
            shape(job, y.steps()),
            half,
            job.x.dtype,
        );
    }
    Ok(())
}

fn finish<M: Semiring>(job: &Job, half: bool) -> Result<(), KernelError> {
    let grid = Grid::elementwise(job.client, job.pairs(), job.elements())?;
    // SAFETY: as in `multiply`.
    unsafe {
        finish_kernel::launch_unchecked::<M>(
            job.client,
            grid.count,
            grid.dim,
            grid.address,
            job.matrices()?,
            job.output()?,
            shape(job, 0),
            half,
            job.x.dtype,
        );
    }
    Ok(())
}

fn shape(job: &Job, steps: usize) -> TensorCoreShapeLaunch {
    let Range { start, end } = job.rows;
    TensorCoreShapeLaunch::new(start, end - start, job.y.rows, steps)
}
