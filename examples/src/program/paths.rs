//! Keeps outputs from overwriting inputs.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use same_file::Handle;

use super::output::named;

/// A resolved path.
struct Place {
    /// Links followed as far as it exists.
    path: PathBuf,
    /// Identity of an existing file.
    handle: Option<Handle>,
}

impl Place {
    /// Devices and pipes may stand for several files, so they have none.
    fn of(path: &Path) -> Option<Self> {
        match path.metadata() {
            Ok(found) if !found.is_file() && !found.is_dir() => None,
            Ok(_) => Some(Self {
                path: path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
                handle: Handle::from_path(path).ok(),
            }),
            Err(_) => {
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder,
                    _ => Path::new("."),
                };
                let folder = folder.canonicalize().ok();
                let path = match (folder, path.file_name()) {
                    (Some(folder), Some(name)) => folder.join(name),
                    _ => path.to_path_buf(),
                };
                Some(Self { path, handle: None })
            }
        }
    }

    fn same(&self, other: &Self) -> bool {
        self.path == other.path || (self.handle.is_some() && self.handle == other.handle)
    }
}

/// Checks that no output is an input by any name or link, lies in an input folder, or equals
/// another output. Inputs may be missing.
///
/// # Errors
/// One line that names the output and what it would overwrite.
pub fn check_paths(
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
    outputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), String> {
    let mut placed: Vec<(PathBuf, Place)> = Vec::new();
    for output in outputs {
        let output = output.as_ref();
        let Some(place) = Place::of(output) else {
            continue;
        };
        if let Some((other, _)) = placed.iter().find(|(_, other)| other.same(&place)) {
            let reason = match other == output {
                true => "asked for as two outputs".to_string(),
                false => format!("the same file as {}, another output", other.display()),
            };
            return Err(named(output, reason));
        }
        placed.push((output.to_path_buf(), place));
    }
    for input in inputs {
        let input = input.as_ref();
        let place = Place::of(input);
        let Some(place) = place.filter(|_| !placed.is_empty()) else {
            continue;
        };
        if input.is_dir() {
            check_folder(input, &place, &placed, &mut HashSet::new())?;
        } else {
            check_file(input, &place, &placed)?;
        }
    }
    Ok(())
}

fn check_file(input: &Path, place: &Place, outputs: &[(PathBuf, Place)]) -> Result<(), String> {
    match outputs.iter().find(|(_, output)| output.same(place)) {
        Some((output, _)) if output == input => {
            Err(named(output, "the output would overwrite this input"))
        }
        Some((output, _)) => {
            let reason = format!("the output would overwrite the input {}", input.display());
            Err(named(output, reason))
        }
        None => Ok(()),
    }
}

fn check_folder(
    folder: &Path,
    place: &Place,
    outputs: &[(PathBuf, Place)],
    seen: &mut HashSet<PathBuf>,
) -> Result<(), String> {
    // Links may form loops.
    if !seen.insert(place.path.clone()) {
        return Ok(());
    }
    let inside = |(_, output): &&(PathBuf, Place)| output.path.starts_with(&place.path);
    if let Some((output, _)) = outputs.iter().find(inside) {
        let reason = format!("lies in {}, an input; choose another folder", folder.display());
        return Err(named(output, reason));
    }
    // The reader reports unreadable folders.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        match Place::of(&path) {
            Some(place) if path.is_dir() => check_folder(&path, &place, outputs, seen)?,
            Some(place) => check_file(&path, &place, outputs)?,
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rstest::{fixture, rstest};

    use super::*;

    /// A folder that is removed when dropped.
    struct Folder(PathBuf);

    #[fixture]
    fn folder() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sparsek-paths-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("raw/deep")).unwrap();
        fs::write(path.join("a"), "a").unwrap();
        fs::write(path.join("b"), "b").unwrap();
        fs::write(path.join("raw/deep/c"), "c").unwrap();
        Folder(path)
    }

    impl Folder {
        /// Checks paths in this folder.
        fn check(&self, inputs: &[&str], outputs: &[&str]) -> Result<(), String> {
            let paths = |names: &[&str]| -> Vec<PathBuf> {
                names.iter().map(|name| self.0.join(name)).collect()
            };
            check_paths(paths(inputs), paths(outputs))
        }

        fn refuses(&self, inputs: &[&str], outputs: &[&str], word: &str) {
            let error = self.check(inputs, outputs).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[rstest]
    #[case::files(&["a", "none"], &["b", "new", "newer"])]
    #[case::folder(&["raw"], &["new", "no/folder/x"])]
    #[case::inputs(&["a", "a"], &[])]
    fn other_files_are_accepted(folder: Folder, #[case] inputs: &[&str], #[case] outputs: &[&str]) {
        folder.check(inputs, outputs).unwrap();
    }

    #[rstest]
    #[case::input(&["a"], &["a"], "overwrite this input")]
    #[case::input(&["a"], &["raw/../a"], "overwrite the input")]
    #[case::missing_input(&["none"], &["./none"], "overwrite this input")]
    #[case::missing_input(&["none"], &["raw/../none"], "overwrite the input")]
    #[case::output(&[], &["a", "a"], "two outputs")]
    #[case::output(&[], &["new", "raw/../new"], "another output")]
    fn one_path_is_refused_however_it_is_written(
        folder: Folder,
        #[case] inputs: &[&str],
        #[case] outputs: &[&str],
        #[case] word: &str,
    ) {
        folder.refuses(inputs, outputs, word);
    }

    #[rstest]
    fn what_lies_in_an_input_folder_is_refused(
        folder: Folder,
        #[values("raw/deep/c", "raw/new", "raw/../raw/deep/new")] output: &str,
    ) {
        folder.refuses(&["raw"], &[output], "lies in");
    }

    /// Links to `a`, to `raw` and to `raw/deep/c`.
    #[cfg(unix)]
    #[fixture]
    fn linked(folder: Folder) -> Folder {
        use std::os::unix::fs::symlink;

        let path = |name: &str| folder.0.join(name);
        symlink(path("a"), path("soft")).unwrap();
        symlink(path("raw"), path("rough")).unwrap();
        symlink(path("raw"), path("raw/loop")).unwrap();
        fs::hard_link(path("a"), path("hard")).unwrap();
        fs::hard_link(path("raw/deep/c"), path("out")).unwrap();
        folder
    }

    #[cfg(unix)]
    #[rstest]
    fn links_to_files_are_followed(linked: Folder, #[values("soft", "hard")] other: &str) {
        linked.refuses(&["a"], &[other], "overwrite the input");
        linked.refuses(&[other], &["a"], "overwrite the input");
        linked.refuses(&[], &["a", other], "another output");
    }

    #[cfg(unix)]
    #[rstest]
    #[case("raw", "rough/new", "lies in")]
    #[case("rough", "raw/new", "lies in")]
    #[case("raw", "out", "overwrite the input")]
    fn links_to_folders_are_followed(
        linked: Folder,
        #[case] input: &str,
        #[case] output: &str,
        #[case] word: &str,
    ) {
        linked.refuses(&[input], &[output], word);
    }

    #[cfg(unix)]
    #[test]
    fn devices_may_be_named_twice() {
        let null = Path::new("/dev/null");
        check_paths([null], [null, null]).unwrap();
    }
}
