//! Sums of a plane in shared memory: where the columns of a team lie, and what puts them together.
//!
//! Each of the L units of a team has a bank, and in it a group of neighbouring columns. The members of an entry ascend, and those that
//! a team adds at a time lie evenly among them, so that they fall into most of its banks once: 2.1 times into the fullest, where
//! columns that follow one another in the banks have it 3.5 times (k = 32 of 256, computed). Entries that are alike, as
//! those of trained networks are, do not meet either, since teams have banks of their own.

use cubecl::prelude::*;

use super::shape::Shape;

/// Where the sum of a column is, from the first of its team.
#[cube]
pub(super) fn place(column: u32, #[comptime] shape: Shape) -> u32 {
    let group = comptime!(shape.group() as u32);
    if comptime!(group == 1) {
        column
    } else {
        column % group * shape.plane + column / group
    }
}

/// Adds the terms of a load, whose places differ.
#[cube]
pub(super) fn add<S: Float>(
    sums: &mut Shared<[S]>,
    first: usize,
    terms: &Array<S>,
    places: &Array<u32>,
    #[comptime] load: usize,
    #[comptime] vector: usize,
) {
    let mut before = Array::<S>::new(vector);
    #[unroll]
    for v in 0..vector {
        before[v] = sums[first + places[comptime!(load * vector + v)] as usize];
    }
    #[unroll]
    for v in 0..vector {
        let slot = comptime!(load * vector + v);
        sums[first + places[slot] as usize] = before[v] + terms[slot];
    }
}

/// Puts the sums of all teams together, column after column, with one place left out after as many as the plane has units. Units read
/// different teams at a time, and so different banks.
#[cube]
pub(super) fn collect<S: Float>(sums: &mut Shared<[S]>, own: usize, #[comptime] shape: Shape) {
    let teams = comptime!(shape.teams() as u32);
    let group = comptime!(shape.group() as u32);
    let share = comptime!(group.div_ceil(teams));
    let bank = UNIT_POS_X / teams;
    let turn = UNIT_POS_X - bank * teams;
    let mut totals = Array::<S>::new(comptime!(share as usize));
    #[unroll]
    for i in 0..share {
        let layer = min(turn * share + i, comptime!(group - 1));
        let mut total = S::new(0.0);
        #[unroll]
        for step in 0..teams {
            // Teams are a power of two.
            let team = (turn + step) & comptime!(teams - 1);
            total += sums[own + (layer * shape.plane + team * shape.team + bank) as usize];
        }
        totals[i as usize] = total;
    }
    sync_plane();
    #[unroll]
    for i in 0..share {
        let layer = turn * share + i;
        let column = bank * group + layer;
        if layer < group && column < comptime!(shape.width as u32) {
            sums[own + (column + column / shape.plane) as usize] = totals[i as usize];
        }
    }
    sync_plane();
}
