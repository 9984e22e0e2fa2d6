//! Runs programs with and without a fault.
use std::{
    env, fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One call fails.
    Fail,
    /// The disk is full from this call on.
    Full,
    /// The program is killed in this call.
    Kill,
}

pub const KINDS: [Kind; 3] = [Kind::Fail, Kind::Full, Kind::Kill];

/// Numbers of the calls to try, without end.
pub fn points(kind: Kind) -> impl Iterator<Item = usize> {
    let all = env::var("FAULTS").is_ok_and(|value| value == "all");
    let stride = if all { 1 } else { 7 };
    (1 + (kind as usize * 2) % stride..).step_by(stride)
}

/// A working directory, removed on drop.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("sparsek-faults-{}-{name}", std::process::id());
        let path = env::temp_dir().canonicalize().unwrap().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    /// Removes its content.
    pub fn clear(&self) {
        fs::remove_dir_all(&self.path).unwrap();
        fs::create_dir_all(&self.path).unwrap();
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// All files in it and below, except locks.
    pub fn names(&self) -> Vec<String> {
        fn below(folder: &Path, prefix: &str, names: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                match entry.path().is_dir() {
                    true => below(&entry.path(), &format!("{name}/"), names),
                    false => names.push(name),
                }
            }
        }
        let mut names = Vec::new();
        below(&self.path, "", &mut names);
        names.retain(|name| !name.ends_with("/.lock"));
        names.sort();
        names
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command to success; returns its output.
    pub fn runs(&self, line: &str) -> Result<String, String> {
        let output = self.run(line);
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let message = String::from_utf8_lossy(&output.stderr);
                Err(format!("{line}: {:?} {message}", output.status))
            }
        }
    }

    /// Runs a command with a fault; `None` if it makes fewer calls. A program that fails must name
    /// the file in one line, apart from its epoch lines.
    pub fn faulty(&self, line: &str, kind: Kind, at: usize) -> Option<Result<(), String>> {
        let hit = env::temp_dir().join(format!("sparsek-faults-hit-{}", std::process::id()));
        let hit = hit.with_extension(self.path.file_name().unwrap());
        let _ = fs::remove_file(&hit);
        let output = self
            .command(line)
            .env("LD_PRELOAD", shim())
            .env("FAULTS_FOLDER", &self.path)
            .env("FAULTS_AT", at.to_string())
            .env("FAULTS_KIND", format!("{kind:?}").to_lowercase())
            .env("FAULTS_HIT", &hit)
            .output()
            .unwrap();
        fs::remove_file(&hit).ok()?;
        let message = String::from_utf8_lossy(&output.stderr);
        let status = (output.status.code(), output.status.signal());
        Some(match (kind, status) {
            (Kind::Kill, (None, Some(9))) => Ok(()),
            // A leftover that cannot be removed loses nothing.
            (Kind::Fail | Kind::Full, (Some(0), None)) => Ok(()),
            (Kind::Fail | Kind::Full, (Some(2), None)) => {
                let others = message.lines().filter(|line| !line.ends_with(" ms/epoch"));
                let lines: Vec<&str> = others.collect();
                match lines[..] {
                    [line]
                        if line.starts_with("error: ")
                            && line.contains("No space left")
                            && line.matches(':').count() > 1 =>
                    {
                        Ok(())
                    }
                    _ => Err(format!("expected one line that names the file: {message}")),
                }
            }
            _ => Err(format!("{status:?} {message}")),
        })
    }

    fn command(&self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(programs().join(words.next().unwrap()));
        command.current_dir(&self.path).args(words);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Cargo's folder of programs: the parent of this test's.
fn programs() -> PathBuf {
    let own = env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap().to_path_buf();
    for name in ["maxk", "topk", "knn"] {
        let program = folder.join(name);
        assert!(
            program.exists(),
            "{}: build it first, in this test's profile, with `cargo build -p sparsek-examples`",
            program.display()
        );
    }
    folder
}

/// The library to preload.
fn shim() -> PathBuf {
    let own = env::current_exe().unwrap();
    let shim = own.parent().unwrap().join("libsparsek_faults.so");
    assert!(shim.exists(), "{} is missing", shim.display());
    shim
}
