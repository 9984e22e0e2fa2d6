//! Delegates and members in one launch: the last of the cubes that find delegates finishes.
//!
//! Each cube leaves the number of the call in a word of its own, whose contents before do not matter unless they are these 64 bits;
//! then all of them add to one word, one after the other. Who adds last sees the words of all, so that one cube at least finishes. Others
//! may see all of them too, and write the same.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    chosen::Subranges,
    crew::Crew,
    delegates::{DelegateBlueprint, find_short},
    finish::{FinishBlueprint, finish_cube},
};
use crate::topk::element::Element;

#[cube]
#[allow(unused_variables, reason = "the type is all there is")]
fn none<T: CubeType>() -> ComptimeOption<T> {
    intrinsic!(|_| ComptimeOptionExpand::None)
}

/// Values and indices of the k best elements in index order. The keys of the delegates are left in `keys`, the number of this `call` in
/// the `arrivals` of the cubes; `order` has one word more than there are cubes.
///
/// Needs storage that other cubes see behind [`sync_storage`].
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "buffers")]
pub(crate) fn select_at_once<E: Element, I: Numeric, N: Size, D: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [E::Key],
    arrivals: &[Atomic<u64>],
    order: &[Atomic<u32>],
    values: &mut [E],
    indices: &mut [I],
    stats: ComptimeOption<&mut [u32]>,
    cut: Subranges,
    call: u64,
    #[comptime] find: DelegateBlueprint,
    #[comptime] blueprint: FinishBlueprint,
    #[define(D)] _width: usize,
    #[define(I)] _index: ElemType,
) {
    find_short::<E, E::Key, N>(input, elements, keys, cut.length, cut.exponent, find);
    // Who sees that this cube has arrived sees its keys.
    sync_storage();
    if UNIT_POS == 0 {
        arrivals[CUBE_POS].store(call);
    }
    sync_storage();
    if UNIT_POS == 0 {
        let place = order[0].fetch_add(1u32);
        // So that what is read is of use.
        order[CUBE_POS + 1].store(place);
    }
    sync_storage();
    let mut arrived = 0u32;
    let mut cube = UNIT_POS as usize;
    while cube < CUBE_COUNT {
        arrived += select(arrivals[cube].load() == call, 1u32, 0u32);
        cube += comptime!(find.cube.lanes as usize);
    }
    let arrived = Crew::new(find.cube).sums(arrived).total;
    if arrived as usize == CUBE_COUNT {
        sync_storage();
        finish_cube::<E, I, N, D>(
            input,
            elements,
            (&*keys)
                .downcast::<Vector<E::Key, Const<1>>>()
                .with_vector_size::<D>(),
            none::<&[Vector<E::Key, D>]>(),
            none::<&[u32]>(),
            none::<&[u32]>(),
            values,
            indices,
            stats,
            cut,
            blueprint,
        );
    }
}
