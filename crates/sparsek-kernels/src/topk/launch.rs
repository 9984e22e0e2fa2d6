//! From a checked request to launches: one plan per routine, then the sort.

use crate::device::plane_size;
use crate::device::require_dtype;
use crate::launch::fill_zero;
use cubecl::{
    ir::{ElemType, FloatKind, IntKind, UIntKind},
    prelude::*,
    server::Handle,
};

use super::Rows;
use super::Selected;
use super::element::Element;
use super::options::Method;
use super::options::Search;
use super::options::TopkOptions;
use super::routines::Routine;
use super::routines::cube::cube_select;
use super::routines::layout::RowLayoutLaunch;
use super::routines::unit::MemoryBlueprint;
use super::routines::unit::unit_select;
use super::search::SearchParamsLaunch;
use super::select::cube_units;
use super::select::halvings;
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::aligned;
use crate::launch::allocate;
use crate::launch::argument;

/// The dtypes that can be selected from, where the device has them.
pub const SUPPORTED_DTYPES: &str = "f32, f16, bf16, f64, i32, u32, i64";

/// Runs an expression with `$element` standing for the [`Element`] of an `ElemType`.
macro_rules! with_element {
    ($dtype:expr, $element:ident => $body:expr) => {
        match $dtype {
            ElemType::Float(FloatKind::F32) => {
                type $element = f32;
                $body
            }
            ElemType::Float(FloatKind::F16) => {
                type $element = half::f16;
                $body
            }
            ElemType::Float(FloatKind::BF16) => {
                type $element = u16;
                $body
            }
            ElemType::Float(FloatKind::F64) => {
                type $element = f64;
                $body
            }
            ElemType::Int(IntKind::I32) => {
                type $element = i32;
                $body
            }
            ElemType::Int(IntKind::I64) => {
                type $element = i64;
                $body
            }
            ElemType::UInt(UIntKind::U32) => {
                type $element = u32;
                $body
            }
            dtype => Err(KernelError::Dtype {
                dtype,
                supported: SUPPORTED_DTYPES,
            }),
        }
    };
}

pub(super) use with_element;

/// Where the members go.
pub(super) enum Target<'a> {
    Pairs(&'a Handle, &'a Handle),
    Indices(&'a Handle),
    Dense(&'a Handle, Option<&'a Handle>),
}

/// A checked request.
pub(super) struct Job<'a> {
    pub client: &'a Client,
    pub input: &'a Rows,
    pub options: &'a TopkOptions,
    pub index: ElemType,
}

/// Fails when the dtype cannot be selected from, here or anywhere.
pub(super) fn require_element(client: &Client, dtype: ElemType) -> Result<(), KernelError> {
    with_element!(dtype, E => {
        require_dtype(client, dtype)?;
        require_dtype(client, E::elem_type_native())?;
        require_dtype(client, <E as Element>::Key::elem_type_native())
    })
}

/// Whether f32 holds all values of the dtype.
pub(super) fn is_single(dtype: ElemType) -> bool {
    matches!(
        dtype,
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16)
    )
}

/// Fails when columns of rows of this length cannot be written in this dtype.
pub(super) fn require_index(dtype: ElemType, cols: usize) -> Result<(), KernelError> {
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

impl Job<'_> {
    /// Launches the selection in index order.
    pub fn select(&self, routine: Routine, target: Target) -> Result<(), KernelError> {
        with_element!(self.input.dtype, E => match routine {
            Routine::Plane | Routine::Block => self.registers::<E>(routine, target),
            Routine::Delegate => self.delegate::<E>(target),
            Routine::Stream => self.stream::<E>(target),
            Routine::Cube | Routine::Unit => self.memory::<E>(routine, target),
        })
    }

    /// Orders members that stand in index order by value, then index.
    pub fn order(&self, values: Handle, indices: Handle) -> Result<Selected, KernelError> {
        with_element!(self.input.dtype, E => self.sort::<E>(values, indices))
    }

    pub(super) fn search(&self) -> Search {
        Search {
            method: self.options.method.kind(),
            largest: self.options.largest,
        }
    }

    pub(super) fn params(&self) -> SearchParamsLaunch {
        let (max_iter, eps) = match self.options.method {
            Method::Exact => (0, 0.0),
            Method::EarlyStop(max_iter) => (halvings(max_iter, self.input.dtype), 0.0),
            Method::Precision(eps) => (0, eps),
        };
        SearchParamsLaunch::new(self.options.k as u32, max_iter, eps)
    }

    pub(super) fn layout(&self) -> RowLayoutLaunch {
        RowLayoutLaunch::new(
            self.input.rows,
            self.input.cols as u32,
            self.input.row_stride,
            self.input.col_stride,
        )
    }

    /// Elements of the largest buffer.
    pub(super) fn elements(&self) -> usize {
        self.input.extent().max(self.input.rows * self.input.cols)
    }

    pub fn members(&self) -> usize {
        self.input.rows * self.options.k
    }

    /// Value and index arguments; a buffer that is not asked for is a dummy that is never written.
    pub(super) fn outputs(&self, target: &Target) -> Result<(BufferArg, BufferArg), KernelError> {
        let dtype = self.input.dtype;
        let indices = |handle: Option<&Handle>| match handle {
            Some(handle) => argument(handle, "indices", self.index, self.members()),
            None => argument(
                &allocate(self.client, "indices", 1, self.index)?,
                "indices",
                self.index,
                1,
            ),
        };
        Ok(match target {
            Target::Pairs(values, index) => (
                argument(values, "values", dtype, self.members())?,
                indices(Some(*index))?,
            ),
            Target::Indices(index) => (
                argument(
                    &allocate(self.client, "values", 16, dtype)?,
                    "values",
                    dtype,
                    16,
                )?,
                indices(Some(*index))?,
            ),
            Target::Dense(values, index) => (
                argument(values, "values", dtype, self.input.rows * self.input.cols)?,
                indices(*index)?,
            ),
        })
    }

    /// [`Job::outputs`]; a dense result is made zero first.
    pub(super) fn cleared_outputs(
        &self,
        target: &Target,
    ) -> Result<(BufferArg, BufferArg), KernelError> {
        if let Target::Dense(values, _) = target {
            self.zero(values)?;
        }
        self.outputs(target)
    }

    pub(super) fn plane_size(&self) -> u32 {
        plane_size(self.client).expect("checked by select")
    }

    /// What is asked of a kernel that reads rows from memory.
    pub(super) fn memory_blueprint(&self, target: &Target) -> MemoryBlueprint {
        MemoryBlueprint {
            search: self.search(),
            strided: self.input.col_stride != 1,
            values: !matches!(target, Target::Indices(_)),
            indices: !matches!(target, Target::Dense(_, None)),
            dense: matches!(target, Target::Dense(..)),
            ragged: self.input.lengths.is_some(),
        }
    }

    fn memory<E: Element>(&self, routine: Routine, target: Target) -> Result<(), KernelError> {
        let input = self.input;
        let (values, indices) = self.outputs(&target)?;
        let blueprint = self.memory_blueprint(&target);
        let source = argument(&input.handle, "input", input.dtype, input.extent())?;
        // SAFETY: as in `plane`.
        unsafe {
            if routine == Routine::Unit {
                let grid = Grid::elementwise(self.client, input.rows, self.elements())?;
                unit_select::launch_unchecked::<E>(
                    self.client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    source,
                    values,
                    indices,
                    input.lengths_argument()?,
                    self.layout(),
                    self.params(),
                    blueprint,
                    self.index,
                );
            } else {
                let units = cube_units(self.client, input.cols);
                let dim = CubeDim::new_1d(units);
                let grid = Grid::new(self.client, input.rows, dim, self.elements())?;
                cube_select::launch_unchecked::<E>(
                    self.client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    source,
                    values,
                    indices,
                    input.lengths_argument()?,
                    self.layout(),
                    self.params(),
                    blueprint,
                    units,
                    self.index,
                );
            }
        }
        Ok(())
    }

    /// Zeros a dense result.
    pub fn zero(&self, values: &Handle) -> Result<(), KernelError> {
        fill_zero(
            self.client,
            values,
            self.input.dtype,
            self.input.rows * self.input.cols,
        )
    }
}

/// Elements of a load that rows, strides and offset of an input allow.
pub(super) fn load_widths(client: &Client, input: &Rows) -> impl Iterator<Item = usize> {
    let size = input.dtype.size();
    let sizes = client.io_optimized_vector_sizes(size);
    sizes.filter(move |width| {
        input.col_stride == 1
            && input.cols.is_multiple_of(*width)
            && input.row_stride.is_multiple_of(*width)
            && aligned(&input.handle, width * size)
    })
}
