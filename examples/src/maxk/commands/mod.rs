//! The commands. Each checks its whole input before writing a file.
mod common;
mod compare;
mod demo;
mod eval;
mod export;
mod train;

pub use self::{
    common::Ended, compare::compare, demo::demo, eval::eval, export::export, train::train,
};
