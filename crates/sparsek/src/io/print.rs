//! Lines for the standard output and the standard error that never end a program.

use std::{
    fmt,
    io::{self, Write},
    sync::OnceLock,
};

/// Why lines were lost on the standard output, unless its reader left.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line on the standard output. Never fails: a reader that has left wants no more, and
/// [`lost`] tells of any other failure once the work is saved.
pub fn say(line: fmt::Arguments) {
    let written = writeln!(io::stdout().lock(), "{line}");
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Prints a line on the standard error. Never fails.
pub fn note(line: fmt::Arguments) {
    // There is no other place to say that this one is gone.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Why [`say`] lost lines, if it did. A reader that has left loses none.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
