use cubecl::{
    ir::{ElemType, FloatKind, IntKind, UIntKind},
    prelude::*,
};

use super::element::Element;
use crate::{device::require_dtype, error::KernelError};

macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {
        match $dtype {
            cubecl::ir::ElemType::Float(cubecl::ir::FloatKind::F32) => {
                type $element = f32;
                $body
            }
            cubecl::ir::ElemType::Float(cubecl::ir::FloatKind::F16) => {
                type $element = half::f16;
                $body
            }
            cubecl::ir::ElemType::Float(cubecl::ir::FloatKind::BF16) => {
                type $element = u16;
                $body
            }
            cubecl::ir::ElemType::Float(cubecl::ir::FloatKind::F64) => {
                type $element = f64;
                $body
            }
            cubecl::ir::ElemType::Int(cubecl::ir::IntKind::I32) => {
                type $element = i32;
                $body
            }
            cubecl::ir::ElemType::Int(cubecl::ir::IntKind::I64) => {
                type $element = i64;
                $body
            }
            cubecl::ir::ElemType::UInt(cubecl::ir::UIntKind::U32) => {
                type $element = u32;
                $body
            }
            dtype => Err($crate::error::KernelError::Dtype {
                dtype,
                supported: $crate::topk::types::SUPPORTED_DTYPES,
            }),
        }
    };
}

pub(crate) use with_element;

pub(crate) fn require_element(client: &Client, dtype: ElemType) -> Result<(), KernelError> {
    with_element!(dtype, E => {
        require_dtype(client, dtype)?;
        require_dtype(client, E::elem_type_native())?;
        require_dtype(client, <E as Element>::Key::elem_type_native())
    })
}

pub(crate) fn is_single(dtype: ElemType) -> bool {
    matches!(dtype, ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16))
}

pub(crate) fn require_index(dtype: ElemType, cols: usize) -> Result<(), KernelError> {
    let limit = match dtype {
        ElemType::Int(IntKind::I32 | IntKind::I64) | ElemType::UInt(UIntKind::U32) => usize::MAX,
        ElemType::UInt(UIntKind::U16) => 1 << 16,
        ElemType::UInt(UIntKind::U8) => 1 << 8,
        dtype => {
            return Err(KernelError::Dtype {
                dtype,
                supported: "i32, u32, i64, u16, u8 for indices",
            });
        }
    };
    if cols > limit {
        return Err(KernelError::RowTooLong { cols, limit });
    }
    Ok(())
}
