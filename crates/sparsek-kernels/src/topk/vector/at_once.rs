//! Delegates and members in one launch: the last of the cubes that find delegates finishes.
//!
//! Cubes count themselves in a word that nobody has cleared. The first one to see it writes the number of the call in its
//! high bits, so that the count begins at zero whatever was there, unless that happens to have the same 48 bits.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    chosen::Subranges,
    delegates::{DelegateBlueprint, find_short},
    finish::{FinishBlueprint, finish_cube},
};
use crate::topk::element::Element;

/// Bits of the count of cubes; the others number calls.
pub(crate) const COUNT_BITS: u32 = 16;

#[cube]
#[allow(unused_variables, reason = "the type is all there is")]
fn none<T: CubeType>() -> ComptimeOption<T> {
    intrinsic!(|_| ComptimeOptionExpand::None)
}

/// Values and indices of the k best elements in index order. The keys of the delegates are left in `keys`; `call` is the number of the
/// call above [`COUNT_BITS`] zeros.
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
    if UNIT_POS == 0 {
        let mut found = arrivals[0].load();
        while found >> comptime!(COUNT_BITS as u64) != call >> comptime!(COUNT_BITS as u64) {
            arrivals[0].compare_exchange_weak(found, call);
            found = arrivals[0].load();
        }
    }
    find_short::<E, N>(input, elements, keys, cut.length, cut.exponent, find);
    let mut last = Shared::<[u32]>::new_slice(4usize);
    sync_storage();
    if UNIT_POS == 0 {
        let before = u32::cast_from(arrivals[0].fetch_add(1u64) - call);
        last[0] = select(before as usize + 1 == CUBE_COUNT, 1u32, 0u32);
    }
    sync_storage();
    if last[0] == 1 {
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
