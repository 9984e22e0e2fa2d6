//! Printing that never ends a program.

use std::{
    fmt,
    io::{self, Write},
    sync::OnceLock,
};

/// Why standard output lost lines, unless its reader left.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line to standard output. Never fails: a closed pipe is ignored, and [`lost`] reports
/// other failures later.
pub fn say(line: fmt::Arguments) {
    let written = writeln!(io::stdout().lock(), "{line}");
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Prints a line to standard error. Never fails.
pub fn note(line: fmt::Arguments) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Why [`say`] lost lines, if it did. A closed pipe does not count.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
