//! One plane per row, the row in registers (RTop-K, Fig. 3, with keys instead of floats, vector
//! loads, and one prefix sum per chunk instead of a ballot per element).
//!
//! A row of `cols` elements is cut into chunks of `PLANE_DIM × N` elements; in each, a unit holds N
//! neighbouring elements. Chunk, unit and element in this order are the index order.

use cubecl::{ir::ElemType, prelude::*};

use crate::topk::{
    element::{Element, ordered_key},
    options::Search,
    search::{
        Cursor, KeyRange, Row, RowExpand, SearchParams, Threshold, counts_as_finite, find_threshold,
    },
};

/// What a plane kernel is compiled for, besides the dtypes and the vector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaneBlueprint {
    pub search: Search,
    /// Chunks of a row, 1 to `MAX_PLANE_ITEMS / N`.
    pub chunks: usize,
    /// Whether the chunks cover the row exactly.
    pub exact_fit: bool,
    /// Whether neighbouring elements of a row are `col_stride` apart instead of 1.
    pub strided: bool,
    pub indices: bool,
    pub values: bool,
}

/// Where a row lies.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct RowLayout {
    pub rows: usize,
    pub cols: u32,
    pub row_stride: usize,
    pub col_stride: usize,
}

/// A row in the registers of a plane.
#[derive(CubeType)]
struct RegisterRow<E: Element> {
    keys: Array<E::Key>,
    /// Elements of the row.
    cols: u32,
    #[cube(comptime)]
    width: usize,
    #[cube(comptime)]
    search: Search,
    #[cube(comptime)]
    exact_fit: bool,
}

#[cube]
impl<E: Element> RegisterRow<E> {
    /// Whether the item of this unit lies in the row.
    fn holds(&self, #[comptime] item: usize) -> bool {
        if comptime!(self.exact_fit) {
            true.runtime()
        } else {
            let chunk = comptime!(item / self.width) as u32;
            let offset = comptime!(item % self.width) as u32;
            let width = comptime!(self.width as u32);
            (chunk * CUBE_DIM_X + UNIT_POS_X) * width + offset < self.cols
        }
    }
}

#[cube]
impl<E: Element> Row<E> for RegisterRow<E> {
    fn range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            let key = self.keys[item];
            low = min(low, select(self.holds(item), key, E::Key::max_value()));
            high = max(high, key);
        }
        KeyRange::<E::Key> {
            low: plane_min(low),
            high: plane_max(high),
        }
    }

    fn finite_range(&self) -> KeyRange<E::Key> {
        let mut low = E::Key::max_value();
        let mut high = E::Key::min_value();
        #[unroll]
        for item in 0..self.keys.len() {
            let key = self.keys[item];
            let counts = counts_as_finite::<E>(key, self.search) && self.holds(item);
            low = min(low, select(counts, key, E::Key::max_value()));
            high = max(high, select(counts, key, E::Key::min_value()));
        }
        KeyRange::<E::Key> {
            low: plane_min(low),
            high: plane_max(high),
        }
    }

    fn count(&self, key: E::Key) -> u32 {
        let mut count = 0u32;
        #[unroll]
        for item in 0..self.keys.len() {
            count += u32::cast_from(self.keys[item] >= key);
        }
        plane_sum(count)
    }
}

/// The raw elements of a row, beside their keys.
#[derive(CubeType)]
struct Loaded<E: Element, N: Size> {
    vectors: Array<Vector<E, N>>,
    row: RegisterRow<E>,
}

#[cube]
fn load_row<E: Element, N: Size>(
    input: &[Vector<E, N>],
    row: usize,
    layout: &RowLayout,
    #[comptime] blueprint: PlaneBlueprint,
) -> Loaded<E, N> {
    let width = N::value().comptime();
    let mut vectors = Array::<Vector<E, N>>::new(blueprint.chunks);
    let mut keys = Array::<E::Key>::new(comptime!(blueprint.chunks * width));

    #[unroll]
    for chunk in 0..blueprint.chunks {
        let column = (comptime!(chunk as u32) * CUBE_DIM_X + UNIT_POS_X) * comptime!(width as u32);
        let inside = comptime!(blueprint.exact_fit) || column < layout.cols;
        if inside {
            let start = row * layout.row_stride + element_offset(column, layout, blueprint.strided);
            vectors[chunk] = input[start / width];
        }
        let vector = vectors[chunk];
        #[unroll]
        for i in 0..width {
            let key = ordered_key::<E>(vector.extract(i), blueprint.search.largest);
            // Items past the end get the least key; they also come last, so they are never taken.
            keys[comptime!(chunk * width + i)] = select(inside, key, E::Key::min_value());
        }
    }

    Loaded::<E, N> {
        vectors,
        row: RegisterRow::<E> {
            keys,
            cols: layout.cols,
            width,
            search: blueprint.search,
            exact_fit: blueprint.exact_fit,
        },
    }
}

#[cube]
pub(super) fn element_offset(column: u32, layout: &RowLayout, #[comptime] strided: bool) -> usize {
    let column = column as usize;
    if strided {
        column * layout.col_stride
    } else {
        column
    }
}

/// Where this unit's items of a chunk begin in the selection, and the totals after the chunk.
#[cube]
fn chunk_cursor<K: Int>(
    keys: &Array<K>,
    threshold: &Threshold<K>,
    totals: &mut Cursor,
    #[comptime] first: usize,
    #[comptime] width: usize,
) -> Cursor {
    let mut packed = 0u32;
    #[unroll]
    for i in 0..width {
        let key = keys[comptime!(first + i)];
        let above = key > threshold.high;
        let level = key >= threshold.low && !above;
        packed += select(above, 1u32, select(level, 0x1_0000u32, 0u32));
    }
    let before = plane_exclusive_sum(packed);
    let total = plane_shuffle(before + packed, CUBE_DIM_X - 1);
    let cursor = Cursor {
        above: totals.above + (before & 0xffff),
        level: totals.level + (before >> 16),
    };
    totals.above += total & 0xffff;
    totals.level += total >> 16;
    cursor
}

/// Values and indices of the members, in index order.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn plane_select<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    values: &mut [E],
    indices: &mut [I],
    layout: RowLayout,
    params: SearchParams,
    #[comptime] blueprint: PlaneBlueprint,
    #[define(I)] _index: ElemType,
) {
    let position = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    // A plane without a row repeats the last one and writes nothing: planes never diverge.
    let writes = position < layout.rows;
    let row = select(writes, position, layout.rows - 1);
    let width = N::value().comptime();
    let loaded = load_row::<E, N>(input, row, &layout, blueprint);
    let threshold = find_threshold::<E, RegisterRow<E>>(&loaded.row, &params, blueprint.search);
    let quota = params.k - threshold.above;
    let start = row * params.k as usize;

    let mut totals = Cursor { above: 0, level: 0 };
    #[unroll]
    for chunk in 0..blueprint.chunks {
        let first = comptime!(chunk * width);
        let mut cursor =
            chunk_cursor::<E::Key>(&loaded.row.keys, &threshold, &mut totals, first, width);
        let column = (comptime!(chunk as u32) * CUBE_DIM_X + UNIT_POS_X) * comptime!(width as u32);
        #[unroll]
        for i in 0..width {
            let key = loaded.row.keys[comptime!(first + i)];
            let place = cursor.place::<E::Key>(key, &threshold, quota);
            if place.member && writes {
                let target = start + place.position as usize;
                if comptime!(blueprint.values) {
                    values[target] = loaded.vectors[chunk].extract(i);
                }
                if comptime!(blueprint.indices) {
                    indices[target] = I::cast_from(column + comptime!(i as u32));
                }
            }
        }
    }
}

/// The dense row with everything but the members set to zero; the indices of the members beside it
/// when the blueprint asks for them.
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn plane_mask<E: Element, I: Numeric, N: Size>(
    input: &[Vector<E, N>],
    output: &mut [Vector<E, N>],
    indices: &mut [I],
    layout: RowLayout,
    params: SearchParams,
    #[comptime] blueprint: PlaneBlueprint,
    #[define(I)] _index: ElemType,
) {
    let position = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let writes = position < layout.rows;
    let row = select(writes, position, layout.rows - 1);
    let width = N::value().comptime();
    let loaded = load_row::<E, N>(input, row, &layout, blueprint);
    let threshold = find_threshold::<E, RegisterRow<E>>(&loaded.row, &params, blueprint.search);
    let quota = params.k - threshold.above;

    let mut totals = Cursor { above: 0, level: 0 };
    #[unroll]
    for chunk in 0..blueprint.chunks {
        let first = comptime!(chunk * width);
        let mut cursor =
            chunk_cursor::<E::Key>(&loaded.row.keys, &threshold, &mut totals, first, width);
        let column = (comptime!(chunk as u32) * CUBE_DIM_X + UNIT_POS_X) * comptime!(width as u32);
        let mut kept = Vector::<E, N>::zeroed();
        #[unroll]
        for i in 0..width {
            let key = loaded.row.keys[comptime!(first + i)];
            let place = cursor.place::<E::Key>(key, &threshold, quota);
            let value = loaded.vectors[chunk].extract(i);
            kept.insert(i, select(place.member, value, E::from_int(0)));
            if comptime!(blueprint.indices) {
                if place.member && writes {
                    indices[row * params.k as usize + place.position as usize] =
                        I::cast_from(column + comptime!(i as u32));
                }
            }
        }
        if writes && (comptime!(blueprint.exact_fit) || column < layout.cols) {
            output[(row * layout.cols as usize + column as usize) / width] = kept;
        }
    }
}
