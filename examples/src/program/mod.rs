//! Arguments, messages and exit status.
mod output;
mod paths;

use std::{
    fmt::Display,
    io::{self, IsTerminal},
    process::ExitCode,
};

use clap::{
    Parser,
    error::{ContextKind, ContextValue},
};
use indicatif::{ProgressBar, ProgressStyle};
use sparsek::io::{print, text};

pub use self::{
    output::{commit, create, named},
    paths::check_paths,
};
pub use sparsek::io::print::{note, say};

/// Longest error message in characters.
const MAX_MESSAGE: usize = 1000;

/// Parses the command line; mistakes become one line. Call it first, on a single thread.
///
/// # Errors
/// The exit status, after a mistake, help or version.
pub fn arguments<P: Parser>() -> Result<P, ExitCode> {
    quiet_wayland();
    P::try_parse().map_err(|error| match error.use_stderr() {
        true => finish(Err(one_line(error))),
        false => {
            say(format_args!("{}", error.to_string().trim_end()));
            finish(Ok::<(), io::Error>(()))
        }
    })
}

/// libwayland complains without an absolute `XDG_RUNTIME_DIR` when graphics drivers look for a
/// server; a missing folder silences it.
fn quiet_wayland() {
    #[cfg(target_os = "linux")]
    {
        use std::{ffi::OsString, path::Path};

        const FOLDER: &str = "XDG_RUNTIME_DIR";
        let threads = std::fs::read_dir("/proc/self/task");
        let alone = threads.is_ok_and(|threads| threads.count() == 1);
        let usable = |folder: OsString| Path::new(&folder).is_absolute();
        if alone && !std::env::var_os(FOLDER).is_some_and(usable) {
            // SAFETY: no other thread runs that could read the environment.
            unsafe { std::env::set_var(FOLDER, "/nonexistent") };
        }
    }
}

/// The first paragraph of clap's message, on one line, with quoted words cut and escaped.
fn one_line(mut error: clap::Error) -> String {
    let shown: Vec<(ContextKind, ContextValue)> = error.context().filter_map(excerpt).collect();
    for (kind, value) in shown {
        error.insert(kind, value);
    }
    let text = error.to_string();
    let reason = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = reason.lines().map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_string()
}

/// Makes clap's quotes safe to print.
fn excerpt((kind, value): (ContextKind, &ContextValue)) -> Option<(ContextKind, ContextValue)> {
    let quoted =
        [ContextKind::InvalidArg, ContextKind::InvalidSubcommand, ContextKind::InvalidValue];
    match value {
        ContextValue::String(value) if quoted.contains(&kind) => {
            Some((kind, ContextValue::String(text::excerpt(value))))
        }
        _ => None,
    }
}

/// Prints an error, if any or if standard output failed, and returns exit status 2.
pub fn finish<E: Display>(done: Result<(), E>) -> ExitCode {
    let done = done.map_err(|error| error.to_string());
    let done = done.and_then(|()| match print::lost() {
        Some(reason) => Err(format!("standard output: {reason}")),
        None => Ok(()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            note(format_args!("error: {}", cut(&message)));
            ExitCode::from(2)
        }
    }
}

/// One line of at most [`MAX_MESSAGE`] characters.
fn cut(message: &str) -> String {
    let mut shown = text::clean(&message.chars().take(MAX_MESSAGE).collect::<String>());
    if message.chars().nth(MAX_MESSAGE).is_some() {
        shown.push('…');
    }
    shown
}

/// [`println!`] that never panics.
#[macro_export]
macro_rules! say {
    () => { $crate::program::say(format_args!("")) };
    ($($argument:tt)*) => { $crate::program::say(format_args!($($argument)*)) };
}

/// [`eprintln!`] that never panics.
#[macro_export]
macro_rules! note {
    ($($argument:tt)*) => { $crate::program::note(format_args!($($argument)*)) };
}

/// A progress bar, on terminals.
pub fn bar(length: usize) -> Option<ProgressBar> {
    let style = ProgressStyle::with_template("[{bar:24}] {human_pos}/{human_len} eta {eta}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let seen = io::stderr().is_terminal();
    seen.then(|| ProgressBar::new(length as u64).with_style(style))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[derive(Parser, Debug)]
    #[command(version)]
    struct Cli {
        #[arg(long)]
        #[allow(dead_code, reason = "only refused")]
        k: usize,
        #[arg(long)]
        #[allow(dead_code, reason = "only refused")]
        output: String,
    }

    #[rstest]
    #[case::control_characters("a\nb\u{1b}", "a b\\u{1b}")]
    #[case::whole("ä".repeat(1000), "ä".repeat(1000))]
    #[case::long("ä".repeat(1001), format!("{}…", "ä".repeat(1000)))]
    fn messages_are_cut(#[case] message: String, #[case] shown: String) {
        assert_eq!(cut(&message), shown);
    }

    #[rstest]
    #[case::no_number("--k three --output x", "'three'")]
    #[case::missing("--k 3", "--output <OUTPUT>")]
    #[case::none("", "--k <K> --output")]
    #[case::one_more("--k 3 --output x y", "'y'")]
    fn wrong_arguments_are_one_line(#[case] arguments: &str, #[case] word: &str) {
        let arguments = format!("program {arguments}");
        let error = Cli::try_parse_from(arguments.split_whitespace()).unwrap_err();
        let line = one_line(error);
        assert!(line.contains(word) && !line.contains('\n'), "{line}");
        assert!(!line.starts_with("error"), "{line}");
    }
}
