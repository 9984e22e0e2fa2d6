use cubecl::{
    cmma::MmaDefinition,
    features::MmaConfig,
    ir::{ElemType, FloatKind},
    prelude::*,
};

use crate::device::plane_size;

pub(crate) const LANES: u32 = 32;
const SHAPE: [u32; 3] = [16, 8, 8];

pub(crate) type Sums = Array<Vector<f32, Const<2>>>;
pub(crate) type Load = Vector<f32, Const<4>>;

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

pub(crate) fn has_instruction(client: &Client, factors: FloatKind, size: [u32; 3]) -> bool {
    let mma = &client.features().matmul.mma;
    mma.contains(&instruction(factors, size)) && plane_size(client) == Some(LANES)
}

pub(crate) fn has_tf32(client: &Client) -> bool {
    has_instruction(client, FloatKind::TF32, SHAPE)
}

#[cube]
pub(crate) fn zeros() -> Sums {
    let mut sums = Sums::new(2usize);
    clear(&mut sums);
    sums
}

#[cube]
pub(crate) fn clear(sums: &mut Sums) {
    sums[0] = Vector::zeroed();
    sums[1] = Vector::zeroed();
}

#[cube]
pub(crate) fn rounded(x: f32) -> Vector<tf32, Const<1>> {
    Vector::<tf32, Const<1>>::cast_from(Vector::<f32, Const<1>>::new(x))
}

/// Computes `sums += a · b`, of 16 × 8 and 8 × 8 elements.
///
/// With g = lane / 4 and t = lane % 4, a unit passes:
///
/// - of `a`: (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
/// - of `b`: (t, g), (t + 4, g);
/// - of `sums`: (g, 2 t), (g, 2 t + 1), then (g + 8, 2 t), (g + 8, 2 t + 1).
#[cube]
pub(crate) fn multiply(
    a: &Array<Vector<tf32, Const<1>>>,
    b: &Array<Vector<tf32, Const<1>>>,
    sums: &mut Sums,
) {
    let definition = MmaDefinition::<tf32, tf32, f32>::new(16usize, 8usize, 8usize);
    definition.execute_inplace(a, b, sums);
}
