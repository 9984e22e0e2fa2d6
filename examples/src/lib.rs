//! What the example programs share.
pub mod backend;
pub mod npz;
pub mod program;
