//! One cube finishes: both selections and the output.
//!
//! ```text
//! best       <- k best delegates
//! candidates <- best delegates of subranges without all β in best  (Rule 3)
//!             + elements >= min(best) of other subranges           (Rule 2)
//! result     <- k best candidates
//! ```
//!
//! If candidates exceed shared memory, all selected subranges are scanned instead.
//!
//! Single launch: the construction's last cube finishes, by zeroed `arrivals`.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    super::tuning::MAX_RANKED,
    best_delegates::{select_delegates, take_selected_delegates},
    candidates::{SelectedSlots, Workspace, select_by_histogram, select_by_rank, write_candidates},
    delegates::{DelegateVectorConfig, short_subranges},
    selected_subranges::{Candidates, SelectedSubranges},
    types::{FinishCall, FinishConfig, write_stats},
};
use crate::topk::{
    key::{Element, ordered_key},
    threshold::{
        cube_reduce::CubeReduce,
        histogram::{BINS, clear_bins, histogram_threshold},
    },
};

/// `delegates` holds all keys in whole loads, or with `selected_places` the k best, one each.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn finish<E: Element, I: Numeric, N: Size, D: Size>(
    call: FinishCall<E, I, N>,
    delegates: &[Vector<E::Key, D>],
    groups: ComptimeOption<&[Vector<E::Key, D>]>,
    selected_places: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    #[comptime] config: FinishConfig,
    #[define(I)] _index: ElemType,
) {
    finish_cube::<E, I, N, D>(call, delegates, groups, selected_places, positions, config);
}

#[cube]
fn finish_cube<E: Element, I: Numeric, N: Size, D: Size>(
    call: FinishCall<E, I, N>,
    delegates: &[Vector<E::Key, D>],
    groups: ComptimeOption<&[Vector<E::Key, D>]>,
    selected_places: ComptimeOption<&[u32]>,
    positions: ComptimeOption<&[u32]>,
    #[comptime] config: FinishConfig,
) {
    let (counts, exponent) = (call.counts, call.vector.exponent);
    let units = comptime!(config.shape.lanes);
    let mut places = Shared::<[u32]>::new_slice(config.max_k);
    let mut complete_ranks =
        Shared::<[u32]>::new_slice(comptime!(if config.beta > 1 { config.max_k } else { 4 }));
    let filled = Shared::<[Atomic<u32>]>::new_slice(4usize);
    let workspace = Workspace::<E::Key> {
        candidates: Candidates::<E::Key> {
            keys: Shared::<[E::Key]>::new_slice(config.room),
            slots: Shared::<[u32]>::new_slice(config.room),
            filled: filled.clone(),
            room: config.room,
            units,
        },
        selected: SelectedSlots::new(config.max_k),
        bins: Shared::<[Atomic<u32>]>::new_slice(BINS),
        reduce: CubeReduce::new(config.shape),
    };
    clear_bins(&workspace.bins, units);
    if UNIT_POS == 0 {
        filled[0].store(0u32);
        filled[1].store(0u32);
        filled[2].store(0u32);
    }
    sync_cube();
    let range = #[comptime]
    match selected_places {
        ComptimeOption::Some(selected_places) => take_selected_delegates::<E::Key, D>(
            delegates,
            selected_places,
            &mut places,
            &counts,
            &workspace.reduce,
            config,
        ),
        ComptimeOption::None => select_delegates::<E::Key, D>(
            delegates,
            groups,
            &mut places,
            &counts,
            &workspace,
            config,
        ),
    };
    sync_cube();
    let mut ranks = counts.k;
    #[comptime]
    match positions {
        ComptimeOption::Some(positions) => {
            let beta = comptime!(config.beta);
            let mut rank = UNIT_POS;
            while rank < counts.k {
                let place = places[rank as usize];
                let order = place % beta;
                let last = rank + (beta - 1 - order);
                let all = last < counts.k
                    && places[min(last, counts.k - 1) as usize] == place + (beta - 1 - order);
                if all {
                    if last == rank {
                        let at = filled[2].fetch_add(1u32);
                        complete_ranks[at as usize] = rank;
                    }
                } else {
                    let inside = positions[place as usize];
                    let at = ((place / beta) as usize) << exponent as usize;
                    let key = ordered_key::<E>(
                        call.vector.elements[at + inside as usize],
                        config.largest,
                    );
                    workspace.candidates.put(
                        workspace.candidates.claim(1u32),
                        key,
                        ((rank - order) << exponent) + inside,
                    );
                }
                rank += units;
            }
            sync_cube();
            ranks = filled[2].load();
        }
        ComptimeOption::None => {}
    };
    let elements = SelectedSubranges::<E, N> {
        vector: call.vector,
        places: places.clone(),
        complete_ranks: complete_ranks.clone(),
        k: counts.k,
        config,
    };
    elements.collect(range.low, elements.loads(ranks), &workspace.candidates);
    sync_cube();
    let count = filled[0].load();
    write_stats(call.stats, ranks, count);
    if count > comptime!(config.room as u32) {
        let threshold = histogram_threshold::<E::Key, SelectedSubranges<E, N>>(
            &elements,
            &range,
            counts.k,
            &workspace.bins,
            &workspace.reduce,
            config.spacing,
        );
        elements.write_selected::<I>(&threshold, call.values, call.indices, &workspace.reduce);
    } else if count <= MAX_RANKED {
        select_by_rank::<E::Key>(
            &workspace.candidates,
            count,
            counts.k,
            &workspace.selected,
            &workspace.bins,
            &workspace.reduce,
        );
        write_candidates::<E, I, N>(
            &elements,
            &workspace.selected.ordered,
            call.values,
            call.indices,
        );
    } else {
        select_by_histogram::<E, I, N>(&elements, &range, call.values, call.indices, &workspace);
    }
}

#[cube]
#[allow(unused_variables, reason = "the type is all there is")]
fn none<T: CubeType>() -> ComptimeOption<T> {
    intrinsic!(|_| ComptimeOptionExpand::None)
}

/// `arrivals` begins at zero. Other cubes must see storage after [`sync_storage`].
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn finish_single_launch<E: Element, I: Numeric, N: Size, D: Size>(
    call: FinishCall<E, I, N>,
    keys: &mut [E::Key],
    arrivals: &[Atomic<u32>],
    #[comptime] build: DelegateVectorConfig,
    #[comptime] config: FinishConfig,
    #[define(D)] _width: usize,
    #[define(I)] _index: ElemType,
) {
    short_subranges::<E, E::Key, N>(&call.vector, keys, build);
    let mut last = Shared::<[u32]>::new_slice(4usize);
    sync_storage();
    if UNIT_POS == 0 {
        let earlier = arrivals[0].fetch_add(1u32);
        last[0] = select(earlier as usize + 1 == CUBE_COUNT, 1u32, 0u32);
    }
    sync_storage();
    if last[0] == 1 {
        finish_cube::<E, I, N, D>(
            call,
            keys.downcast::<Vector<E::Key, Const<1>>>().with_vector_size::<D>(),
            none::<&[Vector<E::Key, D>]>(),
            none::<&[u32]>(),
            none::<&[u32]>(),
            config,
        );
    }
}
