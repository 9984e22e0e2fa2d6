//! Checks cases against the oracle, then times them: a module for each bench.
//!
//! The runner `sparsek-bench` records every bench. `paper` reproduces the papers' tables and
//! figures; `report` writes docs/performance.md from the records; `compare` tells two runs apart.

#![allow(missing_docs, reason = "names of an internal crate say most")]

#[macro_use]
mod print;

pub mod case;
mod chart;
pub mod compare;
pub mod convolutions;
mod copy;
pub mod dense;
pub mod distance;
mod environment;
pub mod latency;
pub mod layers;
pub mod linear;
pub mod paper;
mod record;
pub mod report;
pub mod spmm;
pub mod startup;
pub mod table;
pub mod timing;
pub mod topk;
pub mod vector;
