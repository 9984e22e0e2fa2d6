//! Types that the plan and the launches share.

use cubecl::{
    ir::{ElemType, IntKind, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{
    kernels::{concatenate::FilterConfig, delegates::DelegateVectorConfig, types::FinishConfig},
    options::{Selection, VectorOptions},
    tuning::Tuning,
};

pub(super) const U32: ElemType = ElemType::UInt(UIntKind::U32);
/// Dtype of 16-bit keys.
pub(super) const SHORT: ElemType = ElemType::Int(IntKind::I16);

/// A call of [`topk_vector`](super::topk_vector).
#[derive(Clone, Copy)]
pub(super) struct VectorCall<'a> {
    pub client: &'a Client,
    pub input: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub options: &'a VectorOptions,
    pub index: ElemType,
    /// Receives two u32: subranges scanned and elements concatenated.
    pub stats: Option<&'a Handle>,
}

/// The facts about a vector that a plan depends on.
#[derive(Clone, Copy)]
pub(super) struct InputVector<'a> {
    pub client: &'a Client,
    pub dtype: ElemType,
    pub key: usize,
    pub length: usize,
    /// Offset in the buffer, in bytes.
    pub offset: usize,
    pub tuning: Tuning,
}

impl InputVector<'_> {
    /// The delegate vector, as the input of the first top-k.
    pub fn delegate_vector(&self, partition: &Partition) -> Self {
        let key = match self.key {
            8 => UIntKind::U64,
            _ => UIntKind::U32,
        };
        Self {
            dtype: ElemType::UInt(key),
            length: partition.delegates(self.length),
            offset: 0,
            ..*self
        }
    }

    /// Widest load that the subranges and the alignment of the buffer allow.
    pub fn load_width(&self, exponent: u32) -> usize {
        let size = self.dtype.size();
        let widths = self.client.io_optimized_vector_sizes(size);
        let fits = |width: &usize| {
            *width <= 1usize << exponent && self.offset.is_multiple_of(width * size)
        };
        widths.filter(fits).max().unwrap_or(1)
    }
}

/// The kernels that a call launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Selects from the whole vector.
    Whole(Selection),
    /// Constructs delegates, then selects from their subranges.
    Delegates(Partition, Box<AfterDelegates>),
}

/// Division into subranges of `2^exponent` elements with `beta` delegates each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    pub exponent: u32,
    pub beta: usize,
    pub staged: bool,
}

impl Partition {
    pub fn delegates(&self, length: usize) -> usize {
        length.div_ceil(1 << self.exponent) * self.beta
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AfterDelegates {
    /// One cube filters and runs the second top-k.
    Finish(FinishConfig, FirstTopk),
    /// Copies the selected subranges between two selections.
    Concatenate { first: Selection, second: Selection },
    /// The same, filtered by Rules 2 and 3.
    Filter {
        first: Selection,
        second: Selection,
        config: FilterConfig,
    },
}

/// How a cube that finishes obtains the k best delegates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirstTopk {
    /// It is the last cube of the construction: all are in registers.
    SingleLaunch(DelegateVectorConfig),
    /// It loads all into registers.
    InRegisters,
    /// It selects the k best groups, then among their delegates.
    Groups(DelegateVectorConfig),
    /// Another plan selects them.
    SeparateLaunch(Plan),
}

/// Workload of a top-k by delegates, in elements; zeros without delegates, except `length`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadStats {
    /// Elements of the vector.
    pub length: usize,
    /// Input of the first top-k.
    pub delegates: usize,
    /// Subranges scanned: those with all delegates among the k best (Rule 3).
    pub subranges: usize,
    /// Input of the second top-k: the elements of scanned subranges, under Rule 2 those that reach
    /// the least selected delegate, and the selected delegates of all other subranges.
    pub concatenated: usize,
}

impl WorkloadStats {
    /// Inputs of both top-k steps as a share of the vector.
    pub fn share(&self) -> f64 {
        (self.delegates + self.concatenated) as f64 / self.length.max(1) as f64
    }
}
