//! The last steps of a selection from a vector, in one cube: the k best delegates, of their subranges the elements that
//! reach the least of them (Rule 2), and the members among these.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    candidates::{Candidates, order, write},
    choice::{Workplace, choose, take},
    chosen::{Chosen, Subranges},
    crew::{Crew, clear, narrow},
    pick::{FEW, Lists, pick},
    radix::BINS,
};
use crate::primitives::team::TeamShape as Shape;
use crate::topk::key::{Element, ordered_key};

/// Bytes of a load of delegates.
const LOAD_BYTES: usize = 16;

/// How a cube finishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FinishBlueprint {
    /// The units of the cube, and their loads of the vector.
    pub shape: Shape,
    /// Delegates that a unit holds, or of groups; 0 where the k best have been found before.
    pub items: usize,
    /// Groups of `2^group` subranges, and their delegates that a unit holds; 0 where there are none.
    pub group: u32,
    pub grouped: usize,
    /// Delegates of a subrange, β.
    pub delegates: u32,
    /// Loads of a unit under way at a time.
    pub flight: usize,
    /// Most members, and most candidates in shared memory.
    pub members: usize,
    pub room: usize,
    /// Keys that differ do so by `2^spacing` or more, but for infinity and NaN.
    pub spacing: u32,
    pub largest: bool,
}

impl FinishBlueprint {
    /// Delegates of a load: what a unit holds is whole ones.
    pub fn delegate_width(&self, key: usize) -> usize {
        let least = if self.group > 0 {
            self.items.min(self.grouped)
        } else {
            self.items
        };
        least.clamp(1, LOAD_BYTES / key)
    }

    /// Bytes of shared memory, about.
    pub fn shared(&self, key: usize) -> usize {
        let candidates = self.room * (key + size_of::<u32>());
        let lists = 5 * self.members * size_of::<u32>();
        BINS * size_of::<u32>() + candidates + lists + 4 * self.shape.planes as usize * key
    }
}

/// Values and indices of the k best elements in index order, by one cube. `delegates` holds the keys of all delegates,
/// in whole loads, `groups` the greatest ones of groups; where `chosen` holds the places of the k best, of these, one to a load. With several delegates for each
/// subrange, `positions` holds where in their subrange they stand (Rule 3).
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn finish<E: Element, I: Numeric, N: Size, D: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    delegates: &[Vector<E::Key, D>],
    groups: ComptimeOption<&[Vector<E::Key, D>]>,
    chosen: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    #[comptime] blueprint: FinishBlueprint,
    #[define(I)] _index: ElemType,
) {
    finish_cube::<E, I, N, D>(
        input, elements, delegates, groups, chosen, positions, values, indices, stats, cut,
        blueprint,
    );
}

/// [`finish`], by the cube that calls it.
#[cube]
#[allow(clippy::too_many_arguments, reason = "buffers")]
pub(super) fn finish_cube<E: Element, I: Numeric, N: Size, D: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    delegates: &[Vector<E::Key, D>],
    groups: ComptimeOption<&[Vector<E::Key, D>]>,
    chosen: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    #[comptime] blueprint: FinishBlueprint,
) {
    let units = comptime!(blueprint.shape.lanes);
    let mut places = Shared::<[u32]>::new_slice(blueprint.members);
    let mut whole = Shared::<[u32]>::new_slice(comptime!(if blueprint.delegates > 1 {
        blueprint.members
    } else {
        4
    }));
    let filled = Shared::<[Atomic<u32>]>::new_slice(4usize);
    let with = Workplace::<E::Key> {
        candidates: Candidates::<E::Key> {
            keys: Shared::<[E::Key]>::new_slice(blueprint.room),
            slots: Shared::<[u32]>::new_slice(blueprint.room),
            filled: filled.clone(),
            room: blueprint.room,
            units,
        },
        lists: Lists::new(blueprint.members),
        bins: Shared::<[Atomic<u32>]>::new_slice(BINS),
        crew: Crew::new(blueprint.shape),
    };
    clear(&with.bins, units);
    if UNIT_POS == 0 {
        filled[0].store(0u32);
        filled[1].store(0u32);
        filled[2].store(0u32);
    }
    sync_cube();
    let reached = #[comptime]
    match chosen {
        ComptimeOption::Some(chosen) => {
            take::<E::Key, D>(delegates, chosen, &mut places, &cut, &with.crew, blueprint)
        }
        ComptimeOption::None => {
            choose::<E::Key, D>(delegates, groups, &mut places, &cut, &with, blueprint)
        }
    };
    sync_cube();
    let mut ranks = cut.k;
    #[comptime]
    match positions {
        ComptimeOption::Some(positions) => {
            let per_subrange = comptime!(blueprint.delegates);
            let mut rank = UNIT_POS;
            while rank < cut.k {
                let place = places[rank as usize];
                let order = place % per_subrange;
                // Where the last delegate of the subrange would stand.
                let last = rank + (per_subrange - 1 - order);
                let all = last < cut.k
                    && places[min(last, cut.k - 1) as usize] == place + (per_subrange - 1 - order);
                if all {
                    if last == rank {
                        let at = filled[2].fetch_add(1u32);
                        whole[at as usize] = rank;
                    }
                } else {
                    let inside = positions[place as usize];
                    let at = ((place / per_subrange) as usize) << cut.exponent as usize;
                    let key = ordered_key::<E>(elements[at + inside as usize], blueprint.largest);
                    with.candidates.put(
                        with.candidates.claim(1u32),
                        key,
                        ((rank - order) << cut.exponent) + inside,
                    );
                }
                rank += units;
            }
            sync_cube();
            ranks = filled[2].load();
        }
        ComptimeOption::None => {}
    };
    let elements = Chosen::<E, N>::new(
        input,
        elements,
        places.clone(),
        whole.clone(),
        cut,
        blueprint,
    );
    elements.collect(reached.low, elements.loads(ranks), &with.candidates);
    sync_cube();
    #[comptime]
    match stats {
        ComptimeOption::Some(stats) => {
            if UNIT_POS == 0 {
                stats[0] = ranks;
                stats[1] = filled[0].load();
            }
        }
        ComptimeOption::None => {}
    };
    let count = filled[0].load();
    if count > comptime!(blueprint.room as u32) {
        let threshold = narrow::<E::Key, Chosen<E, N>>(
            &elements,
            &reached,
            cut.k,
            &with.bins,
            &with.crew,
            blueprint.spacing,
        );
        elements.list::<I>(&threshold, values, indices, &with.crew);
    } else if count <= FEW {
        pick::<E::Key>(
            &with.candidates,
            count,
            cut.k,
            &with.lists,
            &with.bins,
            &with.crew,
        );
        write::<E, I, N>(&elements, &with.lists.ordered, values, indices);
    } else {
        order::<E, I, N>(&elements, &reached, values, indices, &with);
    }
}
