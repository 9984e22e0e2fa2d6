//! Writes files atomically: [`Output::commit`] syncs and renames a locked `.NAME.part`.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use same_file::Handle;

#[derive(Debug)]
pub struct Output {
    /// Links resolved.
    target: PathBuf,
    /// `None`: device or pipe.
    part: Option<PathBuf>,
    file: Option<BufWriter<File>>,
}

impl Output {
    /// Starts a file; [`io::ErrorKind::ResourceBusy`] if another process writes it.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            found => found?,
        };
        let before = match target.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            found => Some(found?),
        };
        if let Some(before) = &before {
            if before.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            // Refuses files without write permission.
            let file = File::options().append(true).open(&target)?;
            if !before.is_file() {
                return Ok(Self { target, part: None, file: Some(BufWriter::new(file)) });
            }
        }
        let part = part_of(&target)?;
        let file = lock(&part)?;
        let output = Self { target, part: Some(part), file: Some(BufWriter::new(file)) };
        if let (Some(before), Some(file)) = (before, &output.file) {
            file.get_ref().set_permissions(before.permissions())?;
        }
        Ok(output)
    }

    /// Moves the file into place; errors leave the old one.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let Some(part) = self.part.as_ref() else {
            return Ok(());
        };
        file.sync_all()?;
        fs::rename(part, &self.target)?;
        self.part = None;
        sync_folder(&self.target)
    }

    fn file(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            let _ = fs::remove_file(part);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(to)
    }
}

pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut output = Output::create(path)?;
    output.write_all(bytes)?;
    output.commit()
}

/// Makes a rename durable, if possible.
pub fn sync_folder(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match File::open(folder)?.sync_all() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            done => return done,
        }
    }
    let _ = file;
    Ok(())
}

fn part_of(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut part = OsString::from(".");
    part.push(name);
    part.push(".part");
    Ok(target.with_file_name(part))
}

fn lock(part: &Path) -> io::Result<File> {
    loop {
        let options =
            File::options().read(true).write(true).create(true).truncate(false).open(part);
        let file = options?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = "another process is writing this file";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another writer may have renamed it.
        let own = Handle::from_file(file.try_clone()?)?;
        if Handle::from_path(part).is_ok_and(|there| there == own) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rstest::{fixture, rstest};

    use super::*;

    struct Folder(PathBuf);

    #[fixture]
    fn folder() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sparsek-output-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    impl Folder {
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
            let mut names: Vec<_> = entries.map(|e| name(e).into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[rstest]
    fn a_file_appears_when_it_is_whole(folder: Folder) {
        let path = folder.0.join("a");
        fs::write(&path, "before").unwrap();
        let mut output = Output::create(&path).unwrap();
        output.write_all(b"after").unwrap();
        output.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(folder.names(), ["a"]);
    }

    #[rstest]
    fn a_dropped_file_leaves_nothing(folder: Folder) {
        let mut output = Output::create(&folder.0.join("a")).unwrap();
        output.write_all(b"half").unwrap();
        assert_eq!(folder.names(), [".a.part"]);
        drop(output);
        assert!(folder.names().is_empty());
    }

    #[rstest]
    fn what_a_kill_left_is_emptied(folder: Folder) {
        fs::write(folder.0.join(".a.part"), "a longer leftover").unwrap();
        write(&folder.0.join("a"), b"new").unwrap();
        assert_eq!(fs::read(folder.0.join("a")).unwrap(), b"new");
        assert_eq!(folder.names(), ["a"]);
    }

    #[rstest]
    fn two_writers_do_not_mix(folder: Folder) {
        let first = Output::create(&folder.0.join("a")).unwrap();
        let error = Output::create(&folder.0.join("a")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        Output::create(&folder.0.join("a")).unwrap();
    }

    #[cfg(unix)]
    #[rstest]
    fn links_and_devices_stay_what_they_are(folder: Folder) {
        let (file, link) = (folder.0.join("a"), folder.0.join("b"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"after").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"after");
        write(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let error = write(&folder.0, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
