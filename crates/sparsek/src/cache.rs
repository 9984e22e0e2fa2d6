//! Caches compiled kernels and tuning results in one file per user.
//!
//! Without [`enable`], each process compiles and tunes again. The file keeps tuning per device and
//! CUDA kernels per architecture; graphics drivers keep others. A new build compiles again.
//!
//! ```no_run
//! // First in `main`, before any tensor is made.
//! match sparsek::cache::enable() {
//!     Ok(Some(file)) => println!("kernels are kept in {}", file.display()),
//!     Ok(None) => println!("SPARSEK_CACHE=off"),
//!     Err(error) => eprintln!("{error}; kernels are compiled again in each run"),
//! }
//! ```

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig, cache::CacheConfig};
use etcetera::BaseStrategy;

/// Environment variable: a folder, or `off`.
pub const VARIABLE: &str = "SPARSEK_CACHE";
/// [`enable`] starts over above this size.
pub const MAX_BYTES: u64 = 1 << 30;

const ENVIRONMENT: &str = "sparsek";
const MAGIC: &[u8] = b"SQLite format 3\0";
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-tshm"];

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Device or CubeCL already set up.
    #[error("the kernel cache must be enabled before the first device is opened")]
    Late,
    /// No user cache folder.
    #[error("no cache folder for kernels is known; {VARIABLE}=DIR chooses one")]
    NoFolder,
    /// Unusable folder or file.
    #[error("the kernel cache {} is ignored: {source}", file.display())]
    Unusable {
        /// File.
        file: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Enables the cache in `SPARSEK_CACHE`, else in `sparsek` in the user's cache folder. Returns the
/// file, or `None` if `off`.
///
/// Call it before opening a device. Overrides only cache settings of `cubecl.toml` and CubeCL's
/// environment variables. After an error, programs run uncached.
pub fn enable() -> Result<Option<PathBuf>, CacheError> {
    let user = || etcetera::choose_base_strategy().ok().map(|user| user.cache_dir());
    let place = folder(env::var_os(VARIABLE), user);
    let prepared = place.and_then(|folder| match folder {
        Some(folder) => prepare(&folder).map(Some),
        None => Ok(None),
    });
    let kept = prepared.as_ref().ok().cloned().flatten();
    match configure(kept.as_deref()) {
        true => prepared,
        false => Err(CacheError::Late),
    }
}

/// [`enable`] if `SPARSEK_CACHE` is set, else no cache.
pub fn enable_if_set() -> Result<Option<PathBuf>, CacheError> {
    match env::var_os(VARIABLE) {
        Some(_) => enable(),
        None => match configure(None) {
            true => Ok(None),
            false => Err(CacheError::Late),
        },
    }
}

fn folder(
    variable: Option<OsString>,
    user: impl FnOnce() -> Option<PathBuf>,
) -> Result<Option<PathBuf>, CacheError> {
    match variable {
        Some(value) if value.eq_ignore_ascii_case("off") || value == "0" => Ok(None),
        Some(value) if !value.is_empty() => Ok(Some(PathBuf::from(value))),
        _ => match user() {
            Some(user) => Ok(Some(user.join("sparsek"))),
            None => Err(CacheError::NoFolder),
        },
    }
}

fn prepare(folder: &Path) -> Result<PathBuf, CacheError> {
    let file = folder.join(ENVIRONMENT).with_extension("db");
    let checked = fs::create_dir_all(folder).and_then(|()| check(&file));
    match checked {
        Ok(()) => Ok(file),
        Err(source) => Err(CacheError::Unusable { file, source }),
    }
}

fn check(file: &Path) -> io::Result<()> {
    let size = match file.metadata() {
        Ok(found) if !found.is_file() => return Err(io::Error::other("not a file")),
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Tests write access.
            return tempfile(file.parent().unwrap_or(Path::new(".")));
        }
        Err(error) => return Err(error),
    };
    let mut head = [0; MAGIC.len()];
    let opened = File::options().read(true).write(true).open(file);
    let read = opened?.read(&mut head)?;
    if read > 0 && head != MAGIC {
        return Err(io::Error::other("not a kernel cache; delete it to have one"));
    }
    if size > MAX_BYTES {
        remove(file)?;
    }
    Ok(())
}

fn tempfile(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".{ENVIRONMENT}-{}", std::process::id()));
    File::create(&file)?;
    fs::remove_file(&file)
}

fn remove(file: &Path) -> io::Result<()> {
    for companion in COMPANIONS {
        let mut name = OsString::from(file);
        name.push(OsStr::new(companion));
        match fs::remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(file)
}

fn configure(file: Option<&Path>) -> bool {
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    match file.and_then(Path::parent) {
        Some(folder) => {
            config.compilation.cache = true;
            config.environment.name = ENVIRONMENT.into();
            config.environment.path = CacheConfig::Directory(folder.to_path_buf());
        }
        None => {
            config.compilation.cache = false;
            config.autotune.disable_cache = true;
            config.throughput.disable_cache = true;
        }
    }
    CubeClRuntimeConfig::try_set(config)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::off(Some("off"), None)]
    #[case::off(Some("OFF"), None)]
    #[case::off(Some("0"), None)]
    #[case::chosen(Some("kept"), Some("kept"))]
    #[case::unset(None, Some("user/sparsek"))]
    #[case::empty(Some(""), Some("user/sparsek"))]
    fn the_variable_chooses_the_folder(
        #[case] variable: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let user = || Some(PathBuf::from("user"));
        let chosen = folder(variable.map(OsString::from), user).unwrap();
        assert_eq!(chosen, expected.map(PathBuf::from));
    }

    #[test]
    fn a_user_without_folders_has_no_cache() {
        let nowhere = folder(None, || None);
        assert!(matches!(nowhere, Err(CacheError::NoFolder)));
    }

    #[test]
    fn only_a_cache_is_taken_for_one() {
        let folder = env::temp_dir().join(format!("sparsek-cache-{}", std::process::id()));
        let file = prepare(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);

        fs::write(&file, "a letter to my aunt").unwrap();
        let error = prepare(&folder).unwrap_err().to_string();
        assert!(error.contains("sparsek.db is ignored: not a"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"a letter to my aunt");

        fs::write(&file, MAGIC).unwrap();
        prepare(&folder).unwrap();
        assert!(file.exists());

        let grown = File::options().write(true).open(&file).unwrap();
        grown.set_len(MAX_BYTES + 1).unwrap();
        let log = folder.join("sparsek.db-wal");
        fs::write(&log, "").unwrap();
        prepare(&folder).unwrap();
        assert!(!file.exists() && !log.exists());

        fs::create_dir(&file).unwrap();
        assert!(prepare(&folder).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
