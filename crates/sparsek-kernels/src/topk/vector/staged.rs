//! Delegates of short subranges through shared memory: units read neighbouring loads, then each looks through a
//! subrange of its own. For devices whose units cannot share a subrange otherwise.

use cubecl::prelude::*;

use crate::topk::key::{Element, ordered_refined, ordered_rough};

/// The longest subranges, as an exponent.
pub(crate) const MAX_EXPONENT: u32 = 5;
/// Units of a cube, each with a subrange.
pub(crate) const UNITS: u32 = 128;

/// How subranges lie in a cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StagedBlueprint {
    /// Subranges have `2^exponent` elements.
    pub exponent: u32,
    /// Elements of a load.
    pub width: usize,
    /// Units of a cube.
    pub units: u32,
    pub largest: bool,
}

impl StagedBlueprint {
    /// Keys in shared memory: those of a subrange and one more, so that units meet different banks.
    pub fn keys(&self) -> usize {
        self.units as usize * self.stride()
    }

    fn stride(&self) -> usize {
        (1 << self.exponent) + 1
    }
}

/// The greatest key of each subrange, the last of which may be shorter.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn find_staged<E: Element, N: Size>(
    input: &[Vector<E, N>],
    elements: &[E],
    keys: &mut [E::Key],
    length: usize,
    #[comptime] blueprint: StagedBlueprint,
) {
    let width = comptime!(blueprint.width);
    let units = comptime!(blueprint.units);
    let exponent = comptime!(blueprint.exponent);
    let stride = comptime!(blueprint.stride());
    let mut staged = Shared::<[E::Key]>::new_slice(comptime!(blueprint.keys()));
    let first = CUBE_POS * units as usize;
    let start = first << exponent as usize;
    let loads = comptime!((units << exponent) / width as u32);
    let mut load = UNIT_POS;
    while load < loads {
        let inside = load * comptime!(width as u32);
        let at = start + inside as usize;
        let target = (inside >> exponent) as usize * stride
            + (inside & comptime!((1u32 << exponent) - 1)) as usize;
        if at + width <= length {
            let items = input[at / width];
            #[unroll]
            for item in 0..width {
                staged[target + item] =
                    ordered_rough::<E>(items.extract(item), false, blueprint.largest);
            }
        } else {
            #[unroll]
            for item in 0..width {
                let mut key = E::Key::min_value();
                if at + item < length {
                    key = ordered_rough::<E>(elements[at + item], false, blueprint.largest);
                }
                staged[target + item] = key;
            }
        }
        load += units;
    }
    sync_cube();
    let subrange = first + UNIT_POS as usize;
    if subrange << (exponent as usize) < length {
        let own = UNIT_POS as usize * stride;
        let mut best = staged[own];
        for item in 1..comptime!(1usize << exponent) {
            best = max(best, staged[own + item]);
        }
        keys[subrange] = ordered_refined::<E>(best, false, blueprint.largest);
    }
}
