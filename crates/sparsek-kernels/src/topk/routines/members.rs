//! The members of a row in registers, judged and written.

use cubecl::prelude::*;

use super::{
    registers::TeamRow,
    team::Positions,
    values::{Level, Values},
};
use crate::topk::{
    element::Element,
    search::{Cursor, Placement, Threshold},
};

/// Tells the members among this unit's items, in index order.
#[cube]
pub(super) trait Members: CubeType {
    /// Where this unit's items of a load begin; positions count from `base`.
    fn cursor(&self, #[comptime] load: usize, base: u32) -> Cursor;
    /// Judges the next item and moves past it.
    fn place(&self, cursor: &mut Cursor, #[comptime] item: usize) -> Placement;
}

/// The values that reach a threshold: all of them, or the first k.
#[derive(CubeType)]
pub(super) struct Reached {
    values: Values,
    level: Level,
    k: u32,
    positions: Positions,
    #[cube(comptime)]
    all: bool,
}

#[cube]
impl Reached {
    pub fn new(
        values: Values,
        level: Level,
        k: u32,
        #[comptime] all: bool,
        #[comptime] ordered: bool,
    ) -> Reached {
        let mut positions = Positions::new(values.team.shape);
        if comptime!(!ordered) {
            positions.total = u32::cast_from(values.count(level.value));
        } else {
            #[unroll]
            for item in 0..values.items.len() {
                // Said the other way round than below: a compiler would keep all these truths.
                let below = values.items[item] < level.value;
                positions.count(item, !below);
            }
            positions.scan();
        }
        Reached {
            values,
            level,
            k,
            positions,
            all,
        }
    }

    /// Whether these are the members of each row of the plane.
    pub fn hold(&self) -> bool {
        let enough = if comptime!(self.all) {
            self.positions.total == self.k
        } else {
            self.positions.total >= self.k
        };
        plane_all(self.level.usable && enough)
    }
}

#[cube]
impl Members for Reached {
    fn cursor(&self, #[comptime] load: usize, base: u32) -> Cursor {
        let position = self.positions.of(load);
        if comptime!(self.all) {
            Cursor {
                above: 0,
                level: position + base,
            }
        } else {
            Cursor {
                above: base,
                level: position,
            }
        }
    }

    fn place(&self, cursor: &mut Cursor, #[comptime] item: usize) -> Placement {
        let level = self.values.items[item] >= self.level.value;
        let step = select(level, 1u32, 0u32);
        cursor.level += step;
        let position = cursor.level - step;
        if comptime!(self.all) {
            Placement {
                member: level,
                position,
            }
        } else {
            Placement {
                member: level && position < self.k,
                position: cursor.above + position,
            }
        }
    }
}

/// The keys above a threshold, and the first of those level with it.
#[derive(CubeType)]
pub(super) struct Placed<E: Element> {
    row: TeamRow<E>,
    threshold: Threshold<E::Key>,
    quota: u32,
    above: Positions,
    level: Positions,
}

#[cube]
impl<E: Element> Placed<E> {
    pub fn new(row: TeamRow<E>, threshold: Threshold<E::Key>, k: u32) -> Placed<E> {
        let mut above = Positions::new(row.team.shape);
        let mut level = Positions::new(row.team.shape);
        #[unroll]
        for item in 0..row.keys.len() {
            let key = row.keys[item];
            let is_above = key > threshold.high;
            above.count(item, is_above);
            level.count(item, key >= threshold.low && !is_above);
        }
        above.scan();
        level.scan();
        let quota = k - threshold.above;
        // Shuffled with itself: a compiler would keep what it knows of each key until it is placed.
        let threshold = Threshold::<E::Key> {
            low: plane_shuffle(threshold.low, UNIT_POS_X),
            high: plane_shuffle(threshold.high, UNIT_POS_X),
            above: threshold.above,
        };
        Placed::<E> {
            row,
            threshold,
            quota,
            above,
            level,
        }
    }
}

#[cube]
impl<E: Element> Members for Placed<E> {
    fn cursor(&self, #[comptime] load: usize, base: u32) -> Cursor {
        Cursor {
            above: self.above.of(load) + base,
            level: self.level.of(load),
        }
    }

    fn place(&self, cursor: &mut Cursor, #[comptime] item: usize) -> Placement {
        cursor.place::<E::Key>(self.row.keys[item], &self.threshold, self.quota)
    }
}
