//! Partial sums of rows cut by a [`Partition`](super::Partition).

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{operand::Operand, sizes::ITEM_WORDS, tuning::COMBINE_UNITS};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
};

pub(super) struct PartialSums<'a> {
    operand: &'a Operand<'a>,
    /// `[slots, width]` of `sum`.
    handle: Handle,
    dtype: ElemType,
    sum: ElemType,
    width: usize,
    vector: usize,
}

impl<'a> PartialSums<'a> {
    /// At least a vector.
    pub fn new(
        client: &Client,
        operand: &'a Operand<'a>,
        [dtype, sum]: [ElemType; 2],
        width: usize,
        vector: usize,
    ) -> Result<Self, KernelError> {
        let slots = (operand.partition.slots() * width).max(vector);
        let handle = allocate(client, "partials", slots, sum)?;
        Ok(Self { operand, handle, dtype, sum, width, vector })
    }

    pub fn argument(&self) -> Result<BufferArg, KernelError> {
        let slots = (self.operand.partition.slots() * self.width).max(self.vector);
        argument(&self.handle, "partials", self.sum, slots)
    }

    /// Adds parts in order into `output`.
    pub fn combine(&self, client: &Client, output: &Handle) -> Result<(), KernelError> {
        let Operand { csr, partition, .. } = self.operand;
        let cut = partition.cut_rows();
        if cut == 0 || self.width == 0 {
            return Ok(());
        }
        let elements = csr.rows * self.width;
        let partials = partition.slots() * self.width;
        let units = (cut * self.width).min(COMBINE_UNITS);
        let grid = Grid::elementwise(client, units, elements.max(partials))?;
        // SAFETY: lengths checked; partitions hold rows and slots in range.
        unsafe {
            combine_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                partition.argument()?,
                self.argument()?,
                self.operand.row_factors(client, self.sum)?,
                argument(output, "output", self.dtype, elements)?,
                partition.items(),
                cut,
                self.width,
                units,
                self.operand.scales.rows.is_some(),
                [self.dtype, self.sum],
            );
        }
        Ok(())
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_kernel<E: Float, S: Float>(
    parts: &[i32],
    partials: &[S],
    rows: &[S],
    output: &mut [E],
    items: usize,
    cut: usize,
    width: usize,
    units: usize,
    #[comptime] scaled: bool,
    #[define(E, S)] _dtypes: [ElemType; 2],
) {
    let mut position = ABSOLUTE_POS;
    if position >= units {
        position = cut * width;
    }
    while position < cut * width {
        let number = position / width;
        let column = position - number * width;
        let word = (items + number) * comptime!(ITEM_WORDS);
        let row = parts[word];
        if row < 0 {
            // No more rows were cut.
            position = cut * width;
        } else {
            let first = parts[word + 1] as usize;
            let slots = parts[word + 2] as usize;
            let mut sum = S::new(0.0);
            for slot in 0..slots {
                sum += partials[(first + slot) * width + column];
            }
            let row = row as usize;
            if comptime!(scaled) {
                sum *= rows[row];
            }
            output[row * width + column] = E::cast_from(sum);
            position += units;
        }
    }
}
