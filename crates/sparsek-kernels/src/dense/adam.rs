//! Adam's step in one pass.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    factors::{AdamFactors, AdamFactorsLaunch},
    types::DenseRows,
};
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Returns the parameter and both moments after one step.
///
/// All buffers are contiguous, of the size and dtype of the parameter `x`.
pub fn adam_step(
    client: &Client,
    x: &DenseRows,
    gradient: &Handle,
    moments: [&Handle; 2],
    factors: AdamFactors,
) -> Result<[Handle; 3], KernelError> {
    let wide = rounded_accumulator(client, x.dtype)?;
    let elements = x.elements();
    let output = |name| allocate(client, name, elements, x.dtype);
    let outputs = [
        output("parameter after the step")?,
        output("first moment after the step")?,
        output("second moment after the step")?,
    ];
    if elements == 0 {
        return Ok(outputs);
    }
    let [first, second] = moments;
    let vector = x.vector(client, &[gradient, first, second]);
    let grid = Grid::elementwise(client, elements / vector, elements)?;
    let input = |handle, name| argument(handle, name, x.dtype, elements);
    let [next, next_first, next_second] = &outputs;
    // SAFETY: `argument` checks lengths.
    unsafe {
        adam_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            input(x.handle, "parameter")?,
            input(gradient, "gradient")?,
            input(first, "first moment")?,
            input(second, "second moment")?,
            input(next, "parameter after the step")?,
            input(next_first, "first moment after the step")?,
            input(next_second, "second moment after the step")?,
            elements / vector,
            AdamFactorsLaunch::new(
                factors.beta_1,
                factors.beta_2,
                factors.decay,
                factors.rate,
                factors.epsilon,
            ),
            [x.dtype, wide],
        );
    }
    Ok(outputs)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn adam_kernel<E: Float, S: Float, N: Size>(
    parameter: &[Vector<E, N>],
    gradient: &[Vector<E, N>],
    first: &[Vector<E, N>],
    second: &[Vector<E, N>],
    next: &mut [Vector<E, N>],
    next_first: &mut [Vector<E, N>],
    next_second: &mut [Vector<E, N>],
    length: usize,
    factors: AdamFactors,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= length {
        terminate!();
    }
    let x = Vector::<S, N>::cast_from(parameter[ABSOLUTE_POS]);
    let g = Vector::<S, N>::cast_from(gradient[ABSOLUTE_POS]) + x * splat::<S, N>(factors.decay);
    let m = Vector::<S, N>::cast_from(first[ABSOLUTE_POS]) * splat::<S, N>(factors.beta_1)
        + g * splat::<S, N>(1.0 - factors.beta_1);
    let v = Vector::<S, N>::cast_from(second[ABSOLUTE_POS]) * splat::<S, N>(factors.beta_2)
        + g * g * splat::<S, N>(1.0 - factors.beta_2);
    let step = m * splat::<S, N>(factors.rate) / (v.sqrt() + splat::<S, N>(factors.epsilon));
    next[ABSOLUTE_POS] = Vector::cast_from(x - step);
    next_first[ABSOLUTE_POS] = Vector::cast_from(m);
    next_second[ABSOLUTE_POS] = Vector::cast_from(v);
}

#[cube]
fn splat<S: Float, N: Size>(x: f32) -> Vector<S, N> {
    Vector::new(S::cast_from(x))
}
