use std::{marker::PhantomData, ops::Deref};

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
use crate::topk::key::Element;

pub(super) const U32: ElemType = ElemType::UInt(UIntKind::U32);
pub(super) const SHORT: ElemType = ElemType::Int(IntKind::I16);

#[derive(Clone, Copy)]
pub(super) struct VectorCall<'a> {
    pub client: &'a Client,
    pub input: &'a Handle,
    pub dtype: ElemType,
    pub length: usize,
    pub options: &'a VectorOptions,
    pub index: ElemType,
    /// Receives subranges and concatenated elements, as u32.
    #[cfg(feature = "statistics")]
    pub stats: Option<&'a Handle>,
}

impl<'a> VectorCall<'a> {
    pub fn new(
        client: &'a Client,
        input: &'a Handle,
        dtype: ElemType,
        length: usize,
        options: &'a VectorOptions,
        index: ElemType,
    ) -> Self {
        Self {
            client,
            input,
            dtype,
            length,
            options,
            index,
            #[cfg(feature = "statistics")]
            stats: None,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct SubrangeCall<'a, E> {
    pub call: &'a VectorCall<'a>,
    pub partition: Partition,
    element: PhantomData<E>,
}

impl<'a, E: Element> SubrangeCall<'a, E> {
    pub fn new(call: &'a VectorCall<'a>, partition: Partition) -> Self {
        Self { call, partition, element: PhantomData }
    }

    pub fn key(&self) -> ElemType {
        E::Key::elem_type_native()
    }

    /// Delegate count.
    pub fn delegates(&self) -> usize {
        self.partition.delegates(self.call.length)
    }

    pub fn vector(&self) -> InputVector<'a> {
        self.call.input_vector::<E>()
    }
}

impl<'a, E> Deref for SubrangeCall<'a, E> {
    type Target = VectorCall<'a>;

    fn deref(&self) -> &VectorCall<'a> {
        self.call
    }
}

#[derive(Clone, Copy)]
pub(super) struct InputVector<'a> {
    pub client: &'a Client,
    pub dtype: ElemType,
    pub key: usize,
    pub length: usize,
    /// In bytes.
    pub offset: usize,
    pub tuning: Tuning,
}

impl InputVector<'_> {
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

    pub fn load_width(&self, exponent: u32) -> usize {
        let size = self.dtype.size();
        let widths = self.client.io_optimized_vector_sizes(size);
        let fits = |width: &usize| {
            *width <= 1usize << exponent && self.offset.is_multiple_of(width * size)
        };
        widths.filter(fits).max().unwrap_or(1)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Whole(Selection),
    Delegates(Partition, Box<AfterDelegates>),
}

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
    Finish(FinishConfig, FirstTopk),
    Concatenate { first: Selection, second: Selection },
    Filter { first: Selection, second: Selection, config: FilterConfig },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirstTopk {
    SingleLaunch(DelegateVectorConfig),
    InRegisters,
    Groups(DelegateVectorConfig),
    SeparateLaunch(Plan),
}

/// Workload; without delegates zeros except `length`.
#[cfg(feature = "statistics")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadStats {
    /// Vector length.
    pub length: usize,
    /// First top-k's input.
    pub delegates: usize,
    /// Scanned subranges (Rule 3).
    pub subranges: usize,
    /// Second top-k's input, including selected delegates of unscanned subranges.
    pub concatenated: usize,
}

#[cfg(feature = "statistics")]
impl WorkloadStats {
    /// Both inputs divided by `length`.
    pub fn share(&self) -> f64 {
        (self.delegates + self.concatenated) as f64 / self.length.max(1) as f64
    }
}
