//! The oracle, the data and the bookkeeping behind the `suite` binary.
//!
//! [`oracle`] states what every operation must return, in the plainest code that can say it and
//! with nothing in common with the kernels; the benchmarks verify against it too. [`data`] and
//! [`sparse`] make the inputs from seeds, [`backend`] opens the devices, and [`runner`] runs cases and counts what
//! passed, failed and was skipped, and why.
//!
//! `cargo xtask test` builds and runs the suite on every backend of the machine.

pub mod backend;
pub mod data;
pub mod element;
pub mod oracle;
pub mod runner;
pub mod sparse;
pub mod verify;
