//! HEAD

mod kernel;
mod launch;
mod tile;

pub(super) use self::launch::{check, launch};
