//! All units of a cube at work on one set of keys: sums, extremes, and the search for the kth greatest by histograms of
//! the range that is left.

use cubecl::prelude::*;

use super::radix::{BINS, DIGIT};
use crate::primitives::team::{Team, TeamShape as Shape};
use crate::topk::{
    key::PLUS_INF,
    threshold::search::{KeyRange, Threshold},
};

/// The units of a cube, in planes; in planes of one where the device has none.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Crew {
    team: Team,
    #[cube(comptime)]
    pub shape: Shape,
}

/// The sum of the units before this one, and of all.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Sums {
    pub before: u32,
    pub total: u32,
}

/// Whether a plane has a lane for each plane of the cube.
fn of_a_lane_each(shape: Shape) -> bool {
    shape.plane_lanes() > 1 && shape.planes <= shape.plane_lanes()
}

#[cube]
impl Crew {
    pub fn new(#[comptime] shape: Shape) -> Crew {
        Crew {
            team: Team::new(0u32, comptime!(shape.of_a_plane())),
            shape,
        }
    }

    /// A value of each plane, for all to see. Each place in a kernel that calls this has slots of its own; one that does so again needs a
    /// barrier before.
    fn exchange<T: Numeric>(&self, value: T) -> Shared<[T]> {
        let mut slots = Shared::<[T]>::new_slice(comptime!(self.shape.planes as usize));
        if UNIT_POS_X == comptime!(self.shape.plane_lanes() - 1) {
            slots[UNIT_POS_Y as usize] = value;
        }
        sync_cube();
        slots
    }

    /// Every unit must call it, as all that follow; after a barrier, where it does so again.
    pub fn sums(&self, value: u32) -> Sums {
        let through = self.team.running_sum(value);
        let slots = self.exchange::<u32>(through);
        let planes = comptime!(self.shape.planes);
        let mut before = through - value;
        let mut total = 0u32;
        if comptime!(of_a_lane_each(self.shape)) {
            let lane = self.team.lane;
            let sum = select(lane < planes, slots[self.others()], 0u32);
            let sums = self.team.running_sum(sum);
            before += plane_shuffle(sums - sum, UNIT_POS_Y);
            total = plane_shuffle(sums, comptime!(planes - 1));
        } else {
            for plane in 0..planes {
                let sum = slots[plane as usize];
                before += select(plane < UNIT_POS_Y, sum, 0u32);
                total += sum;
            }
        }
        Sums { before, total }
    }

    /// The least and the greatest of the units' ranges.
    pub fn range<K: Int>(&self, low: K, high: K) -> KeyRange<K> {
        let mut low = self.team.min::<K>(low);
        let mut high = self.team.max::<K>(high);
        let lows = self.exchange::<K>(low);
        let highs = self.exchange::<K>(high);
        if comptime!(of_a_lane_each(self.shape)) {
            low = self.team.min::<K>(lows[self.others()]);
            high = self.team.max::<K>(highs[self.others()]);
        } else {
            for plane in 0..comptime!(self.shape.planes) {
                low = min(low, lows[plane as usize]);
                high = max(high, highs[plane as usize]);
            }
        }
        KeyRange::<K> { low, high }
    }

    /// The greatest of the units' keys.
    pub fn max<K: Int>(&self, key: K) -> K {
        let own = self.team.max::<K>(key);
        let others = self.exchange::<K>(own);
        let mut greatest = own;
        if comptime!(of_a_lane_each(self.shape)) {
            greatest = self.team.max::<K>(others[self.others()]);
        } else {
            for plane in 0..comptime!(self.shape.planes) {
                greatest = max(greatest, others[plane as usize]);
            }
        }
        greatest
    }

    /// From no more than what `groups` keys reach, up to the greatest of all, given the greatest of each unit: the units in
    /// at least as many groups, of the greatest of each the least.
    pub fn best<K: Int>(&self, greatest: K, #[comptime] groups: u32) -> KeyRange<K> {
        let lanes = comptime!((self.shape.lanes / groups).min(self.shape.plane_lanes()));
        let mut greatest = greatest;
        #[unroll]
        for step in 0..comptime!(lanes.max(1).ilog2()) {
            let other = plane_shuffle_xor(greatest, comptime!(1u32 << step));
            greatest = max(greatest, other);
        }
        let low = if comptime!(groups <= self.shape.lanes) {
            greatest
        } else {
            K::min_value()
        };
        self.range::<K>(low, greatest)
    }

    /// The plane that this unit looks at for its own.
    fn others(&self) -> usize {
        min(self.team.lane, comptime!(self.shape.planes - 1)) as usize
    }
}

/// Keys that the units of a cube hold between them.
#[cube]
pub(super) trait Keys<K: Int>: CubeType {
    /// Adds to its bin each key within a range: [`tally`].
    fn count(&self, bins: &Shared<[Atomic<u32>]>, range: &KeyRange<K>, shift: u32);
}

/// The keys from one to another.
#[cube]
pub(super) fn between<K: Int>(low: K, high: K) -> KeyRange<K> {
    KeyRange::<K> { low, high }
}

/// Adds a key of a range to the bin of its distance from the least, without the lowest `shift` bits.
#[cube]
pub(super) fn tally<K: Int>(bins: &Shared<[Atomic<u32>]>, key: K, range: &KeyRange<K>, shift: u32) {
    if key >= range.low && key <= range.high {
        let bin = u32::cast_from((key - range.low) >> K::cast_from(shift));
        bins[bin as usize].fetch_add(1u32);
    }
}

/// What is known of the kth greatest key: it lies within a range, above which `above` keys are.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Note<K: Int> {
    pub low: K,
    pub high: K,
    pub above: u32,
    /// Bits of the distance from `low` that bins leave out.
    pub shift: u32,
    /// Whether there is more to find; if not, keys within the range are all members or all equal, and there are none
    /// where whatever reaches `low` is a member.
    pub open: bool,
}

#[cube]
impl<K: Int> Note<K> {
    /// All keys are within this range.
    pub fn new(low: K, high: K) -> Note<K> {
        let bits = comptime!(K::elem_type_native().size() as u32 * 8);
        let digits = bits - u32::cast_from((high - low).leading_zeros());
        Note::<K> {
            low,
            high,
            above: 0u32,
            shift: select(digits > DIGIT, digits - DIGIT, 0u32),
            open: low < high,
        }
    }

    /// Goes on to what is known once the keys of the range have been counted, and empties the bins. Different keys differ by `2^spacing` or
    /// more, but for infinity and NaN.
    pub fn narrow(
        &mut self,
        bins: &Shared<[Atomic<u32>]>,
        k: u32,
        crew: &Crew,
        #[comptime] spacing: u32,
    ) {
        let next = self.narrower(bins, k, crew, spacing);
        self.low = next.low;
        self.high = next.high;
        self.above = next.above;
        self.shift = next.shift;
        self.open = next.open;
    }

    fn narrower(
        &self,
        bins: &Shared<[Atomic<u32>]>,
        k: u32,
        crew: &Crew,
        #[comptime] spacing: u32,
    ) -> Note<K> {
        // Of 16 bytes, as all arrays of this kernel: compilers read neighbours along with what does not begin there.
        let mut found = Shared::<[u32]>::new_slice(4usize);
        // The greatest bins first.
        let share = comptime!(BINS as u32 / crew.shape.lanes);
        let last = comptime!(BINS as u32 - 1);
        let first = UNIT_POS * share;
        let wanted = k - self.above;
        let mut own = 0u32;
        for bin in 0..share {
            own += bins[(last - (first + bin)) as usize].load();
        }
        let mut passed = crew.sums(own).before;
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
        for bin in 0..share {
            bins[(last - (first + bin)) as usize].store(0u32);
        }
        sync_cube();
        let low = self.low + (K::cast_from(found[0]) << K::cast_from(self.shift));
        // The last bin may reach beyond the greatest key there is.
        let width = (K::new(1) << K::cast_from(self.shift)) - K::new(1);
        let high = select(self.high - low > width, low + width, self.high);
        let all = found[2] + found[1] == wanted;
        let mut equal = self.shift == 0;
        if comptime!(spacing > 0) {
            let apart = high < K::cast_from(PLUS_INF) && low > !K::cast_from(PLUS_INF);
            equal = equal || (self.shift <= spacing && apart);
        }
        let reached = all && low > K::new(0);
        Note::<K> {
            low,
            high: select(reached, low - K::new(1), high),
            above: select(reached, k, self.above + found[1]),
            shift: select(self.shift > DIGIT, self.shift - DIGIT, 0u32),
            open: !equal && !all,
        }
    }

    pub fn threshold(&self) -> Threshold<K> {
        Threshold::<K> {
            low: self.low,
            high: self.high,
            above: self.above,
        }
    }
}

/// Empties all bins.
#[cube]
pub(super) fn clear(bins: &Shared<[Atomic<u32>]>, #[comptime] units: u32) {
    let mut bin = UNIT_POS;
    while bin < comptime!(BINS as u32) {
        bins[bin as usize].store(0u32);
        bin += units;
    }
}

/// The threshold of the `k` greatest of some keys, with at least `k` within a range and none above it, apart as in [`Note::narrow`]. All
/// units see the bins empty before and after.
#[cube]
pub(super) fn narrow<K: Int, S: Keys<K>>(
    keys: &S,
    all: &KeyRange<K>,
    k: u32,
    bins: &Shared<[Atomic<u32>]>,
    crew: &Crew,
    #[comptime] spacing: u32,
) -> Threshold<K> {
    let mut note = Note::<K>::new(all.low, all.high);
    while note.open {
        let range = KeyRange::<K> {
            low: note.low,
            high: note.high,
        };
        keys.count(bins, &range, note.shift);
        sync_cube();
        note.narrow(bins, k, crew, spacing);
    }
    note.threshold()
}
