use cubecl::{cmma::MmaDefinition, ir::ElemType, prelude::*};
use half::f16;

use crate::{
    distance::{
        merge::pair::{Matrices, RowPair},
        prepare::packed::{BLOCK, GROUP, STEP},
        semiring::{Inner, Semiring},
        tuning::{STEPS_AHEAD, TENSOR_CORE_LEFT_PLANES, TENSOR_CORE_PLANES},
    },
    primitives::mma::{Sums, zeros},
};

pub(super) const LEFT: usize = GROUP * TENSOR_CORE_LEFT_PLANES;
pub(super) const RIGHT: usize = GROUP * TENSOR_CORE_PLANES / TENSOR_CORE_LEFT_PLANES;
const BLOCKS: usize = GROUP / 16;

type Load = Vector<u32, Const<4>>;
type Pair = Vector<f16, Const<2>>;

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct TensorCoreShape {
    first: usize,
    rows: usize,
    across: usize,
    steps: usize,
}

/// Lane `4g + t` has `a` as `Packed`, pairs of `b` at (g,2t), (g,2t+8), of sums at (g,2t),
/// (g+8,2t).
#[cube]
fn multiply(a: &Array<Pair>, b: &Array<Pair>, sums: &mut Sums) {
    let definition = MmaDefinition::<f16, f16, f32>::new(16usize, 8usize, 16usize);
    definition.execute_inplace(a, b, sums);
}

#[derive(CubeType)]
struct Side {
    first: usize,
    loads: Array<Load>,
}

#[cube]
impl Side {
    fn new(group: usize, steps: usize) -> Side {
        Side {
            first: group * steps * comptime!(BLOCKS * BLOCK) + UNIT_POS_X as usize,
            loads: Array::<Load>::new(comptime!(STEPS_AHEAD * BLOCKS)),
        }
    }

    fn read(&mut self, rows: &[Load], step: usize, #[comptime] turn: usize) {
        let at = self.first + step * comptime!(BLOCKS * BLOCK);
        #[unroll]
        for block in 0..BLOCKS {
            self.loads[comptime!(turn * BLOCKS + block)] = rows[at + comptime!(block * BLOCK)];
        }
    }

    fn pair(
        &self,
        #[comptime] turn: usize,
        #[comptime] block: usize,
        #[comptime] word: usize,
    ) -> Pair {
        Pair::reinterpret(self.loads[comptime!(turn * BLOCKS + block)].extract(word))
    }
}

#[cube]
fn multiply_step(x: &Side, y: &Side, tiles: &mut Sequence<Sums>, #[comptime] turn: usize) {
    let mut others = Sequence::<Array<Pair>>::new();
    #[unroll]
    for tile in 0..2 * BLOCKS {
        let mut other = Array::<Pair>::new(2usize);
        other[0] = y.pair(turn, comptime!(tile / 2), comptime!(tile % 2));
        other[1] = y.pair(turn, comptime!(tile / 2), comptime!(tile % 2 + 2));
        others.push(other);
    }
    #[unroll]
    for block in 0..BLOCKS {
        let mut factor = Array::<Pair>::new(4usize);
        #[unroll]
        for word in 0..4usize {
            factor[word] = x.pair(turn, block, word);
        }
        #[unroll]
        for tile in 0..2 * BLOCKS {
            multiply(&factor, &others[tile], &mut tiles[comptime!(block * 2 * BLOCKS + tile)]);
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn tensor_core_kernel<M: Semiring, S: Float>(
    left: &[Load],
    right: &[Load],
    matrices: Matrices<S>,
    output: &mut [S],
    shape: TensorCoreShape,
    #[comptime] half: bool,
    #[define(S)] _dtype: ElemType,
) {
    let across = shape.across.div_ceil(RIGHT);
    let plane = UNIT_POS_Y as usize;
    let top = CUBE_POS / across * LEFT + plane % TENSOR_CORE_LEFT_PLANES * GROUP;
    let side = CUBE_POS % across * RIGHT + plane / TENSOR_CORE_LEFT_PLANES * GROUP;
    // Planes never synchronize.
    if top >= shape.rows || side >= shape.across || (half && top > side) {
        terminate!();
    }
    let mut tiles = Sequence::<Sums>::new();
    #[unroll]
    for _ in 0..2 * BLOCKS * BLOCKS {
        tiles.push(zeros());
    }
    let mut x = Side::new(top / GROUP, shape.steps);
    let mut y = Side::new(side / GROUP, shape.steps);
    #[unroll]
    for turn in 0..STEPS_AHEAD {
        x.read(left, turn, turn);
        y.read(right, turn, turn);
    }
    let last = shape.steps - STEPS_AHEAD;
    let mut step = 0usize;
    while step < shape.steps {
        // Last steps reload.
        let next = select(step < last, step + STEPS_AHEAD, step);
        #[unroll]
        for turn in 0..STEPS_AHEAD {
            multiply_step(&x, &y, &mut tiles, turn);
            x.read(left, next + turn, turn);
            y.read(right, next + turn, turn);
        }
        step += STEPS_AHEAD;
    }

    let pair = RowPair::<S>::new(&matrices);
    let (quarter, rest) = (UNIT_POS_X as usize / 4, UNIT_POS_X as usize % 4);
    #[unroll]
    for tile in 0..2 * BLOCKS * BLOCKS {
        #[unroll]
        for part in 0..4usize {
            let (down, beside) = comptime!((part / 2, part % 2));
            let i = top + quarter + comptime!(tile / (2 * BLOCKS) * STEP + down * 8);
            let j = side + rest * 2 + comptime!(tile % (2 * BLOCKS) * 8 + beside);
            if i < shape.rows && j < shape.across {
                let mut total = S::cast_from(tiles[tile][down].extract(beside));
                if comptime!(M::STRATEGY.inner == Some(Inner::Quotients)) {
                    let norms = pair.left().norm(shape.first + i) * pair.right().norm(j);
                    total /= norms.sqrt();
                }
                if comptime!(!M::STRATEGY.direct) {
                    total = pair.finish::<M>(shape.first + i, j, total, S::new(0.0));
                }
                output[i * shape.across + j] = total;
            }
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn finish_kernel<M: Semiring, S: Float>(
    matrices: Matrices<S>,
    output: &mut [S],
    shape: TensorCoreShape,
    #[comptime] half: bool,
    #[define(S)] _dtype: ElemType,
) {
    let i = ABSOLUTE_POS / shape.across;
    let j = ABSOLUTE_POS - i * shape.across;
    if i >= shape.rows || (half && i > j) {
        terminate!();
    }
    let pair = RowPair::<S>::new(&matrices);
    output[ABSOLUTE_POS] = pair.finish::<M>(shape.first + i, j, output[ABSOLUTE_POS], S::new(0.0));
}
