//! HEAD

mod kernel;
mod launch;

pub use self::launch::multiplies;
pub(super) use self::launch::{check, check_size, check_values, launch, suits};
