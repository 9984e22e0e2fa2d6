//! A training step's numbers, read from memory: a captured launch repeats with new ones.
//!
//! A step's row has four words: bits of Adam's rate and epsilon, and a seed.

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{
    mask::{CALL_FACTOR, STEP_WORDS, greatest_kept},
    types::DenseRows,
};
use crate::{
    device::rounded_accumulator,
    error::KernelError,
    hash::mix,
    launch::{Grid, allocate, argument},
};

pub(super) const WORD: ElemType = ElemType::UInt(UIntKind::U32);

const MAX_STEPS: usize = u32::MAX as usize / STEP_WORDS;

/// Copies row `counter` of `[rows, 4]` words, then increments `counter` in place. Past the end,
/// repeats the last row.
pub fn next_step(
    client: &Client,
    table: &Handle,
    rows: usize,
    counter: &Handle,
) -> Result<Handle, KernelError> {
    if rows == 0 {
        let (name, needed, found) = ("table of steps", STEP_WORDS, 0);
        return Err(KernelError::BufferTooShort { name, needed, found });
    }
    if rows > MAX_STEPS {
        return Err(KernelError::TooManyRows { rows, limit: MAX_STEPS });
    }
    let words = allocate(client, "words of a step", STEP_WORDS, WORD)?;
    // SAFETY: lengths checked.
    unsafe {
        next_step_kernel::launch_unchecked(
            client,
            CubeCount::new_single(),
            CubeDim::new_single(),
            argument(table, "table of steps", WORD, rows * STEP_WORDS)?,
            argument(counter, "counter of steps", WORD, 1)?,
            argument(&words, "words of a step", WORD, STEP_WORDS)?,
            rows as u32,
        );
    }
    Ok(words)
}

#[cube(launch_unchecked)]
fn next_step_kernel(table: &[u32], counter: &mut [u32], words: &mut [u32], rows: u32) {
    let step = counter[0];
    let row = min(step, rows - 1) as usize;
    #[unroll]
    for word in 0..STEP_WORDS {
        words[word] = table[row * STEP_WORDS + word];
    }
    counter[0] = step + 1;
}

/// Multiplies elements by `1 / keep` with probability `keep`, else zeroes them.
///
/// [`DropoutMask`](super::DropoutMask) decides, by the seed in `words` and the call's number in its
/// step. The same arguments give the gradient from the upstream.
pub fn dropout(
    client: &Client,
    x: &DenseRows,
    words: &Handle,
    keep: f32,
    call: u32,
) -> Result<Handle, KernelError> {
    let wide = rounded_accumulator(client, x.dtype)?;
    let elements = x.elements();
    let output = allocate(client, "output of dropout", elements, x.dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    let vector = x.vector(client, &[]);
    let grid = Grid::elementwise(client, elements / vector, elements)?;
    // SAFETY: lengths checked.
    unsafe {
        dropout_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            argument(x.handle, "input of dropout", x.dtype, elements)?,
            argument(words, "words of a step", WORD, STEP_WORDS)?,
            argument(&output, "output of dropout", x.dtype, elements)?,
            elements / vector,
            greatest_kept(keep),
            1.0 / keep,
            call,
            [x.dtype, wide],
        );
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn dropout_kernel<E: Float, S: Float, N: Size>(
    x: &[Vector<E, N>],
    words: &[u32],
    output: &mut [Vector<E, N>],
    length: usize,
    greatest: u32,
    scale: f32,
    call: u32,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= length {
        terminate!();
    }
    let width = N::value().comptime();
    let call = call * CALL_FACTOR;
    let (low, high) = (mix(words[2] ^ call), mix(words[3] + call));
    let value = Vector::<S, N>::cast_from(x[ABSOLUTE_POS]) * Vector::new(S::cast_from(scale));
    let mut kept = Vector::<S, N>::zeroed();
    #[unroll]
    for i in 0..width {
        let place = (ABSOLUTE_POS * width + i) as u32;
        let bits = mix(mix(place ^ low) ^ high);
        kept.insert(i, select(bits <= greatest, value.extract(i), S::from_int(0)));
    }
    output[ABSOLUTE_POS] = Vector::cast_from(kept);
}
