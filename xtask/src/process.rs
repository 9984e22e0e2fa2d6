//! Running commands, each printed first.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// A failure, in words.
pub type Result<T = ()> = std::result::Result<T, String>;

/// Cargo itself, with `arguments`.
pub fn cargo<I: IntoIterator<Item = S>, S: Into<OsString>>(arguments: I) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments.into_iter().map(Into::into))
        .current_dir(root());
    // What the outer cargo says of this package makes build scripts run again, and with them all of
    // Burn be built again, whenever cargo is called from elsewhere.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// The repository's root: that of the checkout which cargo runs this for, as a target directory that several of them share may hold
/// this program as built in another.
pub fn root() -> PathBuf {
    let manifest =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// A program that the workspace has built, which lies where this one does.
pub fn built(name: &str) -> Result<PathBuf> {
    let own = env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    Ok(own.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX)))
}

/// Runs a command to its success.
pub fn run(command: &mut Command) -> Result {
    match status(command)? {
        0 => Ok(()),
        code => Err(format!("exit status {code}: {}", show(command))),
    }
}

/// Runs a command to its exit status.
pub fn status(command: &mut Command) -> Result<i32> {
    say!("$ {}", show(command));
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|e| format!("{}: {e}", show(command)))?;
    say!("  {status}, {:.0} s", start.elapsed().as_secs_f64());
    Ok(status.code().unwrap_or(-1))
}

/// Runs commands at the same time, each to its success; their lines are printed as they come.
pub fn run_together(commands: Vec<Command>) -> Result {
    let results = thread::scope(|scope| {
        let running: Vec<_> = commands
            .into_iter()
            .map(|command| scope.spawn(|| run_by_lines(command)))
            .collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended
            .map(|result| result.unwrap_or_else(|_| Err("a thread that waits panicked".into())))
            .collect::<Vec<_>>()
    });
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("; ")),
    }
}

/// [`run`], with whole lines.
fn run_by_lines(mut command: Command) -> Result {
    let shown = show(&command);
    say!("$ {shown}");
    let start = Instant::now();
    let failed = |e: std::io::Error| format!("{shown}: {e}");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        if let Some(err) = err {
            scope.spawn(|| copy_lines(err, |line| note!("{line}")));
        }
        if let Some(out) = out {
            copy_lines(out, |line| say!("{line}"));
        }
    });
    let status = child.wait().map_err(failed)?;
    say!(
        "$ {shown}\n  {status}, {:.0} s",
        start.elapsed().as_secs_f64()
    );
    match status.success() {
        true => Ok(()),
        false => Err(format!("{status}: {shown}")),
    }
}

fn copy_lines(from: impl Read, print: impl Fn(&str)) {
    for line in BufReader::new(from).split(b'\n') {
        match line {
            Ok(line) => print(&String::from_utf8_lossy(&line)),
            Err(_) => break,
        }
    }
}

/// Whether a command succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The command as one would type it.
pub fn show(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={:?} ", name.display(), value?)));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    variables.collect::<String>() + &words.join(" ")
}
