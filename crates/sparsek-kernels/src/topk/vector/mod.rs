//! Top-k of one vector of any length, by the delegates of its subranges (Dr. Top-k).
//!
//! The best element of each subrange of 2^α is its delegate. The k best delegates choose k subranges, and these hold
//! all members: a subrange that is not chosen has k better elements outside. Among equal delegates the first are
//! chosen, so that exactly k subranges are, however many elements are equal. The vector is read once; what is
//! selected from then has n / 2^α and k · 2^α elements. The contract is that of [`super::topk`].

mod at_once;
mod bitonic;
mod by_cube;
mod call;
mod candidates;
mod choice;
mod chosen;
mod crew;
mod delegates;
mod elements;
mod few;
mod find;
mod finish;
mod finishing;
mod gather;
mod options;
mod pick;
mod plan;
mod radix;
mod sieve;
mod sift;
mod staged;
mod stats;
mod stream;
mod tuning;

use crate::device::require_dtype;
use cubecl::{
    ir::{ElemType, IntKind, UIntKind},
    prelude::*,
    server::Handle,
};

pub(crate) use few::{takes, topk_few};
pub use options::{Construction, Filter, Finish, Selection, Subrange, VectorOptions};
pub use stats::WorkloadStats;
pub use stream::{Best, TopkStream};
pub use tuning::Tuning;

use self::{call::Call, plan::Plan};
use crate::error::KernelError;
use crate::launch::allocate;
use crate::launch::argument;
use crate::topk::{
    key::{require_element, require_index, with_element},
    options::TopkOptions,
    row::job::Job,
    types::{Rows, Selected},
};

const U32: ElemType = ElemType::UInt(UIntKind::U32);
/// Of short keys.
const SHORT: ElemType = ElemType::Int(IntKind::I16);

/// Values and indices of the k best elements of the `length` elements of a buffer. `index` is the dtype of the
/// indices: i64, or i32 and u32 where these can number the elements.
///
/// Cost: one read of the vector, and what the selections from β n / 2^α delegates and k · 2^α elements of chosen
/// subranges take: for k up to 1024, and up to 2^18 elements of chosen subranges, one cube, which is the last of those that find the delegates of a
/// short vector and else has a launch of its own, or three where delegates are too many for it also by groups of subranges; else six reads
/// each by histograms (nine for 64-bit dtypes), from caches where they fit. α is half of log2(n / k), or less with groups; below n = 16 k, and
/// below n = 2^25 where k is above 1024, the whole vector is selected from. Scratch: the larger of β n / 2^α and
/// k · 2^α keys of 4 bytes (8 for 64-bit dtypes), as many positions of 4 bytes where β > 1, 12 k bytes and 112 KiB, and that
/// of a vector of all delegates, whatever the values; where k is above 1024 and a filter or several delegates are asked
/// for, both of these keys and 4 k · 2^α bytes. There is no gradient at this level: it is [`super::scatter`] of that of the
/// values. Paper: Dr. Top-k (Gaihre et al., 2021); deviations: D1 to D6 of `docs/papers.md`.
///
/// ```no_run
/// use cubecl::prelude::*;
/// use sparsek_kernels::topk::{VectorOptions, topk_vector};
///
/// # fn run(client: &cubecl::client::Client) -> Result<(), sparsek_kernels::KernelError> {
/// let scores = client.create_from_slice(f32::as_bytes(&[0.5, 3.0, -1.0, 3.0]));
/// let options = VectorOptions { sorted: true, ..VectorOptions::new(2) };
/// let (f32, i64) = (f32::elem_type_native(), i64::elem_type_native());
/// let best = topk_vector(client, &scores, f32, 4, &options, i64)?;
/// let indices = client.read_one(best.indices).unwrap();
/// assert_eq!(i64::from_bytes(&indices), [1, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`KernelError`] as for [`super::topk`], and when the selections would have to number 2^32 elements or more, or
/// cannot run on this device. Nothing is launched then.
pub fn topk_vector(
    client: &Client,
    input: &Handle,
    dtype: ElemType,
    length: usize,
    options: &VectorOptions,
    index: ElemType,
) -> Result<Selected, KernelError> {
    let vector = Call {
        client,
        input,
        dtype,
        length,
        options,
        index,
        stats: None,
    };
    select(&vector, &plan(&vector)?)
}

/// [`topk_vector`], and what it worked on. It waits for the device.
///
/// # Errors
///
/// [`KernelError`] as for [`topk_vector`], and when the device failed.
pub fn topk_vector_stats(
    client: &Client,
    input: &Handle,
    dtype: ElemType,
    length: usize,
    options: &VectorOptions,
    index: ElemType,
) -> Result<(Selected, WorkloadStats), KernelError> {
    let stats = allocate(client, "stats", 2, U32)?;
    let vector = Call {
        client,
        input,
        dtype,
        length,
        options,
        index,
        stats: Some(&stats),
    };
    let plan = plan(&vector)?;
    let selected = select(&vector, &plan)?;
    let stats = WorkloadStats::read(client, &plan, length, options.k, stats)?;
    Ok((selected, stats))
}

/// Checks a call and says what it launches.
fn plan(call: &Call) -> Result<Plan, KernelError> {
    let Call {
        client,
        input,
        dtype,
        length,
        options,
        index,
        ..
    } = *call;
    require_element(client, dtype)?;
    require_index(index, usize::MAX)?;
    require_dtype(client, index)?;
    argument(input, "input", dtype, length)?;
    let vector = with_element!(dtype, E => Ok(call.vector::<E>()))?;
    Plan::new(vector, options, index)
}

fn select(call: &Call, plan: &Plan) -> Result<Selected, KernelError> {
    let Call {
        client,
        input,
        dtype,
        length,
        options,
        index,
        ..
    } = *call;
    if options.k == 0 {
        return Ok(Selected {
            values: allocate(client, "values", 0, dtype)?,
            indices: allocate(client, "indices", 0, index)?,
        });
    }
    let selected = with_element!(dtype, E => call.run::<E>(plan))?;
    if !options.sorted {
        return Ok(selected);
    }
    let rows = Rows::contiguous(input.clone(), dtype, 1, length);
    let options = TopkOptions {
        largest: options.largest,
        sorted: true,
        ..TopkOptions::new(options.k)
    };
    let job = Job {
        client,
        input: &rows,
        options: &options,
        index,
    };
    job.order(selected.values, selected.indices)
}
