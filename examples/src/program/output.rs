//! Output files, with errors that name them.

use std::{fmt::Display, io, path::Path};

use sparsek::io::output::Output;

/// Begins an output file, before the work, so that a folder that cannot be written to is found
/// first. Nothing changes at `file` before [`commit`].
///
/// # Errors
///
/// One line that names the file.
pub fn create(file: &Path) -> Result<Output, String> {
    Output::create(file).map_err(|error| {
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match error.kind() {
            io::ErrorKind::IsADirectory => named(file, "a folder, a file is needed"),
            _ if !folder.exists() => named(
                file,
                format_args!("there is no folder {}", folder.display()),
            ),
            _ if !folder.is_dir() => {
                named(file, format_args!("{} is not a folder", folder.display()))
            }
            _ => named(file, error),
        }
    })
}

/// Puts a file that was written into its place.
///
/// # Errors
///
/// One line that names the file.
pub fn commit(file: &Path, output: Output) -> Result<(), String> {
    output.commit().map_err(|error| named(file, error))
}

/// An error, with the file that it is about.
pub fn named(file: &Path, error: impl Display) -> String {
    format!("{}: {error}", file.display())
}
