//! Delegates and members in one launch: the last of the cubes that find delegates finishes.
//!
//! Cubes count themselves in a word that nobody has cleared, whose high bits hold the number of the call. Each cube begins by putting a
//! count of zero there, and adds what it has taken away to itself in the end. So the count is that of all cubes when the last one has
//! added itself, and not before, whatever the word held, unless that were the 48 bits of this call's number.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    chosen::Subranges,
    delegates::{DelegateBlueprint, find_short},
    finish::{FinishBlueprint, finish_cube},
};
use crate::topk::key::Element;

/// Bits of the count; the others number calls.
pub(crate) const COUNT_BITS: u32 = 16;

#[cube]
#[allow(unused_variables, reason = "the type is all there is")]
fn none<T: CubeType>() -> ComptimeOption<T> {
    intrinsic!(|_| ComptimeOptionExpand::None)
}

/// Values and indices of the k best elements in index order. The keys of the delegates are left in `keys`; `call` is the number of the
/// call, above a count of zero.
///
/// Needs storage that other cubes see behind [`sync_storage`].
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "buffers")]
pub(crate) fn select_at_once<E: Element, I: Numeric, N: Size, D: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [E::Key],
    arrivals: &[Atomic<u64>],
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
    let mut taken = 0u64;
    if UNIT_POS == 0 {
        taken = arrivals[0].exchange(call);
    }
    find_short::<E, E::Key, N>(input, elements, keys, cut.length, cut.exponent, find);
    let mut last = Shared::<[u32]>::new_slice(4usize);
    // Who sees that this cube has arrived sees its keys.
    sync_storage();
    if UNIT_POS == 0 {
        let known = taken >> comptime!(COUNT_BITS as u64) == call >> comptime!(COUNT_BITS as u64);
        let own = select(known, taken - call, 0u64) + 1;
        let count = arrivals[0].fetch_add(own) - call + own;
        last[0] = select(count == CUBE_COUNT as u64, 1u32, 0u32);
    }
    sync_storage();
    if last[0] == 1 {
        finish_cube::<E, I, N, D>(
            input,
            elements,
            keys.downcast::<Vector<E::Key, Const<1>>>()
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
