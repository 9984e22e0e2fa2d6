//! What a vector is cut into, and how its parts are selected from.

use cubecl::{
    ir::{ElemType, IntKind, UIntKind},
    prelude::*,
};

use super::{
    bitonic::MAX_RUN,
    finish::FinishBlueprint,
    options::{Construction, Filter, Selection, Subrange, VectorOptions},
    sieve::{LOAD, SieveBlueprint},
    staged::{self, StagedBlueprint},
    tuning::Tuning,
};
use crate::{
    error::KernelError,
    launch::units_per_cube,
    topk::{
        routines::team::Shape,
        select::{MAX_COLS, NO_LAYOUTS, is_llvmpipe, plane_or_unit},
    },
};

/// Most members that one cube finds among the elements of chosen subranges.
const MEMBERS: usize = 1 << 10;
/// Units of that cube, bytes of delegates that each of them holds, and candidates in its shared memory.
const FINISH_UNITS: u32 = 1024;
const HELD_BYTES: usize = 64;
const ROOM: usize = 1 << 11;
/// Loads that they have under way at a time.
const FINISH_FLIGHT: usize = 4;
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
    Delegates(Cut),
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
    /// How the best delegates are found before one cube finishes, where it does not find them itself.
    pub first: Option<Box<Plan>>,
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
    Finish(FinishBlueprint),
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

    fn of(vector: Vector, options: &VectorOptions) -> Result<Self, KernelError> {
        let (k, length) = (options.k, vector.length);
        let forced = options.filter == Filter::On || options.delegates > 1;
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
            first: None,
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
        let keys = Vector {
            dtype: key_dtype(vector.key),
            length: cut.delegates(length),
            offset: 0,
            ..vector
        };
        let finish = match options.filter {
            Filter::Off => None,
            Filter::Auto if options.delegates == 1 => {
                let pays = k << exponent <= options.tuning.finished;
                let pays = pays && options.selection == Selection::Auto;
                finish(&vector, &cut, k, options.largest)
                    .ok()
                    .filter(|_| pays)
            }
            _ => finish(&vector, &cut, k, options.largest).ok(),
        };
        let Some(blueprint) = finish else {
            let sieve = forced
                .then(|| SieveBlueprint::new(&vector, &cut, options))
                .transpose()?;
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
            return Ok(Self::Delegates(Cut { last, ..cut }));
        };
        let auto = options.selection == Selection::Auto;
        let units = blueprint.shape.lanes as usize;
        let items = keys.length.div_ceil(units).next_power_of_two();
        let cut = if auto && items * vector.key <= HELD_BYTES {
            Cut {
                last: Last::Finish(FinishBlueprint { items, ..blueprint }),
                ..cut
            }
        } else {
            let options = VectorOptions {
                subrange: if auto {
                    Subrange::Auto
                } else {
                    Subrange::Whole
                },
                selection: options.selection,
                ..VectorOptions::new(k)
            };
            Cut {
                first: Some(Box::new(Self::of(keys, &options)?)),
                last: Last::Finish(blueprint),
                ..cut
            }
        };
        Ok(Self::Delegates(cut))
    }
}

/// Whether delegates are found through shared memory.
fn staged(vector: &Vector, exponent: u32, options: &VectorOptions) -> Result<bool, KernelError> {
    let client = vector.client;
    let hardware = &client.properties().hardware;
    let blueprint = StagedBlueprint {
        exponent,
        width: 1,
        units: units_per_cube(client, staged::UNITS),
        largest: options.largest,
    };
    let needed = blueprint.keys() * vector.key;
    let reason = if is_llvmpipe(client) {
        NO_LAYOUTS.into()
    } else if exponent > staged::MAX_EXPONENT {
        format!(
            "subranges of 2^{exponent}; at most 2^{} elements are staged",
            staged::MAX_EXPONENT
        )
    } else if options.delegates > 1 {
        format!("{} delegates of each subrange", options.delegates)
    } else if needed > hardware.max_shared_memory_size {
        let limit = hardware.max_shared_memory_size;
        format!("{needed} bytes of shared memory; there are {limit}")
    } else {
        let on_gpu = hardware.max_units_per_cube >= staged::UNITS;
        return Ok(match options.construction {
            Construction::Auto => plane_or_unit(client) == 1 && on_gpu,
            Construction::Planes => false,
            Construction::Staged => true,
        });
    };
    match options.construction {
        Construction::Staged => Err(refused("staged", reason)),
        _ => Ok(false),
    }
}

fn key_dtype(bytes: usize) -> ElemType {
    ElemType::UInt(if bytes == 8 {
        UIntKind::U64
    } else {
        UIntKind::U32
    })
}

/// The cube that finds k members in chosen subranges.
fn finish(
    vector: &Vector,
    cut: &Cut,
    k: usize,
    largest: bool,
) -> Result<FinishBlueprint, KernelError> {
    let client = vector.client;
    let refuse = |reason: String| Err(refused("filter", reason));
    if is_llvmpipe(client) {
        return refuse(NO_LAYOUTS.into());
    }
    if k > MEMBERS {
        return refuse(format!("k = {k}; one cube finds at most {MEMBERS} members"));
    }
    if k << cut.exponent > 1 << 31 || cut.delegates(vector.length) > 1 << 31 {
        return refuse("more than 2^31 delegates or elements of subranges".into());
    }
    let plane = plane_or_unit(client);
    // Without planes, every unit reads what every other one has.
    let wanted = if plane > 1 { FINISH_UNITS } else { CUBE_UNITS };
    let units = units_per_cube(client, wanted.max(plane));
    // The loads of a subrange are whole.
    let size = vector.dtype.size();
    let widths = client
        .io_optimized_vector_sizes(size)
        .filter(|width| *width <= 1 << cut.exponent && vector.offset.is_multiple_of(width * size));
    let width = widths.max().unwrap_or(1);
    let blueprint = FinishBlueprint {
        shape: Shape {
            width,
            ..Shape::of_cube(units, plane)
        },
        items: 0,
        delegates: cut.per_subrange as u32,
        flight: ((k << cut.exponent) / (width * units as usize)).clamp(1, FINISH_FLIGHT),
        members: k.next_power_of_two().max(32),
        room: ROOM,
        largest,
    };
    let (needed, limit) = (
        blueprint.shared(vector.key),
        client.properties().hardware.max_shared_memory_size,
    );
    if needed > limit {
        return refuse(format!(
            "{needed} bytes of shared memory; there are {limit}"
        ));
    }
    Ok(blueprint)
}

/// The exponent by Rule 4; none where delegates and the elements of chosen subranges are as many as the vector.
fn rule4(length: usize, k: usize, options: &VectorOptions) -> Option<u32> {
    let share = length.checked_div(k)?;
    if share < SHARE || (k > MEMBERS && length < options.tuning.long) {
        return None;
    }
    Some(options.tuning.exponent(share, options.delegates))
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
        Selection::Bitonic if is_llvmpipe(client) => Err(refused("bitonic", NO_LAYOUTS.into())),
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
