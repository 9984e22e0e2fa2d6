use cubecl::{ir::ElemType, prelude::*};

use crate::distance::{
    merge::pair::{Matrices, MergedSums, RowPair, Sparse},
    semiring::Semiring,
};

const PADDING: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExpandSortConfig {
    /// Power of two ≥ any two rows.
    pub room: usize,
    /// Power of two.
    pub units: u32,
    pub half: bool,
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn expand_sort_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    output: &mut [S],
    first: usize,
    across: usize,
    #[comptime] config: ExpandSortConfig,
    #[define(S)] _dtype: ElemType,
) {
    if CUBE_POS >= output.len() {
        terminate!();
    }
    let i = CUBE_POS / across;
    let j = CUBE_POS - i * across;
    if comptime!(config.half) {
        if j < i {
            terminate!();
        }
    }
    let pair = RowPair::<S>::new(&matrices);
    let mut expanded = Expanded::<S>::new(config);
    expanded.expand(pair.left(), first + i, 0u32);
    expanded.expand(pair.right(), j, 1u32);
    expanded.sort();
    let sums = expanded.contract::<M>(pair.p);
    if UNIT_POS == 0 {
        let distance = pair.finish_merged::<M>(first + i, j, sums);
        output[CUBE_POS] = distance;
        if comptime!(config.half) {
            output[j * across + i] = distance;
        }
    }
}

#[derive(CubeType)]
struct Expanded<S: Float> {
    /// Twice the column, plus 1 if right.
    keys: Shared<[u32]>,
    values: Shared<[S]>,
    count: u32,
    #[cube(comptime)]
    config: ExpandSortConfig,
}

#[cube]
impl<S: Float> Expanded<S> {
    fn new(#[comptime] config: ExpandSortConfig) -> Expanded<S> {
        Expanded::<S> {
            keys: Shared::<[u32]>::new_slice(comptime!(config.room)),
            values: Shared::<[S]>::new_slice(comptime!(config.room)),
            count: 0u32.runtime(),
            config,
        }
    }

    fn expand(&mut self, rows: &Sparse<S>, row: usize, side: u32) {
        let begin = rows.start(row);
        let entries = (rows.start(row + 1) - begin) as u32;
        let mut entry = UNIT_POS;
        while entry < entries {
            let at = (self.count + entry) as usize;
            self.keys[at] = 2 * rows.column(begin + entry as usize) as u32 + side;
            self.values[at] = rows.value(begin + entry as usize);
            entry += comptime!(self.config.units);
        }
        self.count += entries;
    }

    /// Every unit must call it.
    fn sort(&mut self) {
        let mut padded = 1u32;
        while padded < self.count {
            padded *= 2;
        }
        let mut at = self.count + UNIT_POS;
        while at < padded {
            self.keys[at as usize] = PADDING.runtime();
            at += comptime!(self.config.units);
        }
        let mut run = 2u32;
        while run <= padded {
            let mut stride = run / 2;
            while stride > 0 {
                sync_cube();
                let mut pair = UNIT_POS;
                while pair < padded / 2 {
                    let low = 2 * pair - (pair & (stride - 1));
                    self.order(low, low + stride, low & run == 0);
                    pair += comptime!(self.config.units);
                }
                stride /= 2;
            }
            run *= 2;
        }
        sync_cube();
    }

    fn order(&mut self, low: u32, high: u32, ascending: bool) {
        let (low, high) = (low as usize, high as usize);
        let key = self.keys[low];
        let other = self.keys[high];
        let falls = other < key;
        if select(ascending, falls, !falls) {
            let value = self.values[low];
            self.keys[low] = other;
            self.keys[high] = key;
            self.values[low] = self.values[high];
            self.values[high] = value;
        }
    }

    /// Likewise; unit 0 has the sums.
    fn contract<M: Semiring>(&self, p: S) -> MergedSums<S> {
        let units = comptime!(self.config.units);
        let mut sums = MergedSums::<S>::none::<M>();
        let mut at = UNIT_POS;
        while at < self.count {
            let key = self.keys[at as usize];
            let value = self.values[at as usize];
            let right = key & 1u32 == 1u32;
            let mut other = S::new(0.0);
            let mut both = false.runtime();
            let mut leads = true.runtime();
            if right {
                if at > 0 {
                    leads = self.keys[(at - 1) as usize] + 1u32 != key;
                }
            } else {
                if at + 1 < self.count {
                    both = self.keys[(at + 1) as usize] == key + 1u32;
                    if both {
                        other = self.values[(at + 1) as usize];
                    }
                }
            }
            if leads {
                let a = select(right, S::new(0.0), value);
                let b = select(right, value, other);
                sums.column::<M>(a, b, both, p);
            }
            at += units;
        }
        let mut shared = Shared::<[S]>::new_slice(comptime!(3 * units as usize));
        let own = 3 * UNIT_POS as usize;
        shared[own] = sums.total;
        shared[own + 1] = sums.other;
        shared[own + 2] = sums.direct;
        let mut stride = comptime!(units / 2).runtime();
        while stride > 0 {
            sync_cube();
            if UNIT_POS < stride {
                let from = own + 3 * stride as usize;
                let mut part = MergedSums::<S> {
                    total: shared[from],
                    other: shared[from + 1],
                    direct: shared[from + 2],
                };
                sums.add_part::<M>(&mut part);
                shared[own] = sums.total;
                shared[own + 1] = sums.other;
                shared[own + 2] = sums.direct;
            }
            stride /= 2;
        }
        sums
    }
}
