//! Searches in the offsets of a CSR matrix.

use cubecl::prelude::*;

/// The last row whose offset is at most `entry`.
#[cube]
pub(crate) fn row_of(indptr: &[i32], rows: u32, entry: i32) -> u32 {
    let mut low = 0u32;
    let mut high = rows;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if indptr[middle as usize] <= entry {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
