//! The commands. Each checks its whole input before writing a file.
mod common;
mod compare;
mod demo;
#[cfg(feature = "download")]
mod download;
mod eval;
mod export;
mod graphs;
mod train;

#[cfg(feature = "download")]
pub use self::download::download;
pub use self::{
    common::Ended, compare::compare, demo::demo, eval::eval, export::export, graphs::graphs,
    train::train,
};
