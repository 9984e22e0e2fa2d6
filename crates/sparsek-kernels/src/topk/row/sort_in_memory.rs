//! Sorts selected elements by value, then index, if the routine did not. Up to [`MAX_RANKED`]:
//! ranks, k² comparisons. Above: [`radix_sort`](super::radix_sort); without planes, a bitonic
//! network in log²k launches.

use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{bounds::RowBounds, job::Job};
use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
    topk::{
        key::{Element, ordered_key, with_element},
        tuning::MAX_RANKED,
        types::Selected,
    },
};

/// Stable: input is in index order.
#[cube(launch_unchecked, address_type = "dynamic")]
fn rank_sort<E: Element, I: Numeric>(
    values: &[E],
    indices: &[I],
    bounds: &RowBounds,
    sorted_values: &mut [E],
    sorted_indices: &mut [I],
    total: usize,
    k: u32,
    #[comptime] largest: bool,
    #[define(I)] _index: ElemType,
) {
    let position = ABSOLUTE_POS;
    if position >= total {
        terminate!();
    }
    let row = position / k as usize;
    let start = row * k as usize;
    let own = (position - start) as u32;
    let value = values[position];
    let key = ordered_key::<E>(value, largest);
    let ragged = comptime!(bounds.ends.is_some());
    let selected = bounds.selected_count(row, k);
    let mut rank = 0u32;
    for other in 0..selected {
        let other_key = ordered_key::<E>(values[start + other as usize], largest);
        let precedes = other_key > key || (other_key == key && other < own);
        rank += select(precedes, 1u32, 0u32);
    }
    if comptime!(ragged) {
        rank = select(own < selected, rank, own);
    }
    sorted_values[start + rank as usize] = value;
    sorted_indices[start + rank as usize] = indices[position];
}

/// All exchanges point one way, so rows need no padding.
#[cube(launch_unchecked, address_type = "dynamic")]
fn bitonic_step<E: Element, I: Int>(
    values: &mut [E],
    indices: &mut [I],
    bounds: &RowBounds,
    rows: usize,
    k: u32,
    pairs: u32,
    distance: u32,
    flip: u32,
    #[comptime] largest: bool,
    #[define(I)] _index: ElemType,
) {
    let position = ABSOLUTE_POS;
    if position >= rows * pairs as usize {
        terminate!();
    }
    let row = position / pairs as usize;
    let pair = (position - row * pairs as usize) as u32;
    let block = pair / distance;
    let within = pair - block * distance;
    let first = block * 2 * distance + within;
    let second = if flip == 1 {
        block * 2 * distance + (2 * distance - 1 - within)
    } else {
        first + distance
    };
    if second < bounds.selected_count(row, k) {
        let a = row * k as usize + first as usize;
        let b = row * k as usize + second as usize;
        let value_a = values[a];
        let value_b = values[b];
        let key_a = ordered_key::<E>(value_a, largest);
        let key_b = ordered_key::<E>(value_b, largest);
        let index_a = indices[a];
        let index_b = indices[b];
        if key_b > key_a || (key_b == key_a && index_b < index_a) {
            values[a] = value_b;
            values[b] = value_a;
            indices[a] = index_b;
            indices[b] = index_a;
        }
    }
}

impl Job<'_> {
    pub fn order(&self, values: Handle, indices: Handle) -> Result<Selected, KernelError> {
        with_element!(self.input.dtype, E => self.sort::<E>(values, indices))
    }

    pub fn sort<E: Element>(
        &self,
        values: Handle,
        indices: Handle,
    ) -> Result<Selected, KernelError> {
        if self.options.k <= MAX_RANKED {
            return self.rank::<E>(&values, &indices);
        }
        if let Some(sorted) = self.radix_sort::<E>(&values, &indices)? {
            return Ok(sorted);
        }
        self.bitonic::<E>(&values, &indices)?;
        Ok(Selected { values, indices })
    }

    fn rank<E: Element>(&self, values: &Handle, indices: &Handle) -> Result<Selected, KernelError> {
        let total = self.selected();
        let sorted = Selected {
            values: allocate(self.client, "values", total, self.input.dtype)?,
            indices: allocate(self.client, "indices", total, self.index)?,
        };
        let grid = Grid::elementwise(self.client, total, total)?;
        // SAFETY: all buffers hold `total` elements; units past it leave.
        unsafe {
            rank_sort::launch_unchecked::<E>(
                self.client,
                grid.count,
                grid.dim,
                grid.address,
                argument(values, "values", self.input.dtype, total)?,
                argument(indices, "indices", self.index, total)?,
                self.input.bounds_argument()?,
                argument(&sorted.values, "values", self.input.dtype, total)?,
                argument(&sorted.indices, "indices", self.index, total)?,
                total,
                self.options.k as u32,
                self.options.largest,
                self.index,
            );
        }
        Ok(sorted)
    }

    fn bitonic<E: Element>(&self, values: &Handle, indices: &Handle) -> Result<(), KernelError> {
        let total = self.selected();
        let k = self.options.k as u32;
        let padded = k.next_power_of_two();
        let pairs = padded / 2;
        let step = |distance: u32, flip: bool| -> Result<(), KernelError> {
            let units = self.input.rows * pairs as usize;
            let grid = Grid::elementwise(self.client, units, total.max(units))?;
            // SAFETY: both buffers hold `total` elements; partners past the row are skipped.
            unsafe {
                bitonic_step::launch_unchecked::<E>(
                    self.client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    argument(values, "values", self.input.dtype, total)?,
                    argument(indices, "indices", self.index, total)?,
                    self.input.bounds_argument()?,
                    self.input.rows,
                    k,
                    pairs,
                    distance,
                    u32::from(flip),
                    self.options.largest,
                    self.index,
                );
            }
            Ok(())
        };
        let mut block = 1;
        while block < padded {
            step(block, true)?;
            let mut distance = block / 2;
            while distance > 0 {
                step(distance, false)?;
                distance /= 2;
            }
            block *= 2;
        }
        Ok(())
    }
}
