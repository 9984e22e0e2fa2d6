//! What the products on tensor cores share: one instruction, and which requests it can serve.

use cubecl::{
    cmma::MmaDefinition,
    features::MmaConfig,
    ir::{ElemType, FloatKind},
    prelude::*,
};

use crate::device::plane_size;

/// Units of a plane: the instruction spreads its matrices over as many.
pub(crate) const LANES: u32 = 32;
/// Rows, columns and inner elements of the instruction.
const SHAPE: [u32; 3] = [16, 8, 8];

/// Two registers of a unit: what it holds of two neighbouring rows of a product.
pub(crate) type Sums = Array<Vector<f32, Const<2>>>;
/// Four neighbouring elements.
pub(crate) type Load = Vector<f32, Const<4>>;

/// What multiplies factors of a kind and adds up in f32, of so many rows, columns and inner elements.
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

/// Whether planes of [`LANES`] units have such an [`instruction`].
pub(crate) fn has_instruction(client: &Client, factors: FloatKind, size: [u32; 3]) -> bool {
    let mma = &client.features().matmul.mma;
    mma.contains(&instruction(factors, size)) && plane_size(client) == Some(LANES)
}

/// Whether tensor cores take f32 rounded to TF32.
pub(crate) fn has_tf32(client: &Client) -> bool {
    has_instruction(client, FloatKind::TF32, SHAPE)
}

/// Sums of a tile, all zero.
#[cube]
pub(crate) fn zeros() -> Sums {
    let mut sums = Sums::new(2usize);
    clear(&mut sums);
    sums
}

/// Begins anew.
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

/// `sums += a · b`, of 16 × 8 and 8 × 8 elements. With `g` the quarter of its place in the plane and `t` the rest, a unit passes of `a`
/// the elements (g, t), (g + 8, t), (g, t + 4) and (g + 8, t + 4), of `b` (t, g) and (t + 4, g), and holds of the sums two from
/// (g, 2 t) on and two from (g + 8, 2 t) on.
#[cube]
pub(crate) fn multiply(
    a: &Array<Vector<tf32, Const<1>>>,
    b: &Array<Vector<tf32, Const<1>>>,
    sums: &mut Sums,
) {
    let definition = MmaDefinition::<tf32, tf32, f32>::new(16usize, 8usize, 8usize);
    definition.execute_inplace(a, b, sums);
}
