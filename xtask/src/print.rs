//! Printing that ignores errors, so that a closed pipe does not stop a command.

/// [`println!`] that never panics.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write;
        // The exit status reports the result.
        let _ = writeln!(std::io::stdout().lock(), $($argument)*);
    }};
}

/// [`eprintln!`] that never panics.
macro_rules! note {
    ($($argument:tt)*) => {{
        use std::io::Write;
        // No other place is left to report to.
        let _ = writeln!(std::io::stderr().lock(), $($argument)*);
    }};
}
