//! Selection over many cubes by histograms of ranges of keys, each the bin of the one before in which the kth key lies;
//! then members in index order. No count leaves the device, and nothing depends on the order in which cubes run.
//!
//! The first range is that of all keys there can be, so that bins are digits (radix selection), or that of the keys
//! there are (bucket selection).

use cubecl::prelude::*;

use super::crew::{Crew, Note, clear, tally};
use crate::primitives::team::TeamShape as Shape;
use crate::topk::{
    key::{Element, ordered_key},
    threshold::search::{Cursor, KeyRange},
};

/// Bits of a bin's number, and how many bins there are.
pub(crate) const DIGIT: u32 = 11;
pub(crate) const BINS: usize = 1 << DIGIT;
/// Neighbouring elements that a unit places at a time.
pub(crate) const ITEMS: u32 = 16;
/// Words of a note: its range, the keys above, one more than its shift, or zero where it is not open.
const WORDS: usize = 4;

/// A selection of the greatest keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RadixBlueprint {
    /// Bits of a key.
    pub bits: u32,
    pub largest: bool,
    /// Units of a cube, a power of two.
    pub shape: Shape,
}

impl RadixBlueprint {
    /// Histograms that any keys need.
    pub fn passes(&self) -> usize {
        self.bits.div_ceil(DIGIT) as usize
    }

    /// Counts of all histograms.
    pub fn bins(&self) -> usize {
        self.passes() * BINS
    }

    /// Keys of the notes before each histogram and after the last.
    pub fn notes(&self) -> usize {
        (self.passes() + 1) * WORDS
    }
}

/// Where notes of keys of so many bits hold the least key that a selection may have found.
pub(crate) fn noted_at(bits: u32) -> usize {
    bits.div_ceil(DIGIT) as usize * WORDS
}

/// How many elements there are, and how many of them are a cube's.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Extent {
    length: usize,
    stretch: usize,
}

#[cube]
impl Extent {
    /// As the host says, or fewer, as the device does.
    fn new(
        filled: ComptimeOption<&[u32]>,
        length: usize,
        stretch: usize,
        #[comptime] shape: Shape,
    ) -> Extent {
        #[comptime]
        match filled {
            ComptimeOption::Some(filled) => {
                let tile = comptime!((shape.lanes * ITEMS) as usize);
                let length = filled[0] as usize;
                Extent {
                    length,
                    stretch: length.div_ceil(CUBE_COUNT).div_ceil(tile) * tile,
                }
            }
            ComptimeOption::None => Extent { length, stretch },
        }
    }
}

/// Where the first range comes from, if it is not that of all keys there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Start {
    /// The least and the greatest key that each cube has seen.
    Ranges,
    /// What a selection noted: from the least that it found among some of the keys to the greatest of all.
    Notes,
}

/// What was noted before histogram `pass`.
#[cube]
fn noted<K: Int>(notes: &[K], #[comptime] pass: usize) -> Note<K> {
    let at = comptime!(pass * WORDS);
    let open = u32::cast_from(notes[comptime!(at + 3)]);
    Note::<K> {
        low: notes[at],
        high: notes[comptime!(at + 1)],
        above: u32::cast_from(notes[comptime!(at + 2)]),
        shift: select(open > 0, open, 1u32) - 1,
        open: open > 0,
    }
}

#[cube]
fn write_down<K: Int>(notes: &mut [K], note: &Note<K>, #[comptime] pass: usize) {
    if CUBE_POS == 0 && UNIT_POS == 0 {
        let at = comptime!(pass * WORDS);
        notes[at] = note.low;
        notes[comptime!(at + 1)] = note.high;
        notes[comptime!(at + 2)] = K::cast_from(note.above);
        notes[comptime!(at + 3)] = K::cast_from(select(note.open, note.shift + 1, 0u32));
    }
}

/// What is known before histogram `pass`, from the one before.
#[cube]
fn known<K: Int>(
    histograms: &[Atomic<u32>],
    notes: &mut [K],
    bins: &Shared<[Atomic<u32>]>,
    k: u32,
    crew: &Crew,
    #[comptime] pass: usize,
) -> Note<K> {
    let earlier = comptime!(pass - 1);
    let mut note = noted::<K>(&*notes, earlier);
    if note.open {
        let mut bin = UNIT_POS;
        while bin < comptime!(BINS as u32) {
            bins[bin as usize].store(histograms[comptime!(earlier * BINS) + bin as usize].load());
            bin += comptime!(crew.shape.lanes);
        }
        sync_cube();
        note.narrow(bins, k, crew, 0u32);
        sync_cube();
    }
    write_down::<K>(notes, &note, pass);
    note
}

/// The first note.
#[cube]
fn first<K: Int>(
    found: &[K],
    crew: &Crew,
    #[comptime] passes: usize,
    #[comptime] start: Start,
) -> Note<K> {
    match comptime!(start) {
        Start::Ranges => {
            let mut low = K::max_value();
            let mut high = K::min_value();
            let mut cube = UNIT_POS;
            while cube < CUBE_COUNT as u32 {
                low = min(low, found[2 * cube as usize]);
                high = max(high, found[2 * cube as usize + 1]);
                cube += comptime!(crew.shape.lanes);
            }
            let range = crew.range::<K>(low, high);
            Note::<K>::new(range.low, range.high)
        }
        Start::Notes => Note::<K>::new(found[comptime!(passes * WORDS)], found[1]),
    }
}

/// The greatest key of so many bits.
#[cube]
fn greatest<K: Int>(#[comptime] bits: u32) -> K {
    K::max_value()
        >> K::new(comptime!(i64::from(
            K::elem_type_native().size() as u32 * 8 - bits
        )))
}

/// The least and the greatest key that each cube sees, and histograms without counts.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_ranges<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    histograms: &[Atomic<u32>],
    ranges: &mut [E::Key],
    filled: ComptimeOption<&[u32]>,
    length: usize,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes);
    let crew = Crew::new(blueprint.shape);
    let length = Extent::new(filled, length, 0usize, blueprint.shape).length;
    let step = CUBE_COUNT * units as usize;
    let own = CUBE_POS * units as usize + UNIT_POS as usize;
    let mut bin = own;
    while bin < comptime!(blueprint.bins()) {
        histograms[bin].store(0u32);
        bin += step;
    }
    let loads = length / N::value().comptime();
    let mut low = E::Key::max_value();
    let mut high = E::Key::min_value();
    let mut at = own;
    while at < loads {
        let items = elements[at];
        #[unroll]
        for item in 0..N::value().comptime() {
            let key = ordered_key::<E>(items.extract(item), blueprint.largest);
            low = min(low, key);
            high = max(high, key);
        }
        at += step;
    }
    let range = crew.range::<E::Key>(low, high);
    if UNIT_POS == 0 {
        ranges[2 * CUBE_POS] = range.low;
        ranges[2 * CUBE_POS + 1] = range.high;
    }
}

/// Adds the keys of the range that is left to the histogram of `pass`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_digits<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    histograms: &[Atomic<u32>],
    notes: &mut [E::Key],
    found: ComptimeOption<&[E::Key]>,
    filled: ComptimeOption<&[u32]>,
    length: usize,
    k: u32,
    #[comptime] pass: usize,
    #[comptime] start: Start,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes);
    let crew = Crew::new(blueprint.shape);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let note = if comptime!(pass == 0) {
        let note = #[comptime]
        match found {
            ComptimeOption::Some(found) => first::<E::Key>(found, &crew, blueprint.passes(), start),
            ComptimeOption::None => {
                Note::<E::Key>::new(E::Key::min_value(), greatest::<E::Key>(blueprint.bits))
            }
        };
        write_down::<E::Key>(notes, &note, pass);
        note
    } else {
        known::<E::Key>(histograms, notes, &bins, k, &crew, pass)
    };
    if !note.open {
        terminate!();
    }
    clear(&bins, units);
    sync_cube();
    let range = KeyRange::<E::Key> {
        low: note.low,
        high: note.high,
    };
    let step = CUBE_COUNT * units as usize;
    let length = Extent::new(filled, length, 0usize, blueprint.shape).length;
    let loads = length / N::value().comptime();
    let mut at = CUBE_POS * units as usize + UNIT_POS as usize;
    while at < loads {
        let items = elements[at];
        #[unroll]
        for item in 0..N::value().comptime() {
            let key = ordered_key::<E>(items.extract(item), blueprint.largest);
            tally::<E::Key>(&bins, key, &range, note.shift);
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

/// How many elements of each cube's stretch are above the range that is left in the end, and how many within it.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn count_members<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    histograms: &[Atomic<u32>],
    notes: &mut [E::Key],
    counts: &mut [u32],
    filled: ComptimeOption<&[u32]>,
    length: usize,
    k: u32,
    stretch: usize,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes);
    let crew = Crew::new(blueprint.shape);
    let bins = Shared::<[Atomic<u32>]>::new_slice(BINS);
    let note = known::<E::Key>(histograms, notes, &bins, k, &crew, blueprint.passes());
    let per_load = N::value().comptime();
    let extent = Extent::new(filled, length, stretch, blueprint.shape);
    let stretch = extent.stretch;
    let end = min((CUBE_POS + 1) * stretch, extent.length) / per_load;
    let mut above = 0u32;
    let mut level = 0u32;
    let mut at = CUBE_POS * stretch / per_load + UNIT_POS as usize;
    while at < end {
        let items = elements[at];
        #[unroll]
        for item in 0..per_load {
            let key = ordered_key::<E>(items.extract(item), blueprint.largest);
            let better = key > note.high;
            above += select(better, 1u32, 0u32);
            level += select(key >= note.low && !better, 1u32, 0u32);
        }
        at += units as usize;
    }
    let above = crew.sums(above).total;
    let level = crew.sums(level).total;
    if UNIT_POS == 0 {
        counts[2 * CUBE_POS] = above;
        counts[2 * CUBE_POS + 1] = level;
    }
}

/// Places of the members in index order.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn list_members<E: Element, N: Size>(
    elements: &[Vector<E, N>],
    notes: &[E::Key],
    counts: &[u32],
    members: &mut [u32],
    filled: ComptimeOption<&[u32]>,
    length: usize,
    k: u32,
    stretch: usize,
    #[comptime] blueprint: RadixBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes);
    let crew = Crew::new(blueprint.shape);
    let threshold = noted::<E::Key>(notes, comptime!(blueprint.passes())).threshold();
    let quota = k - threshold.above;
    // What the cubes before this one have.
    let mut above = 0u32;
    let mut level = 0u32;
    let mut cube = UNIT_POS as usize;
    while cube < CUBE_POS {
        above += counts[2 * cube];
        level += counts[2 * cube + 1];
        cube += units as usize;
    }
    let mut above = crew.sums(above).total;
    let mut level = crew.sums(level).total;

    let extent = Extent::new(filled, length, stretch, blueprint.shape);
    let stretch = extent.stretch;
    let end = min((CUBE_POS + 1) * stretch, extent.length);
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
        // The last sums have been read.
        sync_cube();
        let sums = crew.sums(packed);
        if packed > 0 {
            let mut cursor = Cursor {
                above: above + (sums.before & 0xffff),
                level: level + (sums.before >> 16),
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
        above += sums.total & 0xffff;
        level += sums.total >> 16;
        tile += (units * ITEMS) as usize;
    }
}
