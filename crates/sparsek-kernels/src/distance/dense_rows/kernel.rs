use cubecl::{ir::ElemType, prelude::*};

use crate::{
    distance::{
        prepare::range::{BLOCK, power},
        tuning::SquareRange,
        types::DenseForm,
    },
    primitives::infinity::infinity,
};

const NAN_BITS: u32 = 0x7fc0_0000;

#[cube]
fn scale_of<S: Float>(greatest: S) -> i32 {
    let bits = S::size_bits().comptime();
    let range = comptime!(SquareRange::of(bits == 64));
    let scale = comptime!(range.scale);
    let huge = greatest > power::<S>(comptime!(range.greatest).runtime());
    let tiny = greatest < power::<S>(comptime!(range.least).runtime());
    select(huge, -scale, select(tiny, scale, 0))
}

#[cube]
fn sum_of_plane<S: Float>(sum: S, #[comptime] plane: u32) -> S {
    if comptime!(plane > 1) { plane_sum(sum) } else { sum }
}

#[cube]
fn max_of_plane<S: Float>(greatest: S, #[comptime] plane: u32) -> S {
    if comptime!(plane > 1) { plane_max(greatest) } else { greatest }
}

/// By bits: shader compilers' minimum drops NaN.
#[cube]
fn at_most_two<S: Float>(value: S) -> S {
    let bits = S::size_bits().comptime();
    let above = if comptime!(bits == 64) {
        let bits = u64::reinterpret(value);
        bits > 0x4000_0000_0000_0000u64 && bits <= 0x7ff0_0000_0000_0000u64
    } else {
        let bits = u32::reinterpret(value);
        bits > 0x4000_0000u32 && bits <= 0x7f80_0000u32
    };
    select(above, S::new(2.0), value)
}

#[derive(CubeType)]
struct Pair<'a, S: Float> {
    queries: &'a [S],
    rows: &'a [S],
    query: usize,
    row: usize,
    columns: usize,
    #[cube(comptime)]
    plane: u32,
}

#[cube]
impl<'a, S: Float> Pair<'a, S> {
    fn new(
        queries: &'a [S],
        rows: &'a [S],
        query: usize,
        row: usize,
        columns: usize,
        #[comptime] plane: u32,
    ) -> Pair<'a, S> {
        Pair::<'a, S> { queries, rows, query, row, columns, plane }
    }

    fn product(&self) -> S {
        let mut total = S::new(0.0);
        let mut column = UNIT_POS_X as usize;
        while column < self.columns {
            let end = min(column + comptime!((BLOCK * self.plane) as usize), self.columns);
            let mut part = S::new(0.0);
            while column < end {
                part += self.queries[self.query + column] * self.rows[self.row + column];
                column += comptime!(self.plane as usize);
            }
            total += part;
        }
        sum_of_plane::<S>(total, self.plane)
    }

    fn squares(&self, scale: i32) -> (S, S) {
        let factor = power::<S>(scale);
        let mut total = S::new(0.0);
        let mut greatest = S::new(0.0);
        let mut column = UNIT_POS_X as usize;
        while column < self.columns {
            let end = min(column + comptime!((BLOCK * self.plane) as usize), self.columns);
            let mut part = S::new(0.0);
            while column < end {
                let difference = self.rows[self.row + column] - self.queries[self.query + column];
                greatest = max(greatest, difference.abs());
                let scaled = difference * factor;
                part += scaled * scaled;
                column += comptime!(self.plane as usize);
            }
            total += part;
        }
        (sum_of_plane::<S>(total, self.plane), max_of_plane::<S>(greatest, self.plane))
    }

    fn distance(&self, #[comptime] form: DenseForm) -> S {
        match comptime!(form) {
            DenseForm::Product => self.product(),
            DenseForm::Angle { .. } => {
                let (total, _) = self.squares(0i32);
                at_most_two::<S>(total * S::new(0.5))
            }
            DenseForm::Difference { root } => {
                let (mut total, greatest) = self.squares(0i32);
                let scale = scale_of::<S>(greatest);
                if scale != 0 {
                    let (scaled, _) = self.squares(scale);
                    total = scaled;
                }
                let back = power::<S>(-scale);
                if comptime!(root) { total.sqrt() * back } else { total * back * back }
            }
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn dense_distances_kernel<S: Float, I: Int>(
    queries: &[S],
    rows: &[S],
    candidates: ComptimeOption<&[I]>,
    output: &mut [S],
    pairs: usize,
    across: usize,
    columns: usize,
    row_count: usize,
    #[comptime] plane: u32,
    #[comptime] form: DenseForm,
    #[define(S, I)] _dtypes: [ElemType; 2],
) {
    let at = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if at >= pairs {
        terminate!();
    }
    let query = at / across;
    let row = #[comptime]
    match candidates {
        ComptimeOption::Some(candidates) => min(usize::cast_from(candidates[at]), row_count - 1),
        ComptimeOption::None => at - query * across,
    };
    let (query, row) = (query * columns, row * columns);
    let pair = Pair::<S>::new(queries, rows, query, row, columns, plane);
    let distance = pair.distance(form);
    if UNIT_POS_X == 0 {
        output[at] = distance;
    }
}

/// Sorts and evaluates a list, one cube per query.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn listed_distances_kernel<S: Float, I: Int>(
    queries: &[S],
    rows: &[S],
    listed: &[u32],
    counts: &[u32],
    distances: &mut [S],
    numbers: &mut [I],
    query_count: usize,
    columns: usize,
    row_count: usize,
    #[comptime] config: ListedConfig,
    #[define(S, I)] _dtypes: [ElemType; 2],
) {
    let query = CUBE_POS;
    if query >= query_count {
        terminate!();
    }
    let capacity = comptime!(config.capacity);
    let units = comptime!(config.plane * config.planes);
    let start = query * comptime!(capacity as usize);
    let found = counts[query];
    // Incomplete lists need no distance.
    let count = select(found > capacity, 0u32, found);
    let mut list = Shared::<[u32]>::new_slice(capacity as usize);
    let mut sorted = Shared::<[u32]>::new_slice(capacity as usize);
    let mut place = UNIT_POS;
    while place < count {
        list[place as usize] = listed[start + place as usize];
        place += units;
    }
    sync_cube();
    // Numbers differ, so their ranks do.
    let mut place = UNIT_POS;
    while place < count {
        let own = list[place as usize];
        let mut rank = 0u32;
        for other in 0..count {
            rank += select(list[other as usize] < own, 1u32, 0u32);
        }
        sorted[rank as usize] = own;
        place += units;
    }
    sync_cube();
    let farthest = if comptime!(config.form == DenseForm::Product) {
        -infinity::<S>()
    } else {
        infinity::<S>()
    };
    let unknown = S::cast_from(f32::reinterpret(NAN_BITS.runtime()));
    let padding = select(found > capacity, unknown, farthest);
    let last = u32::cast_from(row_count - 1);
    let mut place = UNIT_POS;
    while place < capacity {
        if place < count {
            numbers[start + place as usize] = I::cast_from(sorted[place as usize]);
        } else {
            numbers[start + place as usize] = I::cast_from(last);
            distances[start + place as usize] = padding;
        }
        place += units;
    }
    let mut slot = UNIT_POS_Y;
    while slot < count {
        let row = min(sorted[slot as usize] as usize, row_count - 1);
        let pair = Pair::<S>::new(
            queries,
            rows,
            query * columns,
            row * columns,
            columns,
            comptime!(config.plane),
        );
        let distance = pair.distance(comptime!(config.form));
        if UNIT_POS_X == 0 {
            distances[start + slot as usize] = distance;
        }
        slot += comptime!(config.planes);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListedConfig {
    pub plane: u32,
    pub planes: u32,
    pub capacity: u32,
    pub form: DenseForm,
}

#[derive(CubeType)]
struct UnitRow<'a, S: Float> {
    elements: &'a mut [S],
    start: usize,
    columns: usize,
    #[cube(comptime)]
    plane: u32,
}

#[cube]
impl<'a, S: Float> UnitRow<'a, S> {
    fn new(
        elements: &'a mut [S],
        start: usize,
        columns: usize,
        #[comptime] plane: u32,
    ) -> UnitRow<'a, S> {
        UnitRow::<'a, S> { elements, start, columns, plane }
    }

    fn divide(&mut self, norm: S) {
        let mut column = UNIT_POS_X as usize;
        while column < self.columns {
            let value = self.elements[self.start + column];
            self.elements[self.start + column] = value / norm;
            column += comptime!(self.plane as usize);
        }
    }

    fn shift(&mut self, mean: S) -> (S, S) {
        let mut total = S::new(0.0);
        let mut greatest = S::new(0.0);
        let mut column = UNIT_POS_X as usize;
        while column < self.columns {
            let end = min(column + comptime!((BLOCK * self.plane) as usize), self.columns);
            let mut part = S::new(0.0);
            while column < end {
                let value = self.elements[self.start + column] - mean;
                self.elements[self.start + column] = value;
                part += value;
                greatest = max(greatest, value.abs());
                column += comptime!(self.plane as usize);
            }
            total += part;
        }
        (sum_of_plane::<S>(total, self.plane), max_of_plane::<S>(greatest, self.plane))
    }

    fn scale(&mut self, scale: i32) -> (S, S) {
        let factor = power::<S>(scale);
        let mut total = S::new(0.0);
        let mut squares = S::new(0.0);
        let mut column = UNIT_POS_X as usize;
        while column < self.columns {
            let end = min(column + comptime!((BLOCK * self.plane) as usize), self.columns);
            let mut part = S::new(0.0);
            let mut part_squares = S::new(0.0);
            while column < end {
                let value = self.elements[self.start + column] * factor;
                self.elements[self.start + column] = value;
                part += value;
                part_squares += value * value;
                column += comptime!(self.plane as usize);
            }
            total += part;
            squares += part_squares;
        }
        (sum_of_plane::<S>(total, self.plane), sum_of_plane::<S>(squares, self.plane))
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn unit_rows_kernel<S: Float>(
    input: &[S],
    output: &mut [S],
    rows: usize,
    columns: usize,
    #[comptime] plane: u32,
    #[comptime] centered: bool,
    #[define(S)] _dtype: ElemType,
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if row >= rows {
        terminate!();
    }
    let start = row * columns;
    let mut greatest = S::new(0.0);
    let mut column = UNIT_POS_X as usize;
    while column < columns {
        let value = input[start + column];
        output[start + column] = value;
        greatest = max(greatest, value.abs());
        column += comptime!(plane as usize);
    }
    let mut unit = UnitRow::<S>::new(output, start, columns, plane);
    let greatest = max_of_plane::<S>(greatest, plane);
    let (total, mut squares) = unit.scale(scale_of::<S>(greatest));
    if comptime!(centered) {
        let count = S::cast_from(columns);
        // Removes the first mean's rounding.
        let (rest, _) = unit.shift(total / count);
        let (_, greatest) = unit.shift(rest / count);
        let (_, centered) = unit.scale(scale_of::<S>(greatest));
        squares = centered;
    }
    // √−1 is NaN everywhere; 0/0 is not.
    unit.divide(select(squares > S::new(0.0), squares, S::new(-1.0)).sqrt());
}
