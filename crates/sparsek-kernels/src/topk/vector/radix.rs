//! Radix selection over many cubes: histograms of digits from the highest on, then members in index order. No count
//! leaves the device, and nothing depends on the order in which cubes run.

use cubecl::prelude::*;

use crate::topk::{
    element::{Element, ordered_key},
    routines::cube::scan,
    search::{Cursor, Threshold},
};

/// Bits of a digit, and its values.
pub(crate) const DIGIT: u32 = 11;
pub(crate) const BINS: usize = 1 << DIGIT;
/// Neighbouring elements that a unit places at a time.
pub(crate) const ITEMS: u32 = 16;

/// A selection of the greatest keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RadixBlueprint {
    /// Bits of a key.
    pub bits: u32,
    pub largest: bool,
    /// Units of a cube, a power of two.
    pub units: u32,
}

impl RadixBlueprint {
    /// Digits of a key.
    pub fn passes(&self) -> usize {
        self.bits.div_ceil(DIGIT) as usize
    }

    /// Words that hold all histograms, then what was found in each.
    pub fn state(&self) -> usize {
        self.passes() * (BINS + 2)
    }

    /// Bits below a digit.
    fn shift(&self, pass: usize) -> u32 {
        self.bits.saturating_sub(DIGIT * (pass as u32 + 1))
    }

    /// Bits of a digit; the last may have fewer.
    fn width(&self, pass: usize) -> u32 {
        DIGIT.min(self.bits - DIGIT * pass as u32)
    }
}

/// The digit of the kth key, and how many of those with it are wanted.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Crossing {
    digit: u32,
    wanted: u32,
}

/// The digit in whose bin the `wanted`th greatest lies.
#[cube]
fn crossing(
    state: &[Atomic<u32>],
    wanted: u32,
    #[comptime] pass: usize,
    #[comptime] blueprint: RadixBlueprint,
) -> Crossing {
    let units = comptime!(blueprint.units);
    let mut sums = Shared::<[u32]>::new_slice(units as usize);
    let mut found = Shared::<[u32]>::new_slice(2usize);
    // The greatest digits first.
    let bins = comptime!(BINS as u32 / units);
    let last = comptime!(pass * BINS + BINS - 1);
    let first = UNIT_POS * bins;
    let mut own = 0u32;
    for bin in 0..bins {
        own += state[last - (first + bin) as usize].load();
    }
    scan(&mut sums, own, units);
    let mut above = sums[UNIT_POS as usize] - own;
    if above < wanted && wanted <= above + own {
        let mut bin = first;
        let mut count = state[last - bin as usize].load();
        while above + count < wanted {
            above += count;
            bin += 1;
            count = state[last - bin as usize].load();
        }
        found[0] = comptime!(BINS as u32 - 1) - bin;
        found[1] = wanted - above;
    }
    sync_cube();
    Crossing {
        digit: found[0],
        wanted: found[1],
    }
}

/// The highest digits of the kth key: those found before `pass`, the last of them by this cube.
#[cube]
fn prefix<K: Int>(
    state: &[Atomic<u32>],
    k: u32,
    #[comptime] pass: usize,
    #[comptime] blueprint: RadixBlueprint,
) -> K {
    let mut key = K::new(0);
    if comptime!(pass > 0) {
        let mut wanted = k;
        let notes = comptime!(blueprint.passes() * BINS);
        #[unroll]
        for earlier in 0..comptime!(pass - 1) {
            let digit = state[comptime!(notes + 2 * earlier)].load();
            key = (key << K::cast_from(comptime!(blueprint.width(earlier)))) | K::cast_from(digit);
            wanted = state[comptime!(notes + 2 * earlier + 1)].load();
        }
        let own = comptime!(pass - 1);
        let found = crossing(state, wanted, own, blueprint);
        key = (key << K::cast_from(comptime!(blueprint.width(own)))) | K::cast_from(found.digit);
        if CUBE_POS == 0 && UNIT_POS == 0 {
            state[comptime!(notes + 2 * own)].store(found.digit);
            state[comptime!(notes + 2 * own + 1)].store(found.wanted);
        }
    }
    key
}

/// Adds the digits of the keys that begin with the digits found so far to the histogram of `pass`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_digits<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    state: &[Atomic<u32>],
    length: usize,
    k: u32,
    #[comptime] pass: usize,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.units);
    let counts = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let mut bin = UNIT_POS;
    while bin < comptime!(BINS as u32) {
        counts[bin as usize].store(0u32);
        bin += units;
    }
    let begun = prefix::<E::Key>(state, k, pass, blueprint);
    sync_cube();
    let shift = comptime!(blueprint.shift(pass));
    let width = comptime!(blueprint.width(pass));
    let mask = comptime!((1u32 << width) - 1);
    let step = CUBE_COUNT * units as usize;
    let loads = length / N::value().comptime();
    let mut at = CUBE_POS * units as usize + UNIT_POS as usize;
    while at < loads {
        let items = elements[at];
        #[unroll]
        for item in 0..N::value().comptime() {
            let key = ordered_key::<E>(items.extract(item), blueprint.largest);
            let member = if comptime!(pass > 0) {
                key >> E::Key::cast_from(comptime!(shift + width)) == begun
            } else {
                true.runtime()
            };
            if member {
                let digit = u32::cast_from(key >> E::Key::cast_from(shift)) & mask;
                counts[digit as usize].fetch_add(1u32);
            }
        }
        at += step;
    }
    sync_cube();
    let mut bin = UNIT_POS;
    while bin < comptime!(BINS as u32) {
        let count = counts[bin as usize].load();
        if count > 0 {
            state[comptime!(pass * BINS) + bin as usize].fetch_add(count);
        }
        bin += units;
    }
}

/// How many elements of each cube's stretch are above the kth key, and how many equal it.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_members<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    state: &[Atomic<u32>],
    counts: &mut [u32],
    length: usize,
    k: u32,
    stretch: usize,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.units);
    let found = prefix::<E::Key>(state, k, comptime!(blueprint.passes()), blueprint);
    let per_load = N::value().comptime();
    let end = min((CUBE_POS + 1) * stretch, length) / per_load;
    let mut above = 0u32;
    let mut level = 0u32;
    let mut at = CUBE_POS * stretch / per_load + UNIT_POS as usize;
    while at < end {
        let items = elements[at];
        #[unroll]
        for item in 0..per_load {
            let key = ordered_key::<E>(items.extract(item), blueprint.largest);
            above += select(key > found, 1u32, 0u32);
            level += select(key == found, 1u32, 0u32);
        }
        at += units as usize;
    }
    let mut sums = Shared::<[u32]>::new_slice(units as usize);
    scan(&mut sums, above, units);
    let above = sums[comptime!(units as usize - 1)];
    scan(&mut sums, level, units);
    let level = sums[comptime!(units as usize - 1)];
    if UNIT_POS == 0 {
        counts[2 * CUBE_POS] = above;
        counts[2 * CUBE_POS + 1] = level;
    }
}

/// Places of the members in index order.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn list_members<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    state: &[Atomic<u32>],
    counts: &[u32],
    members: &mut [u32],
    length: usize,
    stretch: usize,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.units);
    let notes = comptime!(blueprint.passes() * BINS);
    let mut key = E::Key::new(0);
    let mut quota = 0u32;
    #[unroll]
    for pass in 0..comptime!(blueprint.passes()) {
        let digit = state[comptime!(notes + 2 * pass)].load();
        key =
            (key << E::Key::cast_from(comptime!(blueprint.width(pass)))) | E::Key::cast_from(digit);
        quota = state[comptime!(notes + 2 * pass + 1)].load();
    }
    let threshold = Threshold::<E::Key> {
        low: key,
        high: key,
        above: 0u32,
    };
    // What the cubes before this one have.
    let mut above = 0u32;
    let mut level = 0u32;
    let mut cube = UNIT_POS as usize;
    while cube < CUBE_POS {
        above += counts[2 * cube];
        level += counts[2 * cube + 1];
        cube += units as usize;
    }
    let mut sums = Shared::<[u32]>::new_slice(units as usize);
    scan(&mut sums, above, units);
    let mut above = sums[comptime!(units as usize - 1)];
    scan(&mut sums, level, units);
    let mut level = sums[comptime!(units as usize - 1)];

    let end = min((CUBE_POS + 1) * stretch, length);
    let mut tile = CUBE_POS * stretch;
    while tile < end {
        // A tile holds at most 1024 x 16 elements, so both counts fit in 16 bits.
        let first = tile + (UNIT_POS * ITEMS) as usize;
        let per_load = N::value().comptime();
        let mut own = Cursor { above: 0, level: 0 };
        #[unroll]
        for load in 0..comptime!(ITEMS as usize / per_load) {
            let at = first + comptime!(load * per_load);
            if at < end {
                let items = elements[at / per_load];
                #[unroll]
                for item in 0..per_load {
                    let key = ordered_key::<E>(items.extract(item), blueprint.largest);
                    own.place::<E::Key>(key, &threshold, quota);
                }
            }
        }
        let packed = own.above + (own.level << 16);
        scan(&mut sums, packed, units);
        let before = sums[UNIT_POS as usize] - packed;
        let total = sums[comptime!(units as usize - 1)];
        if packed > 0 {
            let mut cursor = Cursor {
                above: above + (before & 0xffff),
                level: level + (before >> 16),
            };
            for load in 0..comptime!(ITEMS / per_load as u32) {
                let at = first + load as usize * per_load;
                if at < end {
                    let items = elements[at / per_load];
                    #[unroll]
                    for item in 0..per_load {
                        let key = ordered_key::<E>(items.extract(item), blueprint.largest);
                        let place = cursor.place::<E::Key>(key, &threshold, quota);
                        if place.member {
                            members[place.position as usize] = u32::cast_from(at + comptime!(item));
                        }
                    }
                }
            }
        }
        above += total & 0xffff;
        level += total >> 16;
        tile += (units * ITEMS) as usize;
    }
}
