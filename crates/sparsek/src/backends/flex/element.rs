use burn::tensor::{DType, Element, Shape, TensorData, bf16, f16};
use burn_flex::FlexTensor;
use bytemuck::Pod;
use rayon::prelude::*;
use sparsek_kernels::topk::SUPPORTED_DTYPES;

use super::tuning::MIN_FILL;

macro_rules! with_type {
    ($dtype:expr, $name:ident => $body:expr, $refuse:path, $($variant:ident $rust:ty),*) => {
        match $dtype {
            $(
                burn::tensor::DType::$variant => {
                    type $name = $rust;
                    $body
                }
            )*
            dtype => $refuse(dtype),
        }
    };
}

macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {
        $crate::backends::flex::element::with_type!(
            $dtype, $element => $body, $crate::backends::flex::element::refuse_element,
            F32 f32, F64 f64, F16 burn::tensor::f16, BF16 burn::tensor::bf16,
            I32 i32, I64 i64, U32 u32
        )
    };
}

macro_rules! with_float {
    ($dtype:expr, $float:ident => $body:expr) => {
        $crate::backends::flex::element::with_type!(
            $dtype, $float => $body, $crate::backends::flex::element::refuse_float,
            F32 f32, F64 f64, F16 burn::tensor::f16, BF16 burn::tensor::bf16
        )
    };
}

macro_rules! with_index {
    ($dtype:expr, $int:ident => $body:expr) => {
        $crate::backends::flex::element::with_type!(
            $dtype, $int => $body, $crate::backends::flex::element::refuse_index,
            I32 i32, I64 i64, U32 u32, U16 u16, U8 u8
        )
    };
}

pub(super) use {with_element, with_float, with_index, with_type};

pub(super) fn refuse_element(dtype: DType) -> ! {
    panic!("dtype {dtype:?} is not supported by this operation (supported: {})", SUPPORTED_DTYPES)
}

pub(super) fn refuse_float(dtype: DType) -> ! {
    panic!("dtype {dtype:?} is not a float that this operation supports")
}

pub(super) fn refuse_index(dtype: DType) -> ! {
    panic!("dtype {dtype:?} is not supported for indices")
}

pub(super) trait Float: Element + Pod + PartialOrd {
    type Sum: Element + Pod + Default + std::ops::AddAssign + num_traits::Float;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}

macro_rules! float {
    ($float:ident, $sum:ident, $widen:expr, $narrow:expr) => {
        impl Float for $float {
            type Sum = $sum;
            fn widen(self) -> $sum {
                $widen(self)
            }
            fn narrow(sum: $sum) -> Self {
                $narrow(sum)
            }
        }
    };
}

float!(f32, f32, |x| x, |x| x);
float!(f64, f64, |x| x, |x| x);
float!(f16, f32, f16::to_f32, f16::from_f32);
float!(bf16, f32, bf16::to_f32, bf16::from_f32);

/// Each thread faults its own pages.
pub(super) fn filled<T: Copy + Send + Sync>(value: T, len: usize) -> Vec<T> {
    let values = rayon::iter::repeat_n(value, len);
    values.with_min_len(MIN_FILL).collect()
}

pub(super) fn from_vec<E: Element>(values: Vec<E>, shape: Shape) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}
