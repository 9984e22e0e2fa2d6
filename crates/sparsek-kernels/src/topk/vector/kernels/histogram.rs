//! Radix and bucket selection by histograms of many cubes (Section 5.1).
//!
//! As [`threshold::histogram`](crate::topk::threshold::histogram), a launch per pass: radix begins
//! with all possible keys, bucket with the keys present. Two more count and write in index order.
//! No count returns to the host.

use cubecl::prelude::*;

use crate::{
    primitives::team::TeamShape,
    topk::{
        key::{Element, ordered_key},
        threshold::{
            cube_reduce::CubeReduce,
            histogram::{BINS, DIGIT_BITS, SearchState, clear_bins, count_key},
            search::{Cursor, KeyRange},
        },
        vector::tuning::HISTOGRAM_ITEMS,
    },
};

/// Low, high, above, shift + 1 or zero if closed.
const STATE_WORDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HistogramConfig {
    /// 16 for short keys.
    pub bits: u32,
    pub largest: bool,
    pub shape: TeamShape,
}

impl HistogramConfig {
    pub fn passes(&self) -> usize {
        self.bits.div_ceil(DIGIT_BITS) as usize
    }

    pub fn bins(&self) -> usize {
        self.passes() * BINS
    }

    pub fn states(&self) -> usize {
        (self.passes() + 1) * STATE_WORDS
    }
}

pub(crate) fn final_state_at(bits: u32) -> usize {
    bits.div_ceil(DIGIT_BITS) as usize * STATE_WORDS
}

#[derive(CubeType, CubeLaunch)]
pub(crate) struct HistogramCall<E: Element, N: Size> {
    elements: &'static [Vector<E, N>],
    filled: ComptimeOption<&'static [u32]>,
    length: usize,
    per_cube: usize,
    k: u32,
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Extent {
    length: usize,
    per_cube: usize,
}

#[cube]
impl<E: Element, N: Size> HistogramCall<E, N> {
    fn extent(&self, #[comptime] shape: TeamShape) -> Extent {
        let filled = self.filled;
        #[comptime]
        match filled {
            ComptimeOption::Some(filled) => {
                let tile = comptime!((shape.lanes * HISTOGRAM_ITEMS) as usize);
                let length = filled[0] as usize;
                Extent { length, per_cube: length.div_ceil(CUBE_COUNT).div_ceil(tile) * tile }
            }
            ComptimeOption::None => Extent { length: self.length, per_cube: self.per_cube },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Start {
    CubeRanges,
    FirstTopk,
}

#[cube]
fn read_state<K: Int>(states: &[K], #[comptime] pass: usize) -> SearchState<K> {
    let at = comptime!(pass * STATE_WORDS);
    let open = u32::cast_from(states[comptime!(at + 3)]);
    SearchState::<K> {
        low: states[at],
        high: states[comptime!(at + 1)],
        above: u32::cast_from(states[comptime!(at + 2)]),
        shift: select(open > 0, open, 1u32) - 1,
        open: open > 0,
    }
}

#[cube]
fn write_state<K: Int>(states: &mut [K], state: &SearchState<K>, #[comptime] pass: usize) {
    if CUBE_POS == 0 && UNIT_POS == 0 {
        let at = comptime!(pass * STATE_WORDS);
        states[at] = state.low;
        states[comptime!(at + 1)] = state.high;
        states[comptime!(at + 2)] = K::cast_from(state.above);
        states[comptime!(at + 3)] = K::cast_from(select(state.open, state.shift + 1, 0u32));
    }
}

#[cube]
fn advance_state<K: Int>(
    histograms: &[Atomic<u32>],
    states: &mut [K],
    bins: &Shared<[Atomic<u32>]>,
    k: u32,
    reduce: &CubeReduce,
    #[comptime] pass: usize,
) -> SearchState<K> {
    let earlier = comptime!(pass - 1);
    let mut state = read_state::<K>(&*states, earlier);
    if state.open {
        let mut bin = UNIT_POS;
        while bin < comptime!(BINS as u32) {
            bins[bin as usize].store(histograms[comptime!(earlier * BINS) + bin as usize].load());
            bin += comptime!(reduce.shape.lanes);
        }
        sync_cube();
        state.advance(bins, k, reduce, 0u32);
        sync_cube();
    }
    write_state::<K>(states, &state, pass);
    state
}

#[cube]
fn initial_state<K: Int>(
    start_keys: &[K],
    reduce: &CubeReduce,
    #[comptime] passes: usize,
    #[comptime] start: Start,
) -> SearchState<K> {
    match comptime!(start) {
        Start::CubeRanges => {
            let mut low = K::max_value();
            let mut high = K::min_value();
            let mut cube = UNIT_POS;
            while cube < CUBE_COUNT as u32 {
                low = min(low, start_keys[2 * cube as usize]);
                high = max(high, start_keys[2 * cube as usize + 1]);
                cube += comptime!(reduce.shape.lanes);
            }
            let range = reduce.range::<K>(low, high);
            SearchState::<K>::new(range.low, range.high)
        }
        Start::FirstTopk => {
            SearchState::<K>::new(start_keys[comptime!(passes * STATE_WORDS)], start_keys[1])
        }
    }
}

#[cube]
fn greatest_key<K: Int>(#[comptime] bits: u32) -> K {
    K::max_value() >> K::new(comptime!(i64::from(K::elem_type_native().size() as u32 * 8 - bits)))
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_key_ranges<E: Element, N: Size>(
    call: &HistogramCall<E, N>,
    histograms: &[Atomic<u32>],
    ranges: &mut [E::Key],
    #[comptime] config: HistogramConfig,
) {
    let units = comptime!(config.shape.lanes);
    let reduce = CubeReduce::new(config.shape);
    let length = call.extent(config.shape).length;
    let step = CUBE_COUNT * units as usize;
    let own = CUBE_POS * units as usize + UNIT_POS as usize;
    let mut bin = own;
    while bin < comptime!(config.bins()) {
        histograms[bin].store(0u32);
        bin += step;
    }
    let loads = length / N::value().comptime();
    let mut low = E::Key::max_value();
    let mut high = E::Key::min_value();
    let mut at = own;
    while at < loads {
        let items = call.elements[at];
        #[unroll]
        for item in 0..N::value().comptime() {
            let key = ordered_key::<E>(items.extract(item), config.largest);
            low = min(low, key);
            high = max(high, key);
        }
        at += step;
    }
    let range = reduce.range::<E::Key>(low, high);
    if UNIT_POS == 0 {
        ranges[2 * CUBE_POS] = range.low;
        ranges[2 * CUBE_POS + 1] = range.high;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_bins<E: Element, N: Size>(
    call: &HistogramCall<E, N>,
    histograms: &[Atomic<u32>],
    states: &mut [E::Key],
    start_keys: ComptimeOption<&[E::Key]>,
    #[comptime] pass: usize,
    // The kernel cache ignores which optional arguments exist.
    #[comptime] start: Option<Start>,
    #[comptime] config: HistogramConfig,
) {
    let units = comptime!(config.shape.lanes);
    let reduce = CubeReduce::new(config.shape);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let state = if comptime!(pass == 0) {
        let state = #[comptime]
        match start_keys {
            ComptimeOption::Some(start_keys) => {
                let start = comptime!(start.expect("with start keys"));
                initial_state::<E::Key>(start_keys, &reduce, config.passes(), start)
            }
            ComptimeOption::None => {
                SearchState::<E::Key>::new(E::Key::min_value(), greatest_key::<E::Key>(config.bits))
            }
        };
        write_state::<E::Key>(states, &state, pass);
        state
    } else {
        advance_state::<E::Key>(histograms, states, &bins, call.k, &reduce, pass)
    };
    if !state.open {
        terminate!();
    }
    clear_bins(&bins, units);
    sync_cube();
    let range = KeyRange::<E::Key> { low: state.low, high: state.high };
    let step = CUBE_COUNT * units as usize;
    let length = call.extent(config.shape).length;
    let loads = length / N::value().comptime();
    let mut at = CUBE_POS * units as usize + UNIT_POS as usize;
    while at < loads {
        let items = call.elements[at];
        #[unroll]
        for item in 0..N::value().comptime() {
            let key = ordered_key::<E>(items.extract(item), config.largest);
            count_key::<E::Key>(&bins, key, &range, state.shift);
        }
        at += step;
    }
    sync_cube();
    let mut bin = UNIT_POS;
    while bin < comptime!(BINS as u32) {
        let count = bins[bin as usize].load();
        if count > 0 {
            histograms[comptime!(pass * BINS) + bin as usize].fetch_add(count);
        }
        bin += units;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_selected<E: Element, N: Size>(
    call: &HistogramCall<E, N>,
    histograms: &[Atomic<u32>],
    states: &mut [E::Key],
    counts: &mut [u32],
    #[comptime] config: HistogramConfig,
) {
    let units = comptime!(config.shape.lanes);
    let reduce = CubeReduce::new(config.shape);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let state =
        advance_state::<E::Key>(histograms, states, &bins, call.k, &reduce, config.passes());
    let per_load = N::value().comptime();
    let extent = call.extent(config.shape);
    let per_cube = extent.per_cube;
    let end = min((CUBE_POS + 1) * per_cube, extent.length) / per_load;
    let mut above = 0u32;
    let mut level = 0u32;
    let mut at = CUBE_POS * per_cube / per_load + UNIT_POS as usize;
    while at < end {
        let items = call.elements[at];
        #[unroll]
        for item in 0..per_load {
            let key = ordered_key::<E>(items.extract(item), config.largest);
            let better = key > state.high;
            above += select(better, 1u32, 0u32);
            level += select(key >= state.low && !better, 1u32, 0u32);
        }
        at += units as usize;
    }
    let above = reduce.prefix_sum(above).total;
    let level = reduce.prefix_sum(level).total;
    if UNIT_POS == 0 {
        counts[2 * CUBE_POS] = above;
        counts[2 * CUBE_POS + 1] = level;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn list_selected<E: Element, N: Size>(
    call: &HistogramCall<E, N>,
    states: &[E::Key],
    counts: &[u32],
    selected: &mut [u32],
    #[comptime] config: HistogramConfig,
) {
    let units = comptime!(config.shape.lanes);
    let reduce = CubeReduce::new(config.shape);
    let threshold = read_state::<E::Key>(states, comptime!(config.passes())).threshold();
    let quota = call.k - threshold.above;
    let mut above = 0u32;
    let mut level = 0u32;
    let mut cube = UNIT_POS as usize;
    while cube < CUBE_POS {
        above += counts[2 * cube];
        level += counts[2 * cube + 1];
        cube += units as usize;
    }
    let above = reduce.prefix_sum(above).total;
    let mut totals = Cursor { above, level: reduce.prefix_sum(level).total };

    let extent = call.extent(config.shape);
    let per_cube = extent.per_cube;
    let end = min((CUBE_POS + 1) * per_cube, extent.length);
    let mut tile = CUBE_POS * per_cube;
    while tile < end {
        // Counts ≤ 2^14 fit 16 bits.
        let first = tile + (UNIT_POS * HISTOGRAM_ITEMS) as usize;
        let per_load = N::value().comptime();
        let mut own = Cursor { above: 0, level: 0 };
        #[unroll]
        for load in 0..comptime!(HISTOGRAM_ITEMS as usize / per_load) {
            let at = first + comptime!(load * per_load);
            if at < end {
                let items = call.elements[at / per_load];
                #[unroll]
                for item in 0..per_load {
                    let key = ordered_key::<E>(items.extract(item), config.largest);
                    own.place::<E::Key>(key, &threshold, quota);
                }
            }
        }
        let packed = own.packed();
        sync_cube();
        let sums = reduce.prefix_sum(packed);
        if packed > 0 {
            let mut cursor = totals.after(sums.before);
            for load in 0..comptime!(HISTOGRAM_ITEMS / per_load as u32) {
                let at = first + load as usize * per_load;
                if at < end {
                    let items = call.elements[at / per_load];
                    #[unroll]
                    for item in 0..per_load {
                        let key = ordered_key::<E>(items.extract(item), config.largest);
                        let place = cursor.place::<E::Key>(key, &threshold, quota);
                        if place.member {
                            selected[place.position as usize] =
                                u32::cast_from(at + comptime!(item));
                        }
                    }
                }
            }
        }
        totals.skip(sums.total);
        tile += (units * HISTOGRAM_ITEMS) as usize;
    }
}
