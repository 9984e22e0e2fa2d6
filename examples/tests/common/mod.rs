//! A folder to run a program in.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use npyz::{Deserialize, npz::NpzArchive};

/// A temporary folder and a program.
pub struct Folder {
    pub path: PathBuf,
    program: &'static str,
}

impl Folder {
    /// `program` is the executable's path.
    pub fn new(program: &'static str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let stem = Path::new(program).file_stem().unwrap().to_string_lossy();
        let name = format!("sparsek-{stem}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self { path, program }
    }

    /// The program with space-separated arguments.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(self.program);
        command.current_dir(&self.path).args(arguments.split_whitespace());
        command.stdin(Stdio::null()).env("SPARSEK_CACHE", "off");
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs with a closed standard output.
    pub fn unread(&self, arguments: &str) -> Output {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        self.command(arguments).stdout(writer).output().unwrap()
    }

    /// Runs with closed standard output and error; returns the status.
    pub fn unheard(&self, arguments: &str) -> Option<i32> {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = self.command(arguments);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        command.status().unwrap().code()
    }

    /// Runs with standard output on a full disk.
    pub fn run_on_a_full_disk(&self, arguments: &str) -> Output {
        let full = File::options().write(true).open("/dev/full").unwrap();
        self.command(arguments).stdout(full).output().unwrap()
    }

    /// All file names, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs and returns the standard output.
    pub fn runs(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {message}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Expects one line with this word, status 2 and no output.
    pub fn refuses(&self, arguments: &str, word: &str) {
        let before = self.names();
        let output = self.run(&format!("{arguments} --output bad.npz"));
        fails(&output, word);
        assert_eq!(self.names(), before, "{arguments}");
    }

    /// Shape and elements of an array.
    pub fn array<T: Deserialize>(&self, file: &str, name: &str) -> (Vec<u64>, Vec<T>) {
        let mut npz = NpzArchive::open(self.path.join(file)).unwrap();
        let array = npz.by_name(name).unwrap().unwrap();
        (array.shape().to_vec(), array.into_vec().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Expects these sections in the help, each with options, and examples of the program alone.
pub fn help(folder: &Folder, arguments: &str, sections: &str) {
    let text = folder.runs(arguments);
    for section in sections.split(' ') {
        let body = text.split_once(&format!("\n{section}:\n"));
        let (_, body) = body.unwrap_or_else(|| panic!("{section}: {text}"));
        assert!(body.trim_start().starts_with("--"), "{section}: {text}");
    }
    let name = Path::new(folder.program).file_stem().unwrap();
    let name = name.to_string_lossy();
    let (_, examples) = text.split_once("\nExamples:\n").expect("there are examples");
    let mut lines = examples.trim_end().lines();
    assert!(lines.all(|line| line.trim_start().starts_with(&*name)), "{examples}");
}

/// Expects one line with this word and status 2.
pub fn fails(output: &Output, word: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{word}: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.contains(word), "{word}: {message}");
    let length = message.chars().count();
    assert!(length < 1100, "{length} characters");
    let escapes = message.trim_end().chars().any(char::is_control);
    assert!(!escapes, "{message}");
}
