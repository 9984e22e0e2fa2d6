//! Products with compressed rows by planes.
//!
//! ```text
//! for each item, by a plane:
//!     sums[team][column] = 0
//!     for each flight of entries, by each team:
//!         load k values and columns of row j       (all loads come first)
//!         sums[team][columns[j, s]] += w[e] cols[j] values[j, s]
//!     y[row] = rows[row] Σ sums[team]              (or a partial sum)
//! ```
//!
//! O(k) per entry. No atomics: an entry's columns differ, and teams have their own sums. Banks hold
//! neighboring columns, so few additions conflict.

use cubecl::{ir::ElemType, prelude::*};

use crate::spmm::{
    operand::Entries, partition::Item, plane_layout::PlaneLayout, tuning::PLANE_TAIL,
};

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn plane_kernel<E: Float, S: Float, I: Numeric, N: Size>(
    parts: &[i32],
    source: Entries<E, S>,
    values: &[Vector<E, N>],
    columns: &[Vector<I, N>],
    output: &mut [E],
    partials: &mut [S],
    items: usize,
    k: u32,
    value_stride: usize,
    column_stride: usize,
    offset: usize,
    #[comptime] layout: PlaneLayout,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    let number = CUBE_POS * comptime!(layout.planes as usize) + UNIT_POS_Y as usize;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    if item.row < 0 {
        terminate!();
    }
    let teams = comptime!(layout.teams());
    let own = UNIT_POS_Y as usize * comptime!(layout.sums_len());
    let mut sums = Shared::<[S]>::new_slice(comptime!(layout.planes as usize * layout.sums_len()));
    let mut place = UNIT_POS_X as usize;
    while place < comptime!(layout.sums_len()) {
        sums[own + place] = S::new(0.0);
        place += comptime!(layout.plane as usize);
    }
    sync_plane();

    let loads = k / comptime!(layout.vector as u32);
    let team = UNIT_POS_X / layout.team;
    let lane = UNIT_POS_X - team * layout.team;
    let first = own + (team * layout.team) as usize;
    let mut entry = item.start + i32::cast_from(team);
    let tail = comptime!(layout.flight.min(PLANE_TAIL));
    // Phase 1 takes shorter, masked flights.
    #[unroll]
    for phase in 0..comptime!(if tail < layout.flight { 2usize } else { 1usize }) {
        let rest = comptime!(phase == 1 || tail == layout.flight);
        let flight = comptime!(if rest { tail } else { layout.flight });
        let stride = comptime!((layout.teams() * flight) as i32);
        let left = item.end - (entry - i32::cast_from(team));
        // Teams synchronize: round counts agree.
        let rounds =
            if comptime!(rest) { (left + comptime!(stride - 1)) / stride } else { left / stride };
        for _round in 0..rounds {
            let mut products = Array::<S>::new(comptime!(flight * layout.loads * layout.vector));
            let mut places = Array::<u32>::new(comptime!(flight * layout.loads * layout.vector));
            #[unroll]
            for i in 0..flight {
                let at = entry + comptime!((i * teams) as i32);
                let read = if comptime!(rest) { min(at, item.end - 1) } else { at };
                let column = source.column(read);
                let factor = source.factor(read, column);
                let first_value = column * value_stride;
                let first_column = column * column_stride + offset;
                #[unroll]
                for m in 0..layout.loads {
                    let own = lane + comptime!(m as u32 * layout.team);
                    let load = if comptime!(layout.full) { own } else { min(own, loads - 1) };
                    let value = values[first_value + load as usize];
                    let place = columns[first_column + load as usize];
                    #[unroll]
                    for v in 0..layout.vector {
                        let value = S::cast_from(value.extract(v));
                        let product =
                            if comptime!(source.factors.any()) { factor * value } else { value };
                        let slot = comptime!((i * layout.loads + m) * layout.vector + v);
                        products[slot] = if comptime!(rest) {
                            select(at < item.end, product, S::new(0.0))
                        } else {
                            product
                        };
                        places[slot] = sum_index(u32::cast_from(place.extract(v)), layout);
                    }
                }
            }
            #[unroll]
            for i in 0..flight {
                #[unroll]
                for m in 0..layout.loads {
                    if comptime!(layout.full) {
                        add_load::<S>(
                            &mut sums,
                            first,
                            &products,
                            &places,
                            comptime!(i * layout.loads + m),
                            layout.vector,
                        );
                    } else {
                        if lane + comptime!(m as u32 * layout.team) < loads {
                            add_load::<S>(
                                &mut sums,
                                first,
                                &products,
                                &places,
                                comptime!(i * layout.loads + m),
                                layout.vector,
                            );
                        }
                    }
                }
                sync_plane();
            }
            entry += stride;
        }
    }

    collect::<S>(&mut sums, own, layout);
    let row = item.row as usize;
    let mut column = UNIT_POS_X as usize;
    while column < comptime!(layout.width) {
        let mut sum = sums[own + column + column / comptime!(layout.plane as usize)];
        if item.slot < 0 {
            if comptime!(source.factors.rows) {
                sum *= source.row_factor(row);
            }
            output[row * comptime!(layout.width) + column] = E::cast_from(sum);
        } else {
            partials[item.slot as usize * comptime!(layout.width) + column] = sum;
        }
        column += comptime!(layout.plane as usize);
    }
}

#[cube]
fn sum_index(column: u32, #[comptime] layout: PlaneLayout) -> u32 {
    let group = comptime!(layout.columns_per_bank() as u32);
    if comptime!(group == 1) { column } else { column % group * layout.plane + column / group }
}

#[cube]
fn add_load<S: Float>(
    sums: &mut Shared<[S]>,
    first: usize,
    products: &Array<S>,
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
        sums[first + places[slot] as usize] = before[v] + products[slot];
    }
}

/// Pads a slot per `plane` columns. Units read different teams at a time, hence banks.
#[cube]
fn collect<S: Float>(sums: &mut Shared<[S]>, own: usize, #[comptime] layout: PlaneLayout) {
    let teams = comptime!(layout.teams() as u32);
    let group = comptime!(layout.columns_per_bank() as u32);
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
            // `teams` is a power of two.
            let team = (turn + step) & comptime!(teams - 1);
            total += sums[own + (layer * layout.plane + team * layout.team + bank) as usize];
        }
        totals[i as usize] = total;
    }
    sync_plane();
    #[unroll]
    for i in 0..share {
        let layer = turn * share + i;
        let column = bank * group + layer;
        if layer < group && column < comptime!(layout.width as u32) {
            sums[own + (column + column / layout.plane) as usize] = totals[i as usize];
        }
    }
    sync_plane();
}
