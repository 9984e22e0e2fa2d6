//! Printing that never ends the program: records are written when nobody reads the lines.

/// [`println!`] that never panics.
macro_rules! say {
    () => { sparsek::io::print::say(format_args!("")) };
    ($($argument:tt)*) => { sparsek::io::print::say(format_args!($($argument)*)) };
}
