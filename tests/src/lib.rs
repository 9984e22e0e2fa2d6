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
