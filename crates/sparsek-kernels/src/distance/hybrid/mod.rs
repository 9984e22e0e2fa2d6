//! HEAD

mod kernel;
mod launch;
mod sums;
mod table;
mod types;

pub(super) use self::launch::{check, launch};
