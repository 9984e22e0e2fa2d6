use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{config::MemoryConfig, layout::RowLayoutLaunch};
use crate::{
    device::plane_size,
    error::KernelError,
    launch::{argument, fill_zero, placeholder},
    topk::{
        options::{Method, SearchConfig, TopkOptions},
        plan::halvings,
        threshold::search::SearchParamsLaunch,
        types::Rows,
    },
};

pub(crate) enum Target<'a> {
    Both(&'a Handle, &'a Handle),
    Indices(&'a Handle),
    Dense(&'a Handle, Option<&'a Handle>),
}

pub(crate) struct Job<'a> {
    pub client: &'a Client,
    pub input: &'a Rows,
    pub options: &'a TopkOptions,
    pub index: ElemType,
    /// Spreads few rows over idle units; off to compare routines.
    pub spread: bool,
}

impl Job<'_> {
    pub(super) fn search(&self) -> SearchConfig {
        SearchConfig { method: self.options.method.kind(), largest: self.options.largest }
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

    pub(super) fn source(&self) -> Result<BufferArg, KernelError> {
        argument(&self.input.handle, "input", self.input.dtype, self.input.extent())
    }

    pub(super) fn elements(&self) -> usize {
        self.input.extent().max(self.input.rows * self.input.cols)
    }

    pub fn selected(&self) -> usize {
        self.input.rows * self.options.k
    }

    pub(super) fn outputs(&self, target: &Target) -> Result<(BufferArg, BufferArg), KernelError> {
        let dtype = self.input.dtype;
        let indices = |handle: Option<&Handle>| match handle {
            Some(handle) => argument(handle, "indices", self.index, self.selected()),
            None => argument(&placeholder(self.client), "indices", self.index, 1),
        };
        Ok(match target {
            Target::Both(values, index) => {
                (argument(values, "values", dtype, self.selected())?, indices(Some(*index))?)
            }
            Target::Indices(index) => {
                (argument(&placeholder(self.client), "values", dtype, 1)?, indices(Some(*index))?)
            }
            Target::Dense(values, index) => (
                argument(values, "values", dtype, self.input.rows * self.input.cols)?,
                indices(*index)?,
            ),
        })
    }

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

    pub fn zero(&self, values: &Handle) -> Result<(), KernelError> {
        fill_zero(self.client, values, self.input.dtype, self.input.rows * self.input.cols)
    }

    pub(super) fn memory_config(&self, target: &Target) -> MemoryConfig {
        MemoryConfig {
            search: self.search(),
            strided: self.input.col_stride != 1,
            values: !matches!(target, Target::Indices(_)),
            indices: !matches!(target, Target::Dense(_, None)),
            dense: matches!(target, Target::Dense(..)),
            ragged: self.input.lengths.is_some(),
        }
    }
}
