//! Printing that never panics, so that records are written even if nobody reads the output.

/// [`println!`] that never panics.
macro_rules! say {
    () => { sparsek::io::print::say(format_args!("")) };
    ($($argument:tt)*) => { sparsek::io::print::say(format_args!($($argument)*)) };
}
