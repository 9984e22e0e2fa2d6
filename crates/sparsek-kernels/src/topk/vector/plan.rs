//! What a vector is cut into, and how its parts are selected from.

use cubecl::{
    ir::{ElemType, IntKind, UIntKind},
    prelude::*,
};

use crate::{
    error::KernelError,
    topk::select::{MAX_COLS, is_llvmpipe},
};

/// Elements up to which one cube selects faster than many do in six launches: 32 of 2^20 took 0.045 ms with one cube for
/// the delegates and one for their subranges, 0.160 by digits (NVIDIA H200).
const ROW_LENGTH: usize = 1 << 14;
/// Most members for which subranges are filtered: each team reads as many delegates.
const FILTERED: usize = 1 << 12;
/// Part of the vector that filtered subranges may be at most: they are read twice.
const FILTERED_SHARE: usize = 32;
/// Elements of a piece of a subrange that a team filters, as an exponent.
pub(super) const PIECE: u32 = 11;
/// Elements for each member from which on delegates are found.
const SHARE: usize = 16;
/// The shortest and the longest subrange that is chosen, as exponents. Those for 128 of 2^30 differ little: 1.051 ms with
/// 2^10, 1.041 with 2^11, which is chosen, 1.037 with 2^12, 1.052 with 2^13 (NVIDIA H200).
const EXPONENTS: [u32; 2] = [3, 16];
/// Units of a cube of all kernels for vectors.
pub(super) const CUBE_UNITS: u32 = 256;
/// Most cubes of a kernel that goes through a vector in stretches.
pub(super) const MAX_CUBES: usize = 1024;
/// Loads of a unit under way at a time.
pub(super) const FLIGHT: usize = 8;

/// How long subranges are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subrange {
    /// By Rule 4, or no delegates where they save nothing.
    #[default]
    Auto,
    /// 2^α elements.
    Exponent(u32),
    /// No delegates: one selection from the whole vector.
    Whole,
}

/// How the k best of the delegates, and of the chosen subranges, are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// As a row where it is short, else by digits.
    #[default]
    Auto,
    /// As a row of [`crate::topk::topk`], in one launch.
    Rows,
    /// By histograms of digits, over many cubes.
    Radix,
}

/// Whether chosen subranges are filtered (Rule 2): of their elements only those that reach the least of their delegates
/// are selected from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// Where it saves time.
    #[default]
    Auto,
    /// Always; refused where it cannot be.
    On,
    /// Never.
    Off,
}

/// What to select from a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorOptions {
    /// Elements kept.
    pub k: usize,
    /// The greatest elements if true, else the least.
    pub largest: bool,
    /// Output ordered by value (best first), then by index; otherwise by index.
    pub sorted: bool,
    /// How long subranges are.
    pub subrange: Subrange,
    /// How delegates and chosen subranges are selected from.
    pub selection: Selection,
    /// Whether chosen subranges are filtered.
    pub filter: Filter,
}

impl VectorOptions {
    /// The k greatest in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            largest: true,
            sorted: false,
            subrange: Subrange::Auto,
            selection: Selection::Auto,
            filter: Filter::Auto,
        }
    }
}

/// What is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Of the subranges; none without delegates.
    pub exponent: Option<u32>,
    /// How delegates are selected from.
    pub first: Selection,
    /// How the chosen subranges, or the vector, are.
    pub last: Selection,
    /// Whether subranges are filtered.
    pub filter: bool,
}

impl Plan {
    pub fn new(
        client: &Client,
        dtype: ElemType,
        length: usize,
        options: &VectorOptions,
        index: ElemType,
    ) -> Result<Self, KernelError> {
        let k = options.k;
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
        let filter = |exponent: u32| filters(dtype, length, exponent, options);
        let exponent = match options.subrange {
            // Subranges that are filtered may be longer, so that a row holds the delegates.
            Subrange::Auto => rule4(length, k).map(|exponent| {
                let longer = length.div_ceil(ROW_LENGTH).next_power_of_two().ilog2();
                let longer = longer.max(exponent);
                if filter(longer).is_ok() {
                    longer
                } else {
                    exponent
                }
            }),
            Subrange::Exponent(exponent) => Some(exponent.min(length.max(1).ilog2())),
            Subrange::Whole => None,
        }
        .filter(|_| k > 0);
        let selection = |length: usize| selection(client, dtype, length, options.selection);
        let Some(exponent) = exponent else {
            if options.filter == Filter::On && k > 0 {
                return Err(refused("filter", "there are no delegates".into()));
            }
            let last = selection(length)?;
            return Ok(Self {
                exponent: None,
                first: last,
                last,
                filter: false,
            });
        };
        let count = length.div_ceil(1 << exponent);
        if count < k {
            return Err(refused(
                "delegates",
                format!("{length} elements have fewer than k = {k} subranges of 2^{exponent}"),
            ));
        }
        let first = selection(count)?;
        let filter = match (options.filter, filter(exponent)) {
            (Filter::Auto, able) => able.is_ok() && first == Selection::Rows,
            (Filter::Off, _) => false,
            (Filter::On, able) => {
                able?;
                if first != Selection::Rows {
                    let reason = format!("{count} delegates are not selected from as a row");
                    return Err(refused("filter", reason));
                }
                true
            }
        };
        Ok(Self {
            exponent: Some(exponent),
            first,
            last: if filter {
                Selection::Rows
            } else {
                selection(k << exponent)?
            },
            filter,
        })
    }
}

/// Whether subranges can be filtered, and where that is left to the library, whether it pays.
fn filters(
    dtype: ElemType,
    length: usize,
    exponent: u32,
    options: &VectorOptions,
) -> Result<(), KernelError> {
    let k = options.k;
    let slots = k << exponent;
    let refuse = |reason: String| Err(refused("filter", reason));
    if dtype.size() > 4 {
        return refuse(format!("keys of {dtype} have 8 bytes, a row's 4"));
    }
    if slots > MAX_COLS {
        return refuse(format!(
            "{slots} elements of subranges exceed the {MAX_COLS} of a row"
        ));
    }
    if options.filter == Filter::Auto
        && (k > FILTERED || slots > length / FILTERED_SHARE || slots <= ROW_LENGTH)
    {
        return refuse("it does not pay".into());
    }
    Ok(())
}

/// The exponent for which delegates and chosen subranges are about as many; none where they are as many as the vector.
fn rule4(length: usize, k: usize) -> Option<u32> {
    let share = length.checked_div(k)?;
    if share < SHARE {
        return None;
    }
    let exponent = share.ilog2() / 2;
    Some(exponent.clamp(EXPONENTS[0], EXPONENTS[1]))
}

fn selection(
    client: &Client,
    dtype: ElemType,
    length: usize,
    asked: Selection,
) -> Result<Selection, KernelError> {
    let rows = dtype.size() <= 4 && length <= MAX_COLS;
    let radix = length < u32::MAX as usize && !is_llvmpipe(client);
    let chosen = match asked {
        Selection::Auto if rows && (length <= ROW_LENGTH || !radix) => Selection::Rows,
        Selection::Auto => Selection::Radix,
        asked => asked,
    };
    match chosen {
        Selection::Rows if !rows => Err(refused(
            "rows",
            format!("{length} elements of {dtype}; a row has at most {MAX_COLS}, of 4 bytes each"),
        )),
        Selection::Radix if is_llvmpipe(client) => Err(refused(
            "radix",
            "llvmpipe lacks the workgroup memory layouts that it is compiled with".into(),
        )),
        Selection::Radix if !radix => Err(refused(
            "radix",
            format!("{length} elements; it numbers fewer than 2^32"),
        )),
        chosen => Ok(chosen),
    }
}

fn refused(routine: &'static str, reason: String) -> KernelError {
    KernelError::Routine { routine, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delegates_and_subranges_balance() {
        assert_eq!(rule4(1 << 30, 128), Some(11));
        assert_eq!(rule4(1 << 28, 1 << 20), Some(4));
        assert_eq!(rule4(1 << 20, 32), Some(7));
        assert_eq!(rule4(100, 50), None);
        assert_eq!(rule4(100, 0), None);
    }
}
