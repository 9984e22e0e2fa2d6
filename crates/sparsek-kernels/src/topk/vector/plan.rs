//! What a vector is cut into, and how its parts are selected from.

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::is_llvmpipe;
use cubecl::{
    ir::{ElemType, IntKind, UIntKind},
    prelude::*,
};

use super::{
    bitonic::MAX_RUN,
    find::staged,
    finish::FinishBlueprint,
    finishing::{Way, finishing},
    options::{Filter, Finish, Selection, Subrange, VectorOptions},
    sieve::{LOAD, SieveBlueprint},
    tuning::Tuning,
};
use crate::error::KernelError;
use crate::topk::types::MAX_COLS;

/// Most members that one cube finds among the elements of chosen subranges.
pub(super) const MEMBERS: usize = 1 << 10;
/// Elements for each member from which on delegates are found.
const SHARE: usize = 16;
/// Units of a cube of all other kernels for vectors.
pub(super) const CUBE_UNITS: u32 = 256;
/// Units of those that count in histograms, and most cubes: 2^20 of 2^28 take 0.700 ms with 1024 cubes of 256, 0.693 with
/// 512 of 512, 0.718 with 264 of 1024 (NVIDIA H200).
pub(super) const HISTOGRAM_UNITS: u32 = 512;
pub(super) const MAX_CUBES: usize = 512;
/// Loads of a unit under way at a time.
pub(super) const FLIGHT: usize = 8;

/// What is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// One selection from the vector.
    Whole(Selection),
    Delegates(Box<Cut>),
}

/// A vector in subranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Subranges have `2^exponent` elements.
    pub exponent: u32,
    /// Delegates of each.
    pub per_subrange: usize,
    /// Whether they are found through shared memory.
    pub staged: bool,
    pub last: Last,
}

impl Cut {
    /// Delegates of a vector.
    pub fn delegates(&self, length: usize) -> usize {
        length.div_ceil(1 << self.exponent) * self.per_subrange
    }
}

/// How members are found in chosen subranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// Of the elements that reach the least delegate, by one cube.
    Finish(FinishBlueprint, Way),
    /// The best delegates by the first selection, the members among all elements of their subranges by the last one.
    Select { first: Selection, last: Selection },
    /// The same of fewer elements: without those that cannot be members.
    Sift {
        first: Selection,
        last: Selection,
        blueprint: SieveBlueprint,
    },
}

/// A vector to plan for.
#[derive(Clone, Copy)]
pub(super) struct Vector<'a> {
    pub client: &'a Client,
    pub dtype: ElemType,
    /// Bytes of a key.
    pub key: usize,
    pub length: usize,
    /// Bytes before it in its buffer.
    pub offset: usize,
    pub tuning: Tuning,
}

impl Vector<'_> {
    /// The keys of its delegates.
    pub fn of_delegates(&self, cut: &Cut) -> Self {
        Self {
            dtype: key_dtype(self.key),
            length: cut.delegates(self.length),
            offset: 0,
            ..*self
        }
    }
}

impl Plan {
    pub fn new(
        vector: Vector,
        options: &VectorOptions,
        index: ElemType,
    ) -> Result<Self, KernelError> {
        let (k, length) = (options.k, vector.length);
        if k > length {
            return Err(KernelError::KTooLarge { k, cols: length });
        }
        let most = match index {
            ElemType::Int(IntKind::I32) => i32::MAX as usize + 1,
            ElemType::UInt(UIntKind::U32) => u32::MAX as usize,
            _ => usize::MAX,
        };
        if length > most {
            return Err(KernelError::RowTooLong {
                cols: length,
                limit: most,
            });
        }
        if !(1..=4).contains(&options.delegates) {
            let reason = format!("{} of each subrange; 1 to 4 can be", options.delegates);
            return Err(refused("delegates", reason));
        }
        Self::of(vector, options)
    }

    pub(super) fn of(vector: Vector, options: &VectorOptions) -> Result<Self, KernelError> {
        let (k, length) = (options.k, vector.length);
        let forced =
            options.filter == Filter::On || options.delegates > 1 || options.finish != Finish::Auto;
        let exponent = match options.subrange {
            Subrange::Auto if length <= options.tuning.row && !forced => None,
            Subrange::Auto => rule4(length, k, options),
            Subrange::Exponent(exponent) => Some(exponent.min(length.max(1).ilog2())),
            Subrange::Whole => None,
        }
        .filter(|_| k > 0);
        let Some(exponent) = exponent else {
            if forced && k > 0 {
                return Err(refused("filter", "there are no delegates".into()));
            }
            return Ok(Self::Whole(selection(&vector, k, options.selection)?));
        };
        let cut = Cut {
            exponent,
            // No more than elements: what is not there would come before the next subrange's.
            per_subrange: options.delegates.min(1 << exponent),
            staged: staged(&vector, exponent, options)?,
            last: Last::Select {
                first: options.selection,
                last: options.selection,
            },
        };
        let subranges = length.div_ceil(1 << exponent);
        let short = length - ((subranges - 1) << exponent);
        let there = (subranges - 1) * cut.per_subrange + short.min(cut.per_subrange);
        if there < k {
            return Err(refused(
                "delegates",
                format!("{length} elements have {there} in subranges of 2^{exponent}; k is {k}"),
            ));
        }
        if let Some(cut) = finishing(&vector, &cut, options)? {
            return Ok(Self::Delegates(Box::new(cut)));
        }
        let sieve = forced
            .then(|| SieveBlueprint::new(&vector, &cut, options))
            .transpose()?;
        let keys = vector.of_delegates(&cut);
        let slots = k << exponent;
        let candidates = Vector {
            length: match sieve {
                None => slots,
                Some(_) => slots.next_multiple_of(LOAD),
            },
            ..keys
        };
        let first = selection(&keys, k, options.selection)?;
        let last = selection(&candidates, k, options.selection)?;
        let last = match sieve {
            None => Last::Select { first, last },
            Some(blueprint) => Last::Sift {
                first,
                last,
                blueprint,
            },
        };
        Ok(Self::Delegates(Box::new(Cut { last, ..cut })))
    }
}

fn key_dtype(bytes: usize) -> ElemType {
    ElemType::UInt(if bytes == 8 {
        UIntKind::U64
    } else {
        UIntKind::U32
    })
}

/// The exponent by Rule 4; none where delegates and the elements of chosen subranges are as many as the vector.
fn rule4(length: usize, k: usize, options: &VectorOptions) -> Option<u32> {
    let share = length.checked_div(k)?;
    if share < SHARE || (k > MEMBERS && length < options.tuning.long) {
        return None;
    }
    Some(options.tuning.exponent(length, k, options.delegates))
}

fn selection(vector: &Vector, k: usize, asked: Selection) -> Result<Selection, KernelError> {
    let Vector {
        client,
        dtype,
        length,
        ..
    } = *vector;
    let rows = dtype.size() <= 4 && length <= MAX_COLS;
    let histograms = length < u32::MAX as usize && !is_llvmpipe(client);
    let chosen = match asked {
        Selection::Auto if rows && (length <= vector.tuning.row || !histograms) => Selection::Rows,
        Selection::Auto => Selection::Bucket,
        asked => asked,
    };
    match chosen {
        Selection::Rows if !rows => Err(refused(
            "rows",
            format!("{length} elements of {dtype}; a row has at most {MAX_COLS}, of 4 bytes each"),
        )),
        Selection::Radix | Selection::Bucket if is_llvmpipe(client) => Err(refused(
            "histograms",
            "llvmpipe lacks the workgroup memory layouts that they are compiled with".into(),
        )),
        Selection::Radix | Selection::Bucket if !histograms => Err(refused(
            "histograms",
            format!("{length} elements; they number fewer than 2^32"),
        )),
        Selection::Bitonic if is_llvmpipe(client) => {
            Err(refused("bitonic", LLVMPIPE_REFUSAL.into()))
        }
        Selection::Bitonic if k > MAX_RUN || length >= u32::MAX as usize => Err(refused(
            "bitonic",
            format!("{k} of {length} elements; it finds at most {MAX_RUN} of fewer than 2^32"),
        )),
        chosen => Ok(chosen),
    }
}

pub(super) fn refused(routine: &'static str, reason: String) -> KernelError {
    KernelError::Routine { routine, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delegates_and_subranges_balance() {
        let exponent = |length, k| rule4(length, k, &VectorOptions::new(k));
        assert_eq!(exponent(1 << 30, 128), Some(11));
        assert_eq!(exponent(1 << 28, 1 << 20), Some(4));
        assert_eq!(exponent(1 << 20, 32), Some(7));
        assert_eq!(exponent(1 << 24, 1 << 16), None);
        assert_eq!(exponent(100, 50), None);
        assert_eq!(exponent(100, 0), None);
    }
}
