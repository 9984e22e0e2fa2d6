use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    factors::{AdamFactors, AdamFactorsLaunch},
    mask::STEP_WORDS,
    steps::WORD,
    types::DenseRows,
};
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// Returns parameter and moments after a step, in one pass.
///
/// Buffers have the parameter's size and dtype.
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
    // SAFETY: lengths checked.
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
    let element = AdamElement::<E, N> {
        x: parameter[ABSOLUTE_POS],
        first: first[ABSOLUTE_POS],
        second: second[ABSOLUTE_POS],
    };
    let after = stepped::<E, S, N>(element, gradient[ABSOLUTE_POS], factors);
    next[ABSOLUTE_POS] = after.x;
    next_first[ABSOLUTE_POS] = after.first;
    next_second[ABSOLUTE_POS] = after.second;
}

/// Steps in place, in shared buffers too; none may overlap. `words`, a row of
/// [`next_step`](super::next_step), has rate and epsilon.
pub fn adam_step_in_place(
    client: &Client,
    x: &DenseRows,
    gradient: &Handle,
    moments: [&Handle; 2],
    words: &Handle,
    factors: AdamFactors,
) -> Result<(), KernelError> {
    let wide = rounded_accumulator(client, x.dtype)?;
    let elements = x.elements();
    if elements == 0 {
        return Ok(());
    }
    let [first, second] = moments;
    let vector = x.vector(client, &[gradient, first, second]);
    let grid = Grid::elementwise(client, elements / vector, elements)?;
    let buffer = |handle, name| argument(handle, name, x.dtype, elements);
    // SAFETY: lengths checked.
    unsafe {
        adam_in_place_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            buffer(x.handle, "parameter")?,
            buffer(gradient, "gradient")?,
            buffer(first, "first moment")?,
            buffer(second, "second moment")?,
            argument(words, "words of a step", WORD, STEP_WORDS)?,
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
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn adam_in_place_kernel<E: Float, S: Float, N: Size>(
    parameter: &mut [Vector<E, N>],
    gradient: &[Vector<E, N>],
    first: &mut [Vector<E, N>],
    second: &mut [Vector<E, N>],
    words: &[u32],
    length: usize,
    factors: AdamFactors,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= length {
        terminate!();
    }
    let mut factors = factors;
    factors.rate = f32::reinterpret(words[0]);
    factors.epsilon = f32::reinterpret(words[1]);
    let element = AdamElement::<E, N> {
        x: parameter[ABSOLUTE_POS],
        first: first[ABSOLUTE_POS],
        second: second[ABSOLUTE_POS],
    };
    let after = stepped::<E, S, N>(element, gradient[ABSOLUTE_POS], factors);
    parameter[ABSOLUTE_POS] = after.x;
    first[ABSOLUTE_POS] = after.first;
    second[ABSOLUTE_POS] = after.second;
}

#[derive(CubeType, Clone, Copy)]
struct AdamElement<E: Float, N: Size> {
    x: Vector<E, N>,
    first: Vector<E, N>,
    second: Vector<E, N>,
}

#[cube]
fn stepped<E: Float, S: Float, N: Size>(
    before: AdamElement<E, N>,
    gradient: Vector<E, N>,
    factors: AdamFactors,
) -> AdamElement<E, N> {
    let x = Vector::<S, N>::cast_from(before.x);
    let g = Vector::<S, N>::cast_from(gradient) + x * splat::<S, N>(factors.decay);
    let m = Vector::<S, N>::cast_from(before.first) * splat::<S, N>(factors.beta_1)
        + g * splat::<S, N>(1.0 - factors.beta_1);
    let v = Vector::<S, N>::cast_from(before.second) * splat::<S, N>(factors.beta_2)
        + g * g * splat::<S, N>(1.0 - factors.beta_2);
    let step = m * splat::<S, N>(factors.rate) / (v.sqrt() + splat::<S, N>(factors.epsilon));
    AdamElement::<E, N> {
        x: Vector::cast_from(x - step),
        first: Vector::cast_from(m),
        second: Vector::cast_from(v),
    }
}

#[cube]
fn splat<S: Float, N: Size>(x: f32) -> Vector<S, N> {
    Vector::new(S::cast_from(x))
}
