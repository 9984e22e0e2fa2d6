//! Input files.

use std::{fs::File, io, path::Path};

/// Opens a regular file and returns its size; refuses others unopened, since pipes wait for a
/// writer.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    let refuse = |kind: &str| {
        let reason = format!("{kind}, not a regular file");
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    };
    let found = path.metadata()?;
    if found.is_dir() {
        return refuse("a folder");
    }
    if !found.is_file() {
        return refuse("a pipe, a socket or a device");
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let error = open(&std::env::temp_dir()).unwrap_err().to_string();
        assert!(error.contains("a folder"), "{error}");
        #[cfg(unix)]
        {
            let error = open(Path::new("/dev/null")).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
    }
}
