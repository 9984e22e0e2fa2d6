//! One tensor core instruction, `16 × 8 × 8` on TF32 with f32 sums, and the test whether a device
//! has it.

use cubecl::{
    cmma::MmaDefinition,
    features::MmaConfig,
    ir::{ElemType, FloatKind},
    prelude::*,
};

use crate::device::plane_size;

/// Units of the plane that the matrices of the instruction are spread over.
pub(crate) const LANES: u32 = 32;
/// Rows, columns and inner elements of the instruction.
const SHAPE: [u32; 3] = [16, 8, 8];

/// Two registers of a unit: its part of two adjacent rows of a product.
pub(crate) type Sums = Array<Vector<f32, Const<2>>>;
/// Four adjacent elements.
pub(crate) type Load = Vector<f32, Const<4>>;

/// An instruction for factors of a kind and f32 sums, of m rows, n columns and k inner elements.
pub(crate) fn instruction(factors: FloatKind, [m, n, k]: [u32; 3]) -> MmaConfig {
    MmaConfig {
        a_type: ElemType::Float(factors),
        b_type: ElemType::Float(factors),
        cd_type: ElemType::Float(FloatKind::F32),
        m,
        n,
        k,
    }
}

/// Whether the device has this [`instruction`], for planes of [`LANES`] units.
pub(crate) fn has_instruction(client: &Client, factors: FloatKind, size: [u32; 3]) -> bool {
    let mma = &client.features().matmul.mma;
    mma.contains(&instruction(factors, size)) && plane_size(client) == Some(LANES)
}

/// Whether tensor cores take f32 rounded to TF32.
pub(crate) fn has_tf32(client: &Client) -> bool {
    has_instruction(client, FloatKind::TF32, SHAPE)
}

/// Zero sums of a tile.
#[cube]
pub(crate) fn zeros() -> Sums {
    let mut sums = Sums::new(2usize);
    clear(&mut sums);
    sums
}

/// Sets the sums to zero.
#[cube]
pub(crate) fn clear(sums: &mut Sums) {
    sums[0] = Vector::zeroed();
    sums[1] = Vector::zeroed();
}

/// A register of a factor, rounded.
#[cube]
pub(crate) fn rounded(x: f32) -> Vector<tf32, Const<1>> {
    Vector::<tf32, Const<1>>::cast_from(Vector::<f32, Const<1>>::new(x))
}

/// `sums += a · b`, of 16 × 8 and 8 × 8 elements.
///
/// With `g` a quarter of its place in the plane and `t` the remainder, a unit passes
/// - of `a` the elements (g, t), (g + 8, t), (g, t + 4) and (g + 8, t + 4),
/// - of `b` the elements (t, g) and (t + 4, g),
///
/// and holds two sums from (g, 2 t) on and two from (g + 8, 2 t) on.
#[cube]
pub(crate) fn multiply(
    a: &Array<Vector<tf32, Const<1>>>,
    b: &Array<Vector<tf32, Const<1>>>,
    sums: &mut Sums,
) {
    let definition = MmaDefinition::<tf32, tf32, f32>::new(16usize, 8usize, 8usize);
    definition.execute_inplace(a, b, sums);
}
