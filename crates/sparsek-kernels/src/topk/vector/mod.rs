//! Top-k of one vector of any length: Dr. Top-k (Gaihre et al., 2021).
//!
//! ```text
//! delegates    <- greatest element of each subrange of 2^α elements
//! selected     <- k best delegates, ties by position  (first top-k)
//! concatenated <- elements of their subranges, filtered by >= min(selected) (Rule 2)
//! result       <- k best of concatenated              (second top-k)
//! ```
//!
//! Rule 1: a subrange without selected delegate has k better elements outside. Rule 3: β delegates
//! per subrange. Rule 4 chooses α. Deviations: D1 to D6 of `docs/papers.md`.

#[cfg(feature = "kernels")]
mod kernels;
#[cfg(feature = "kernels")]
mod launch;
mod options;
#[cfg(feature = "kernels")]
mod plan;
#[cfg(feature = "kernels")]
mod stream;
mod tuning;
#[cfg(feature = "kernels")]
mod types;

#[cfg(feature = "kernels")]
use cubecl::{ir::ElemType, prelude::*, server::Handle};

pub use options::{
    Construction, Filter, Finish, Selection, Subrange, VectorOptions, VectorStrategy,
};
pub use tuning::Tuning;

#[cfg(feature = "kernels")]
pub use self::stream::{Best, TopkStream};
#[cfg(feature = "kernels")]
use self::types::VectorCall;
#[cfg(feature = "statistics")]
pub use self::types::WorkloadStats;
#[cfg(feature = "kernels")]
pub(crate) use self::{launch::long_rows::topk_long_rows, plan::takes_rows};
#[cfg(feature = "kernels")]
use crate::{error::KernelError, topk::types::Selected};

/// Selects the k best of the first `length` elements, as [`topk`](super::topk).
///
/// `index` is i64, or i32 or u32 if it can number the elements. Gradient:
/// [`scatter`](super::scatter) of the values' gradient.
///
/// # Cost
///
/// - Reads the vector once, then β·n/2^α delegates and k·2^α elements; α is about
///   log2(n/k)/2. By default no delegates if n ≤ 2^15, n < 16·k, or n < 2^25 and k > 1024.
/// - One cube selects if k ≤ 1024 and k·2^α ≤ 2^18, in one launch for short vectors; else
///   histograms read each input six times (nine for 64-bit dtypes).
/// - Scratch: max(β·n/2^α, k·2^α) keys of 4 or 8 bytes, as many 4-byte positions if β > 1,
///   12·k bytes, 112 KiB, and selection from the delegates. If k > 1024 with filter or β > 1:
///   both sets of keys and 4·k·2^α bytes.
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
/// Errors as [`topk`](super::topk), or if a selection would number 2^32 elements or cannot run.
#[cfg(feature = "kernels")]
pub fn topk_vector(
    client: &Client,
    input: &Handle,
    dtype: ElemType,
    length: usize,
    options: &VectorOptions,
    index: ElemType,
) -> Result<Selected, KernelError> {
    VectorCall::new(client, input, dtype, length, options, index).topk()
}

/// As [`topk_vector`], with the workload; waits for the device. Errors if it failed.
#[cfg(feature = "statistics")]
pub fn topk_vector_stats(
    client: &Client,
    input: &Handle,
    dtype: ElemType,
    length: usize,
    options: &VectorOptions,
    index: ElemType,
) -> Result<(Selected, WorkloadStats), KernelError> {
    VectorCall::new(client, input, dtype, length, options, index).topk_with_stats()
}
