//! HEAD

mod accumulator;
mod kernel;
mod launch;

pub(super) use self::launch::{check, launch};
