use cubecl::prelude::*;

use super::layout::{RowLayout, RowRequest, element_offset, row_start};
use crate::{
    primitives::{infinity::infinity, team::Team},
    topk::{
        key::{Element, ordered_key},
        options::SearchConfig,
        threshold::register_row::{KeyRow, RegisterRow},
    },
};

#[derive(CubeType)]
pub(super) struct RowSource<'a, E: Element, N: Size> {
    input: &'a [Vector<E, N>],
    start: usize,
    pub layout: RowLayout,
    /// Elements before the row in its first load.
    pub head: u32,
    #[cube(comptime)]
    strided: bool,
    #[cube(comptime)]
    pub search: SearchConfig,
}

#[cube]
impl<'a, E: Element, N: Size> RowSource<'a, E, N> {
    pub fn new(
        input: &'a [Vector<E, N>],
        row: usize,
        first: u32,
        layout: RowLayout,
        #[comptime] strided: bool,
        #[comptime] search: SearchConfig,
    ) -> RowSource<'a, E, N> {
        let start = row_start(row, first, &layout, strided);
        RowSource::<'a, E, N> { input, start, layout, head: 0u32, strided, search }
    }

    /// Starts at the first column's load.
    pub fn of_request(
        input: &'a [Vector<E, N>],
        row: usize,
        request: &RowRequest,
        #[comptime] strided: bool,
        #[comptime] search: SearchConfig,
    ) -> RowSource<'a, E, N> {
        let head = request.first % N::value().comptime() as u32;
        let layout = request.layout;
        let start = row_start(row, request.first - head, &layout, strided);
        let layout = RowLayout {
            rows: layout.rows,
            cols: layout.cols + head,
            row_stride: layout.row_stride,
            col_stride: layout.col_stride,
        };
        RowSource::<'a, E, N> { input, start, layout, head, strided, search }
    }

    /// `column` counts from the first load.
    pub fn holds(&self, column: u32) -> bool {
        column >= self.head && column < self.layout.cols
    }

    fn offset(&self, column: u32) -> usize {
        self.start + element_offset(column, &self.layout, self.strided)
    }

    pub fn load(&self, column: u32) -> Vector<E, N> {
        self.input[self.offset(column) / N::value().comptime()]
    }

    /// Zeros past the end.
    pub fn load_inside(&self, column: u32) -> Vector<E, N> {
        let mut vector = Vector::<E, N>::zeroed();
        if column < self.layout.cols {
            vector = self.load(column);
        }
        vector
    }

    pub fn rest_from(&self, column: u32) -> RowSource<'a, E, N> {
        RowSource::<'a, E, N> {
            input: self.input,
            start: self.offset(column),
            layout: self.layout,
            head: select(column == 0, self.head, 0u32),
            strided: self.strided,
            search: self.search,
        }
    }
}

#[derive(CubeType)]
pub(super) struct LoadedRow<E: Element, N: Size> {
    pub vectors: Sequence<Vector<E, N>>,
    pub team: Team,
    #[cube(comptime)]
    pub search: SearchConfig,
}

#[cube]
impl<E: Element, N: Size> LoadedRow<E, N> {
    pub fn new(source: &RowSource<E, N>, team: Team) -> LoadedRow<E, N> {
        let mut vectors = Sequence::<Vector<E, N>>::new();
        #[unroll]
        for load in 0..comptime!(team.shape.loads) {
            let column = team.column(load);
            if comptime!(team.shape.exact_fit) {
                vectors.push(source.load(column));
            } else {
                let mut vector = Vector::<E, N>::zeroed();
                if team.loads(load) {
                    vector = source.load(column);
                }
                vectors.push(vector);
            }
        }
        LoadedRow::<E, N> { vectors, team, search: source.search }
    }

    pub fn value(&self, #[comptime] item: usize) -> E {
        let width = comptime!(self.team.shape.width);
        self.vectors[comptime!(item / width)].extract(comptime!(item % width))
    }

    /// Never selects items past the end. `opaque` shuffles keys, or compilers keep the values.
    pub fn keys(&self, #[comptime] opaque: bool) -> KeyRow<E> {
        let mut keys = Sequence::<E::Key>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let key = ordered_key::<E>(self.value(item), self.search.largest);
            let key = select(self.team.holds(item), key, E::Key::min_value());
            keys.push(if comptime!(opaque) { plane_shuffle(key, UNIT_POS_X) } else { key });
        }
        KeyRow::<E> {
            row: RegisterRow::<E::Key> { items: keys, team: self.team },
            search: self.search,
        }
    }

    /// Floats up to 32 bits.
    pub fn singles(&self) -> RegisterRow<f32> {
        let mut items = Sequence::<f32>::new();
        #[unroll]
        for item in 0..comptime!(self.team.shape.items()) {
            let single = E::single(self.value(item));
            let value = if comptime!(self.search.largest) { single } else { -single };
            items.push(select(self.team.holds(item), value, -infinity::<f32>()));
        }
        RegisterRow::<f32>::new(items, self.team)
    }
}
