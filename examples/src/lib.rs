//! Shared code of the example programs.
pub mod backend;
pub mod chart;
pub mod npz;
pub mod program;
