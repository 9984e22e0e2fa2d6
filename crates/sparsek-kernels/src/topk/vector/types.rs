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
    /// Two u32 that the last kernel writes: subranges scanned and elements concatenated.
    pub stats: Option<&'a Handle>,
}

/// The facts about a vector that a plan depends on.
#[derive(Clone, Copy)]
pub(super) struct InputVector<'a> {
    pub client: &'a Client,
    pub dtype: ElemType,
    /// Bytes of a key.
    pub key: usize,
    pub length: usize,
    /// Offset of the vector in its buffer, in bytes.
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

    /// Widest load that fits a subrange of `2^exponent` elements and the alignment of the buffer.
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
    /// Builds the delegate vector, then selects from the subranges of the best delegates.
    Delegates(Partition, Box<AfterDelegates>),
}

/// How the vector is divided into subranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// Subranges have `2^exponent` elements (the paper's α).
    pub exponent: u32,
    /// Delegates of each subrange (the paper's β).
    pub beta: usize,
    /// Whether delegates are constructed through shared memory.
    pub staged: bool,
}

impl Partition {
    /// Length of the delegate vector.
    pub fn delegates(&self, length: usize) -> usize {
        length.div_ceil(1 << self.exponent) * self.beta
    }
}

/// The steps that follow the construction of the delegate vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AfterDelegates {
    /// One cube filters by Rule 2 and runs the second top-k.
    Finish(FinishConfig, FirstTopk),
    /// First top-k, copy of the selected subranges, second top-k.
    Concatenate { first: Selection, second: Selection },
    /// The same, with Rules 2 and 3 applied to the copy.
    Filter {
        first: Selection,
        second: Selection,
        config: FilterConfig,
    },
}

/// How the cube that finishes obtains the k best delegates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirstTopk {
    /// It is the last cube of the construction and holds all delegates in registers.
    SingleLaunch(DelegateVectorConfig),
    /// It holds all delegates in registers.
    InRegisters,
    /// It holds the best delegate of each group, then all delegates of the k best groups.
    Groups(DelegateVectorConfig),
    /// A plan of its own selects them from the delegate vector.
    SeparateLaunch(Plan),
}

/// Workload of a top-k by delegates, in elements. All but `length` are zero without delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadStats {
    /// Elements of the vector.
    pub length: usize,
    /// Elements of the delegate vector, the input of the first top-k.
    pub delegates: usize,
    /// Subranges that were scanned: those with all delegates among the k best (Rule 3).
    pub subranges: usize,
    /// Elements of the concatenated vector, the input of the second top-k. Rule 2 keeps those
    /// that reach the least of the k best delegates. The best delegates of subranges that were not
    /// scanned count as well.
    pub concatenated: usize,
}

impl WorkloadStats {
    /// Inputs of both top-k steps as a share of the vector.
    pub fn share(&self) -> f64 {
        (self.delegates + self.concatenated) as f64 / self.length.max(1) as f64
    }
}
