use cubecl::prelude::*;

/// Last row with offset ≤ `entry`.
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

/// First place in `from..to` holding ≥ `number`, else `to`.
#[cube]
pub(crate) fn first_from(ascending: &[i32], from: i32, to: i32, number: i32) -> i32 {
    let mut low = from;
    let mut high = to;
    while low < high {
        let middle = low + (high - low) / 2;
        if ascending[middle as usize] < number {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
