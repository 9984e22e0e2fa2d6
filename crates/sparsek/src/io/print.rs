use std::{
    fmt,
    io::{self, Write},
    sync::OnceLock,
};

static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line; [`lost`] reports failures.
pub fn say(line: fmt::Arguments) {
    let written = writeln!(io::stdout().lock(), "{line}");
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

pub fn note(line: fmt::Arguments) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// First failure of [`say`].
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}
