//! Printing that never fails.

use std::{
    fmt,
    io::{self, Write},
    sync::OnceLock,
};

static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line. Ignores a closed pipe; [`lost`] reports other failures.
pub fn say(line: fmt::Arguments) {
    let written = writeln!(io::stdout().lock(), "{line}");
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Prints a line to standard error.
pub fn note(line: fmt::Arguments) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Why [`say`] lost lines, if it did.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
