//! Routine `delegate`.
//!
//! ```text
//! delegates <- the greatest element of each subrange
//! floor <- the kth of the delegates
//! list the columns at or above it, in index order; select from the list
//! ```
//!
//! At least k elements reach the kth delegate; only subranges with two of the k greatest add more.
//! Interleaving suits sorted rows.

#![allow(
    clippy::collapsible_if,
    clippy::manual_div_ceil,
    reason = "outer conditions are comptime; kernels have no `div_ceil` on runtime integers"
)]

use cubecl::{ir::ElemType, prelude::*};

use super::{
    candidates::select_from_candidates, config::CandidateConfig, layout::MemoryCall,
    loaded::RowSource,
};
use crate::{
    primitives::team::Team,
    topk::{
        key::{Element, MINUS_INF, NAN, ordered_key, ordered_zero},
        threshold::{
            register_row::{KeyRow, RegisterRow},
            search::{Cursor, find_threshold},
        },
        tuning::DELEGATE_AHEAD,
    },
};

#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn delegate_select<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    call: &mut MemoryCall<E, I>,
    #[comptime] config: CandidateConfig,
    #[define(I)] _index: ElemType,
) {
    let row = CUBE_POS;
    if row >= call.layout.rows {
        terminate!();
    }
    let memory = comptime!(config.memory);
    let elements = call.elements;
    let mut output = call.output(row, memory);
    let request = output.request;
    if comptime!(memory.ragged) {
        output.pad(UNIT_POS, comptime!(config.list.lanes));
        if request.params.k == 0 {
            terminate!();
        }
    }
    let (strided, search) = comptime!((memory.strided, memory.search));
    let source = RowSource::<E, N>::of_request(input, row, &request, strided, search);
    let delegates = delegates::<E, N>(&source, config);
    let floor = find_threshold::<E, KeyRow<E>>(&delegates, &request.params, search).low;
    let mut columns = Shared::<[u32]>::new_slice(comptime!(config.capacity()));
    let mut bound = E::Key::min_value();
    bound = max(bound, loosened::<E>(floor, config));
    let mut reaching = CandidateLister::<E> {
        floor,
        bound,
        k: request.params.k,
        totals: Cursor { above: 0u32.runtime(), level: 0u32.runtime() },
        config,
    };
    reaching.list::<N>(&source, &mut columns);
    sync_cube();
    let listed = reaching.listed();
    select_from_candidates::<E, I>(elements, &mut output, &columns, listed, config);
}

/// Like the ordered key, but NaN keys vary and -0 precedes 0.
#[cube]
fn quick_key<E: Element>(value: E, #[comptime] config: CandidateConfig) -> E::Key {
    if comptime!(config.floats) {
        let bits = u32::reinterpret(E::single(value));
        let fill = u32::reinterpret(i32::reinterpret(bits) >> 31);
        let key = E::Key::cast_from((bits ^ (fill | 0x8000_0000u32)) - MINUS_INF);
        if comptime!(config.memory.search.largest) { key } else { !key }
    } else {
        ordered_key::<E>(value, config.memory.search.largest)
    }
}

#[cube]
fn settled<E: Element>(quick: E::Key, #[comptime] config: CandidateConfig) -> E::Key {
    if comptime!(config.floats) {
        let largest = comptime!(config.memory.search.largest);
        let key = if comptime!(largest) { quick } else { !quick };
        let zero = E::zero_key();
        let key = select(key + E::Key::new(1) == zero, zero, key);
        let key = min(key, E::Key::cast_from(NAN));
        if comptime!(largest) { key } else { !key }
    } else {
        quick
    }
}

/// All elements ≥ `floor` reach it.
#[cube]
fn loosened<E: Element>(floor: E::Key, #[comptime] config: CandidateConfig) -> E::Key {
    if comptime!(config.floats) {
        let largest = comptime!(config.memory.search.largest);
        let zero = ordered_zero::<E>(largest);
        let bound = select(floor == zero, floor - E::Key::new(1), floor);
        if comptime!(largest) {
            bound
        } else {
            select(floor <= !E::Key::cast_from(NAN), E::Key::min_value(), bound)
        }
    } else {
        floor
    }
}

#[cube]
fn delegates<E: Element, N: Size>(
    source: &RowSource<E, N>,
    #[comptime] config: CandidateConfig,
) -> KeyRow<E> {
    let cols = source.layout.cols;
    let width = N::value().comptime();
    let parts = comptime!(config.sample.loads);
    let stride = comptime!(config.part.lanes * width as u32);
    let steps = (cols + comptime!(stride * parts as u32 - 1)) / comptime!(stride * parts as u32);
    let mut best = Array::<E::Key>::new(parts);
    #[unroll]
    for part in 0..parts {
        best[part] = E::Key::min_value();
    }
    let mut step = 0u32;
    while step < steps {
        let mut vectors = Sequence::<Vector<E, N>>::new();
        #[unroll]
        for part in 0..parts {
            let column = (comptime!(part as u32) * steps + step) * stride
                + UNIT_POS_X * comptime!(width as u32);
            vectors.push(source.load_inside(column));
        }
        #[unroll]
        for part in 0..parts {
            let column = (comptime!(part as u32) * steps + step) * stride
                + UNIT_POS_X * comptime!(width as u32);
            let mut greatest = E::Key::min_value();
            #[unroll]
            for i in 0..width {
                let key = quick_key::<E>(vectors[part].extract(i), config);
                if comptime!(config.memory.ragged) {
                    let inside = source.holds(column + comptime!(i as u32));
                    greatest = select(inside, max(greatest, key), greatest);
                } else {
                    greatest = max(greatest, key);
                }
            }
            let known = best[part];
            best[part] = select(column < cols, max(known, greatest), known);
        }
        step += 1;
    }
    let mut keys = Sequence::<E::Key>::new();
    #[unroll]
    for part in 0..parts {
        let key = best[part];
        keys.push(settled::<E>(key, config));
    }
    let count = comptime!(config.sample.lanes * parts as u32);
    KeyRow::<E> {
        row: RegisterRow::<E::Key>::new(keys, Team::new(count.runtime(), config.sample)),
        search: config.memory.search,
    }
}

#[derive(CubeType)]
struct CandidateLister<E: Element> {
    floor: E::Key,
    bound: E::Key,
    k: u32,
    totals: Cursor,
    #[cube(comptime)]
    config: CandidateConfig,
}

#[cube]
impl<E: Element> CandidateLister<E> {
    fn list<N: Size>(&mut self, source: &RowSource<E, N>, columns: &mut Shared<[u32]>) {
        let cols = source.layout.cols;
        let width = N::value().comptime();
        let stride = comptime!(self.config.part.lanes * width as u32);
        let mut first = 0u32;
        while first < cols {
            let mut vectors = Sequence::<Vector<E, N>>::new();
            let mut reaches = Sequence::<bool>::new();
            #[unroll]
            for load in 0..DELEGATE_AHEAD {
                let column =
                    first + comptime!(load as u32) * stride + UNIT_POS_X * comptime!(width as u32);
                vectors.push(source.load_inside(column));
            }
            let mut most = E::Key::min_value();
            #[unroll]
            for load in 0..DELEGATE_AHEAD {
                let column =
                    first + comptime!(load as u32) * stride + UNIT_POS_X * comptime!(width as u32);
                let mut greatest = E::Key::min_value();
                #[unroll]
                for i in 0..width {
                    let key = quick_key::<E>(vectors[load].extract(i), self.config);
                    greatest = max(greatest, key);
                }
                most = max(most, greatest);
                reaches.push(column < cols && greatest >= self.bound);
            }
            if plane_any(most >= self.bound) {
                #[unroll]
                for load in 0..DELEGATE_AHEAD {
                    if plane_any(reaches[load]) {
                        let column = first
                            + comptime!(load as u32) * stride
                            + UNIT_POS_X * comptime!(width as u32);
                        self.take::<N>(vectors[load], column, reaches[load], source, columns);
                    }
                }
            }
            first += comptime!(DELEGATE_AHEAD as u32) * stride;
        }
    }

    fn take<N: Size>(
        &mut self,
        vector: Vector<E, N>,
        column: u32,
        reaches: bool,
        source: &RowSource<E, N>,
        columns: &mut Shared<[u32]>,
    ) {
        let width = N::value().comptime();
        let capacity = comptime!(self.config.capacity() as u32);
        let mut above = 0u32;
        let mut level = 0u32;
        #[unroll]
        for i in 0..width {
            let key = ordered_key::<E>(vector.extract(i), self.config.memory.search.largest);
            let bit = if comptime!(self.config.memory.ragged) {
                let inside = source.holds(column + comptime!(i as u32));
                select(inside, comptime!(1u32 << i), 0u32)
            } else {
                comptime!(1u32 << i).runtime()
            };
            above |= select(key > self.floor, bit, 0u32);
            level |= select(key == self.floor, bit, 0u32);
        }
        above = select(reaches, above, 0u32);
        level = select(reaches, level, 0u32);
        let counts = above.count_ones() + (level.count_ones() << 16);
        let team = Team::new(0u32.runtime(), self.config.list);
        let sums = team.running_sum(counts);
        let all = plane_shuffle(sums, comptime!(self.config.list.lanes - 1));
        let mut cursor = self.totals.after(sums - counts);
        #[unroll]
        for i in 0..width {
            let is_above = above & comptime!(1u32 << i) != 0;
            let is_level = level & comptime!(1u32 << i) != 0;
            let slot = cursor.above + min(cursor.level, self.k);
            let wanted = is_above || (is_level && cursor.level < self.k);
            if wanted && slot < capacity {
                columns[slot as usize] = column + comptime!(i as u32) - source.head;
            }
            cursor.above += select(is_above, 1u32, 0u32);
            cursor.level += select(is_level, 1u32, 0u32);
        }
        self.totals.skip(all);
        let next = loosened::<E>(self.floor + E::Key::new(1), self.config);
        let full = self.totals.level >= self.k && next > self.bound;
        self.bound = select(full, next, self.bound);
    }

    /// May exceed the capacity.
    fn listed(&self) -> u32 {
        self.totals.above + min(self.totals.level, self.k)
    }
}
