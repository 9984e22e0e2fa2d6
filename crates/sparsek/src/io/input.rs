use std::{fs::File, io, path::Path};

/// Opens a regular file. Refuses others unopened: pipes wait for writers.
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
    use std::{env, path::PathBuf};

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::folder(env::temp_dir(), "a folder")]
    #[cfg_attr(unix, case::device("/dev/null", "not a regular file"))]
    fn only_regular_files_are_opened(#[case] path: PathBuf, #[case] word: &str) {
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}
