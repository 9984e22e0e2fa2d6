//! Output files with errors that name them.

use std::{fmt::Display, io, path::Path};

use sparsek::io::output::Output;

/// Opens an output before the work, to find bad folders first. `file` changes only in [`commit`].
///
/// # Errors
/// One line that names the file.
pub fn create(file: &Path) -> Result<Output, String> {
    Output::create(file).map_err(|error| {
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match error.kind() {
            io::ErrorKind::IsADirectory => named(file, "a folder, expected a file"),
            _ if !folder.exists() => {
                named(file, format_args!("there is no folder {}", folder.display()))
            }
            _ if !folder.is_dir() => {
                named(file, format_args!("{} is not a folder", folder.display()))
            }
            _ => named(file, error),
        }
    })
}

/// Moves a finished file into place.
///
/// # Errors
/// One line that names the file.
pub fn commit(file: &Path, output: Output) -> Result<(), String> {
    output.commit().map_err(|error| named(file, error))
}

/// Prefixes an error with its file.
pub fn named(file: &Path, error: impl Display) -> String {
    format!("{}: {error}", file.display())
}
