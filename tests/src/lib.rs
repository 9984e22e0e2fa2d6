//! Oracle, inputs and bookkeeping of the `suite` test.
//!
//! [`oracle`] defines what each operation returns, in plain code that shares nothing with the
//! kernels. The benchmarks verify against it too. [`data`] and [`sparse`] draw inputs from seeds,
//! [`backend`] opens devices, [`runner`] runs the cases and counts the results.
//!
//! `cargo xtask test` runs the suite on every backend.

#![allow(missing_docs, reason = "names of an internal crate say most")]

pub mod backend;
pub mod data;
pub mod element;
pub mod oracle;
pub mod panics;
pub mod runner;
pub mod sparse;
pub mod verify;

/// Runs the listings of docs/guide.
#[cfg(all(doctest, feature = "flex"))]
mod guide {
    #[doc = include_str!("../../docs/guide/src/why.md")]
    mod why {}
    #[doc = include_str!("../../docs/guide/src/topk.md")]
    mod topk {}
    #[doc = include_str!("../../docs/guide/src/layers.md")]
    mod layers {}
    #[doc = include_str!("../../docs/guide/src/sparse.md")]
    mod sparse {}
    #[doc = include_str!("../../docs/guide/src/graphs.md")]
    mod graphs {}
    #[doc = include_str!("../../docs/guide/src/devices.md")]
    mod devices {}
    #[doc = include_str!("../../docs/guide/src/adding.md")]
    mod adding {}
}
