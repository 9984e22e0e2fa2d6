//! Runs commands, printing each first.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// The error is a message.
pub type Result<T = ()> = std::result::Result<T, String>;

/// Cargo with `arguments`, in the repository root.
pub fn cargo<I: IntoIterator<Item = S>, S: Into<OsString>>(arguments: I) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments.into_iter().map(Into::into)).current_dir(root());
    // The outer cargo's variables of this package would make build scripts run again and rebuild
    // Burn.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Root of the checkout that cargo runs this for. The compiled-in path is only a fallback:
/// checkouts may share a target directory.
pub fn root() -> PathBuf {
    let manifest =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// Path of a program of the workspace: beside this one.
pub fn built(name: &str) -> Result<PathBuf> {
    let own = env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    Ok(own.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX)))
}

/// Runs a command; fails unless it succeeds.
pub fn run(command: &mut Command) -> Result {
    match status(command)? {
        0 => Ok(()),
        code => Err(format!("exit status {code}: {}", show(command))),
    }
}

/// Runs a command; returns its exit status.
pub fn status(command: &mut Command) -> Result<i32> {
    say!("$ {}", show(command));
    let start = Instant::now();
    let status = command.status().map_err(|e| format!("{}: {e}", show(command)))?;
    say!("  {status}, {:.0} s", start.elapsed().as_secs_f64());
    Ok(status.code().unwrap_or(-1))
}

/// Whether a command succeeds; drops its output.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The command line.
pub fn show(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={:?} ", name.display(), value?)));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    variables.collect::<String>() + &words.join(" ")
}
