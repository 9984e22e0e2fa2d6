//! How the programs begin and end.
use std::{
    error::Error,
    fmt::Display,
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

/// Reads the command line. What is wrong with it becomes one line; help and version go to the standard output.
///
/// # Errors
/// The exit status, when there is nothing left to do.
pub fn arguments<P: Parser>() -> Result<P, ExitCode> {
    P::try_parse().map_err(|error| match error.use_stderr() {
        true => finish(Err(one_line(&error))),
        false => {
            print!("{error}");
            ExitCode::SUCCESS
        }
    })
}

/// What is wrong, without the hints that follow.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let reason = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = reason.lines().map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_string()
}

/// One line on the standard error and exit status 2, if something went wrong.
pub fn finish<E: Display>(done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = error.to_string();
            eprintln!("error: {}", message.replace('\n', " "));
            ExitCode::from(2)
        }
    }
}

/// Finds out before the work is done whether a file can be where the result shall be.
///
/// # Errors
/// One line that names the file.
pub fn check_output(file: &Path) -> Result<(), Box<dyn Error>> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if folder.is_dir() && !file.is_dir() {
        return Ok(());
    }
    let (file, folder) = (file.display(), folder.display());
    Err(format!("{file}: there is no folder {folder}, or it is a folder itself").into())
}

/// A progress bar of so many steps, if somebody looks at it.
pub fn bar(length: usize) -> Option<ProgressBar> {
    let style = ProgressStyle::with_template("[{bar:24}] {human_pos}/{human_len} eta {eta}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let seen = io::stderr().is_terminal();
    seen.then(|| ProgressBar::new(length as u64).with_style(style))
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn wrong_arguments_are_one_line() {
        for (arguments, word) in [
            ("--k three --output x", "'three'"),
            ("--k 3", "--output <OUTPUT>"),
            ("", "--k <K> --output"),
            ("--k 3 --output x y", "'y'"),
        ] {
            let arguments = format!("program {arguments}");
            let error = Cli::try_parse_from(arguments.split_whitespace()).unwrap_err();
            let line = one_line(&error);
            assert!(line.contains(word) && !line.contains('\n'), "{line}");
            assert!(!line.starts_with("error"), "{line}");
        }
    }
}
