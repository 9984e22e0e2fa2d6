//! Key threshold of one cube, by histograms in shared memory.
//!
//! ```text
//! range <- all possible keys (radix) or the keys present (bucket); above <- 0
//! until keys in range are equal or all selected:
//!     count keys in range by (key - range.low) >> shift, in 2^11 bins
//!     range <- bin of the (k - above)th greatest; above += keys beyond
//! select keys above range, then the first k - above in range
//! ```

use cubecl::prelude::*;

use super::{
    cube_reduce::CubeReduce,
    search::{KeyRange, Threshold},
};
use crate::topk::key::PLUS_INF;

pub(crate) const DIGIT_BITS: u32 = 11;
pub(crate) const BINS: usize = 1 << DIGIT_BITS;

#[cube]
pub(crate) trait KeySet<K: Int>: CubeType {
    fn count_keys(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<K>, shift: u32);
}

#[cube]
pub(crate) fn key_range<K: Int>(low: K, high: K) -> KeyRange<K> {
    KeyRange::<K> { low, high }
}

#[cube]
pub(crate) fn count_key<K: Int>(
    bins: &Shared<[Atomic<u32>]>,
    key: K,
    range: &KeyRange<K>,
    shift: u32,
) {
    if key >= range.low && key <= range.high {
        let bin = u32::cast_from((key - range.low) >> K::cast_from(shift));
        bins[bin as usize].fetch_add(1u32);
    }
}

/// The kth greatest key is in `low..=high`; `above` keys are greater.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct SearchState<K: Int> {
    pub low: K,
    pub high: K,
    pub above: u32,
    /// Low bits that bins ignore.
    pub shift: u32,
    /// If closed, keys in range are equal or all selected; an empty range selects all above.
    pub open: bool,
}

#[cube]
impl<K: Int> SearchState<K> {
    pub fn new(low: K, high: K) -> SearchState<K> {
        let bits = comptime!(K::elem_type_native().size() as u32 * 8);
        let digits = bits - u32::cast_from((high - low).leading_zeros());
        SearchState::<K> {
            low,
            high,
            above: 0u32,
            shift: select(digits > DIGIT_BITS, digits - DIGIT_BITS, 0u32),
            open: low < high,
        }
    }

    /// Moves to the kth key's bin; clears bins.
    pub fn advance(
        &mut self,
        bins: &Shared<[Atomic<u32>]>,
        k: u32,
        reduce: &CubeReduce,
        #[comptime] spacing: u32,
    ) {
        // 16 bytes: compilers read neighbors of unaligned arrays.
        let mut found = Shared::<[u32]>::new_slice(4usize);
        let bins_per_unit = comptime!(BINS as u32 / reduce.shape.lanes);
        let last = comptime!(BINS as u32 - 1);
        let first = UNIT_POS * bins_per_unit;
        let wanted = k - self.above;
        let mut own = 0u32;
        for bin in 0..bins_per_unit {
            own += bins[(last - (first + bin)) as usize].load();
        }
        let mut passed = reduce.prefix_sum(own).before;
        if passed < wanted && wanted <= passed + own {
            let mut bin = last - first;
            let mut count = bins[bin as usize].load();
            while passed + count < wanted {
                passed += count;
                bin -= 1;
                count = bins[bin as usize].load();
            }
            found[0] = bin;
            found[1] = passed;
            found[2] = count;
        }
        for bin in 0..bins_per_unit {
            bins[(last - (first + bin)) as usize].store(0u32);
        }
        sync_cube();
        let low = self.low + (K::cast_from(found[0]) << K::cast_from(self.shift));
        let width = (K::new(1) << K::cast_from(self.shift)) - K::new(1);
        let high = select(self.high - low > width, low + width, self.high);
        let all = found[2] + found[1] == wanted;
        let mut equal = self.shift == 0;
        if comptime!(spacing > 0) {
            let finite = high < K::cast_from(PLUS_INF) && low > !K::cast_from(PLUS_INF);
            equal = equal || (self.shift <= spacing && finite);
        }
        let reached = all && low > K::new(0);
        self.low = low;
        self.high = select(reached, low - K::new(1), high);
        self.above = select(reached, k, self.above + found[1]);
        self.shift = select(self.shift > DIGIT_BITS, self.shift - DIGIT_BITS, 0u32);
        self.open = !equal && !all;
    }

    pub fn threshold(&self) -> Threshold<K> {
        Threshold::<K> { low: self.low, high: self.high, above: self.above }
    }
}

#[cube]
pub(crate) fn clear_bins(bins: &Shared<[Atomic<u32>]>, #[comptime] units: u32) {
    let mut bin = UNIT_POS;
    while bin < comptime!(BINS as u32) {
        bins[bin as usize].store(0u32);
        bin += units;
    }
}

/// Needs `k` keys within `all`, none above, and clear bins.
#[cube]
pub(crate) fn histogram_threshold<K: Int, S: KeySet<K>>(
    keys: &S,
    all: &KeyRange<K>,
    k: u32,
    bins: &Shared<[Atomic<u32>]>,
    reduce: &CubeReduce,
    #[comptime] spacing: u32,
) -> Threshold<K> {
    let mut state = SearchState::<K>::new(all.low, all.high);
    while state.open {
        let range = KeyRange::<K> { low: state.low, high: state.high };
        keys.count_keys(bins, &range, state.shift);
        sync_cube();
        state.advance(bins, k, reduce, spacing);
    }
    state.threshold()
}
