//! HEAD

use cubecl::prelude::*;

/// Entries of a part, about, if they are spread evenly over the columns.
const PART: u32 = 256;
/// Every column number is less than 2 to the power of this: one part.
pub(in crate::distance) const ONE_PART: u32 = 31;

/// The columns of a part of a row with so many entries, as a power of two. A sum over the columns of both rows of a pair has the
/// larger parts of the two, a sum over those of either the smaller.
#[cube]
pub(in crate::distance) fn part_bits(entries: u32, cols: u32) -> u32 {
    let parts = entries / PART;
    let mut bits = ONE_PART.runtime();
    if parts > 1 {
        bits = 31 - u32::leading_zeros(cols / parts);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_are_one_part() {
        assert_eq!(part_bits(0, 0), ONE_PART);
        assert_eq!(part_bits(511, 1 << 30), ONE_PART);
        assert!(part_bits(512, 1 << 30) < ONE_PART);
    }

    #[test]
    fn long_rows_have_parts_of_about_as_many_entries() {
        for cols in [512u32, 1000, 26_000, 1 << 20, i32::MAX as u32] {
            for entries in [512u32, 700, 1000, 26_000, 1 << 20, i32::MAX as u32] {
                if entries > cols {
                    continue;
                }
                let part = 1u64 << part_bits(entries, cols);
                let even = part * u64::from(entries) / u64::from(cols);
                assert!((128..384).contains(&even), "{entries} of {cols}: {even}");
            }
        }
    }
}
