//! Products with compressed rows without planes or shared memory: a unit for each element of an item looks for its column in every entry.

use cubecl::{ir::ElemType, prelude::*};

use crate::aggregate::{
    entries::{Entries, Factors, row_factor},
    partition::Item,
};

/// A unit for each element of an item.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "two matrices, one with its factors"
)]
pub(super) fn unit_kernel<E: Float, S: Float, I: Numeric>(
    parts: &[i32],
    indices: &[i32],
    weights: &[E],
    entries: &[i32],
    rows: &[S],
    cols: &[S],
    values: &[E],
    columns: &[I],
    output: &mut [E],
    partials: &mut [S],
    items: usize,
    k: u32,
    width: usize,
    #[comptime] factors: Factors,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    let number = ABSOLUTE_POS / width;
    let place = ABSOLUTE_POS - number * width;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    if item.row < 0 {
        terminate!();
    }
    let source = Entries::<E, S>::new(indices, weights, entries, cols, factors);
    let mut sum = S::new(0.0);
    let mut entry = item.start;
    while entry < item.end {
        let column = source.column(entry);
        let start = column * k as usize;
        // The last of the columns that is not after this one.
        let mut low = 0u32;
        let mut high = k;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if usize::cast_from(columns[start + middle as usize]) <= place {
                low = middle;
            } else {
                high = middle;
            }
        }
        if usize::cast_from(columns[start + low as usize]) == place {
            sum += source.factor(entry, column) * S::cast_from(values[start + low as usize]);
        }
        entry += 1;
    }
    let row = item.row as usize;
    if item.slot < 0 {
        output[row * width + place] = E::cast_from(sum * row_factor::<S>(rows, row, factors));
    } else {
        partials[item.slot as usize * width + place] = sum;
    }
}
