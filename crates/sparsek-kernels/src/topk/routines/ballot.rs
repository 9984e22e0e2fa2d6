//! Counting within a plane by ballots: a vote and a population count, where a sum takes as many
//! shuffles as the plane has bits.

use cubecl::prelude::*;

/// How many units of the plane see `true`. `words` is the number of 32-bit words of a ballot.
#[cube]
pub(super) fn plane_count(vote: bool, #[comptime] words: usize) -> u32 {
    let ballot = plane_ballot(vote);
    let mut count = ballot.extract(0usize).count_ones();
    #[unroll]
    for word in 1..words {
        count += ballot.extract(word).count_ones();
    }
    count
}

/// How many units see `true`: in the whole plane, and before this unit.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Tally {
    pub total: u32,
    pub before: u32,
}

/// Counts a vote in the whole plane and before this unit.
#[cube]
pub(super) fn plane_tally(vote: bool, #[comptime] words: usize) -> Tally {
    let ballot = plane_ballot(vote);
    let lane = UNIT_POS_X;
    let mut total = 0u32;
    let mut before = 0u32;
    #[unroll]
    for word in 0..words {
        let bits = ballot.extract(word);
        total += bits.count_ones();
        if words == 1 {
            before += (bits & ((1u32 << lane) - 1)).count_ones();
        } else {
            let first = comptime!(32 * word as u32);
            let mask = select(
                lane >= first + 32,
                u32::MAX,
                select(lane > first, (1u32 << ((lane - first) & 31)) - 1, 0u32),
            );
            before += (bits & mask).count_ones();
        }
    }
    Tally { total, before }
}
