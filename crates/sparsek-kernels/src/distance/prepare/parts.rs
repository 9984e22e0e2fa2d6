//! Long sums in parts of 2^n aligned columns, against rounding. A pair's rows alone decide n:
//! batches change no sum.

#[cfg(feature = "kernels")]
use cubecl::prelude::*;

const PART: u32 = 256;
/// Entries per sum, against rounding.
pub(in crate::distance) const NORM_BLOCK: usize = 64;
/// Columns are below 2^31.
pub(in crate::distance) const ONE_PART: u32 = 31;

/// log2 of a part's columns. Pairs take the greater for common columns, else the lesser.
#[cfg(feature = "kernels")]
#[cube]
pub(in crate::distance) fn part_bits(entries: u32, cols: u32) -> u32 {
    let parts = entries / PART;
    let mut bits = ONE_PART.runtime();
    if parts > 1 {
        bits = 31 - u32::leading_zeros(cols / parts);
    }
    bits
}

pub(in crate::distance) mod host {
    use super::{ONE_PART, PART};

    pub fn part_bits(entries: u32, cols: u32) -> u32 {
        match entries / PART {
            0 | 1 => ONE_PART,
            parts => (cols / parts).ilog2(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use rstest::rstest;

    use super::{ONE_PART, host::part_bits};

    #[rstest]
    #[case::empty(0, 0, Ordering::Equal)]
    #[case::short(511, 1 << 30, Ordering::Equal)]
    #[case::long(512, 1 << 30, Ordering::Less)]
    fn short_rows_are_one_part(
        #[case] entries: u32,
        #[case] cols: u32,
        #[case] against_one: Ordering,
    ) {
        assert_eq!(part_bits(entries, cols).cmp(&ONE_PART), against_one);
    }

    #[rstest]
    fn long_rows_have_parts_of_about_as_many_entries(
        #[values(512, 1000, 26_000, 1 << 20, i32::MAX as u32)] cols: u32,
    ) {
        for entries in [512u32, 700, 1000, 26_000, 1 << 20, i32::MAX as u32] {
            if entries > cols {
                continue;
            }
            #[cfg(feature = "kernels")]
            assert_eq!(part_bits(entries, cols), super::part_bits(entries, cols));
            let part = 1u64 << part_bits(entries, cols);
            let even = part * u64::from(entries) / u64::from(cols);
            assert!((128..384).contains(&even), "{entries}: {even}");
        }
    }
}
