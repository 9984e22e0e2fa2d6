//! Printing that never ends the program, so that commands run to their end when nobody reads.

/// [`println!`] that never panics.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write;
        // The exit status says how it went.
        let _ = writeln!(std::io::stdout().lock(), $($argument)*);
    }};
}

/// [`eprintln!`] that never panics.
macro_rules! note {
    ($($argument:tt)*) => {{
        use std::io::Write;
        // There is no other place to say that this one is gone.
        let _ = writeln!(std::io::stderr().lock(), $($argument)*);
    }};
}
