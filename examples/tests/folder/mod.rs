//! A folder to run a program in.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use npyz::{Deserialize, npz::NpzArchive};

/// A folder that is removed at the end, and a program.
pub struct Folder {
    pub path: PathBuf,
    program: &'static str,
}

impl Folder {
    /// Of the executable at `program`; `name` tells tests apart.
    pub fn new(program: &'static str, name: &str) -> Self {
        let stem = Path::new(program).file_stem().unwrap().to_string_lossy();
        let name = format!("sparsek-{stem}-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self { path, program }
    }

    pub fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(self.program);
        let arguments = arguments.split_whitespace();
        command.current_dir(&self.path).args(arguments);
        command.output().unwrap()
    }

    /// What it prints.
    pub fn runs(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {message}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// One line with these words, exit status 2, and no output.
    pub fn refuses(&self, arguments: &str, word: &str) {
        let output = self.run(&format!("{arguments} --output bad.npz"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        assert!(message.contains(word), "{message}");
        assert!(!self.path.join("bad.npz").exists());
    }

    /// The shape and the elements of an array.
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
