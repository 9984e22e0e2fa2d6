//! The elements of subranges that were chosen by their delegates, and the members among them.

use cubecl::{ir::ElemType, prelude::*};

use crate::topk::key::{Element, ordered_refined, ordered_rough, short_key};

/// Keys of the elements of chosen subranges, one after the other, a load of each unit. Slots behind the end of the vector get the
/// least, which elements may have too: these stand before them.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn gather_candidates<E: Element, W: Numeric, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    chosen: &[u32],
    keys: &mut [Vector<W, N>],
    length: usize,
    slots: usize,
    exponent: u32,
    #[comptime] short: bool,
    #[comptime] largest: bool,
) {
    let width = N::value().comptime();
    let slot = ABSOLUTE_POS * width;
    if slot >= slots {
        terminate!();
    }
    let at = origin(chosen, slot, exponent, 1u32);
    let whole = at + width <= length;
    let items = input[min(at / width, length / width - 1)];
    let mut loaded = Vector::<W, N>::new(W::cast_from(0u32));
    #[unroll]
    for item in 0..width {
        let mut key = ordered_rough::<E>(items.extract(item), short, largest);
        if !whole {
            key = E::Key::min_value();
            if at + item < length {
                key = ordered_rough::<E>(elements[at + item], short, largest);
            }
        }
        let key = ordered_refined::<E>(key, short, largest);
        let told = if short {
            W::cast_from(short_key::<E::Key>(key, largest))
        } else {
            W::cast_from(key)
        };
        loaded.insert(item, told);
    }
    keys[ABSOLUTE_POS] = loaded;
}

/// The element that stands in a slot, given the places of the best delegates, of so many of each subrange.
#[cube]
fn origin(chosen: &[u32], slot: usize, exponent: u32, delegates: u32) -> usize {
    let exponent = exponent as usize;
    let subrange = (chosen[slot >> exponent] / delegates) as usize;
    (subrange << exponent) + (slot & ((1usize << exponent) - 1))
}

/// Values and indices of members, given by their slots, or by where these are `listed`, or by their places in the vector where
/// `direct`.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn fetch_members<E: Element, I: Numeric>(
    elements: &[E],
    chosen: &[u32],
    slots: &[u32],
    listed: ComptimeOption<&[u32]>,
    values: &mut [E],
    indices: &mut [I],
    members: usize,
    exponent: u32,
    delegates: u32,
    #[comptime] direct: bool,
    #[define(I)] _index: ElemType,
) {
    let member = ABSOLUTE_POS;
    if member >= members {
        terminate!();
    }
    let place = slots[member] as usize;
    let slot = #[comptime]
    match listed {
        ComptimeOption::Some(listed) => listed[place] as usize,
        ComptimeOption::None => place,
    };
    let at = if comptime!(direct) {
        slot
    } else {
        origin(chosen, slot, exponent, delegates)
    };
    values[member] = elements[at];
    indices[member] = I::cast_from(at);
}
