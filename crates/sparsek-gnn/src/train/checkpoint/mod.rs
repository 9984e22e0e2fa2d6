mod manifest;
mod records;

use std::{
    fs::{self, File, TryLockError},
    io::Read,
    path::{Path, PathBuf},
};

use burn::{
    module::Module,
    optim::ModuleOptimizer,
    tensor::{Bytes, Device},
};
use sparsek::io::{input, memory, output, text};

pub use self::manifest::RunId;
pub(super) use self::manifest::best_of;
use self::manifest::{Dataset, Files, Manifest, Saved, name};
use super::{
    config::TrainConfig,
    error::TrainError,
    fingerprint::{self, Fingerprint, Preparation},
    recipe::RecipeRecord,
    types::EpochReport,
};
use crate::{datasets::NodeDataset, nn::NodeModelConfig};

const MANIFEST: &str = "manifest.json";
const LOCK: &str = ".lock";
const OLDER: [&str; 3] = ["model.json", "train.json", "state.json"];
const KINDS: [&str; 3] = ["last", "optimizer", "best"];
/// About a million epochs.
const MAX_MANIFEST: u64 = 256 << 20;

/// A run's directory, verified when read, locked during training.
///
/// `manifest.json` has configurations, dataset fingerprint, epochs, and lengths and SHA-256 of
/// `last-N.bpk`, `optimizer-N.bpk` and `best-N.bpk`. Saves replace it last and atomically:
/// interruptions leave the old or the new run. The next save removes other files.
#[derive(Clone, Debug)]
pub struct CheckpointDir {
    path: PathBuf,
}

/// Saved run, verified and locked.
#[derive(Debug)]
pub struct SavedRun<C> {
    dir: CheckpointDir,
    /// `None` without a lock.
    _lock: Option<File>,
    manifest: Manifest<C>,
}

impl CheckpointDir {
    /// Names a directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it holds a run.
    pub fn exists(&self) -> bool {
        let mut names = OLDER.iter().chain([&MANIFEST]);
        names.any(|name| self.file(name).exists())
    }

    /// Opens a run to read. Errors without a valid run, and during training.
    pub fn open<C: NodeModelConfig>(&self) -> Result<SavedRun<C>, TrainError> {
        self.open_with(Access::Read)
    }

    /// Loads configuration and best model.
    pub fn best_model<C: NodeModelConfig>(
        &self,
        device: &Device,
    ) -> Result<(C, C::Model), TrainError> {
        let run = self.open::<C>()?;
        let model = run.best_model(device)?;
        Ok((run.manifest.model, model))
    }

    pub(super) fn check_new(&self) -> Result<(), TrainError> {
        if self.path.exists() && !self.path.is_dir() {
            return Err(self.failed("", "not a folder"));
        }
        if self.exists() {
            let reason = "a run is saved here already; resume it or choose another directory";
            return Err(self.failed("", reason));
        }
        // Without a manifest, these files belong elsewhere.
        match self.numbered().first() {
            Some(name) => Err(self.failed(
                name,
                "belongs to a run whose manifest.json is missing; choose another directory",
            )),
            None => Ok(()),
        }
    }

    pub(super) fn begin<C: NodeModelConfig>(
        &self,
        id: &RunId,
        model: &C,
        (train, recipe): (&TrainConfig, RecipeRecord),
        (data, preparation): (&NodeDataset, &Preparation),
    ) -> Result<SavedRun<C>, TrainError> {
        fs::create_dir_all(&self.path).map_err(|error| self.failed("", error))?;
        let lock = self.lock(Access::Train)?;
        self.check_new()?;
        let dataset = Dataset {
            name: data.name().to_string(),
            fingerprint: Fingerprint::of(data),
            preparation: preparation.clone(),
        };
        let run = SavedRun {
            dir: self.clone(),
            _lock: lock,
            manifest: Manifest::new(id.clone(), model.clone(), (train.clone(), recipe), dataset),
        };
        run.commit(&run.manifest)?;
        Ok(run)
    }

    pub(super) fn resume<C: NodeModelConfig>(&self) -> Result<SavedRun<C>, TrainError> {
        let run = self.open_with(Access::Train)?;
        run.tidy();
        Ok(run)
    }

    fn open_with<C: NodeModelConfig>(&self, access: Access) -> Result<SavedRun<C>, TrainError> {
        if !self.file(MANIFEST).exists() {
            if let Some(older) = OLDER.iter().find(|name| self.file(name).exists()) {
                let reason = "saved by an older version, which this one cannot read; train anew \
                              in another directory";
                return Err(self.failed(older, reason));
            }
            return Err(self.failed(MANIFEST, "no run is saved in this directory"));
        }
        let lock = self.lock(access)?;
        let bytes = self.bytes(MANIFEST, |size| match size <= MAX_MANIFEST {
            true => Ok(()),
            false => Err(format!("{size} bytes, a manifest has at most {MAX_MANIFEST}")),
        })?;
        let manifest = Manifest::parse(&bytes);
        Ok(SavedRun {
            dir: self.clone(),
            _lock: lock,
            manifest: manifest.map_err(|reason| self.failed(MANIFEST, reason))?,
        })
    }

    fn lock(&self, access: Access) -> Result<Option<File>, TrainError> {
        let path = self.file(LOCK);
        let mut options = File::options();
        let file = match options.read(true).write(true).create(true).truncate(false).open(&path) {
            Ok(file) => file,
            Err(_) if access == Access::Read => match File::open(&path) {
                Ok(file) => file,
                Err(_) => return Ok(None),
            },
            Err(error) => return Err(self.failed(LOCK, error)),
        };
        let locked = match access {
            Access::Read => file.try_lock_shared(),
            Access::Train => file.try_lock(),
        };
        match locked {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {
                let reason = "another process is using the run in this directory";
                Err(self.failed("", reason))
            }
            // File systems without locks.
            Err(TryLockError::Error(_)) if access == Access::Read => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.failed(LOCK, error)),
        }
    }

    fn bytes(
        &self,
        name: &str,
        check: impl FnOnce(u64) -> Result<(), String>,
    ) -> Result<Vec<u8>, TrainError> {
        let failed = |error: String| self.failed(name, error);
        let file = self.file(name);
        let (file, size) = input::open(&file).map_err(|error| failed(error.to_string()))?;
        check(size).map_err(failed)?;
        memory::check("it", u128::from(size)).map_err(|error| failed(error.to_string()))?;
        let mut bytes = Vec::new();
        let read = file.take(size).read_to_end(&mut bytes);
        read.map_err(|error| failed(error.to_string()))?;
        match bytes.len() as u64 == size {
            true => Ok(bytes),
            false => Err(failed("truncated while it was read".to_string())),
        }
    }

    fn numbered(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let numbered = |name: &str| {
            let name = name
                .strip_suffix(".part")
                .map_or(name, |name| name.strip_prefix('.').unwrap_or_default());
            let epoch = KINDS.iter().find_map(|kind| {
                let rest = name.strip_prefix(kind)?.strip_prefix('-')?;
                rest.strip_suffix(".bpk")
            });
            epoch.is_some_and(|text| {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        names.filter(|name| numbered(name)).collect()
    }

    fn failed(&self, name: &str, error: impl ToString) -> TrainError {
        let file = match name {
            "" => self.path.clone(),
            name => self.file(name),
        };
        TrainError::Checkpoint { file, reason: text::excerpt(&error.to_string()) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Readers share the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Train,
}

impl<C: NodeModelConfig> SavedRun<C> {
    /// Directory.
    pub fn path(&self) -> &Path {
        &self.dir.path
    }

    /// Id in logs.
    pub fn id(&self) -> &RunId {
        &self.manifest.id
    }

    /// Model configuration.
    pub fn model_config(&self) -> &C {
        &self.manifest.model
    }

    /// Training configuration.
    pub fn train_config(&self) -> &TrainConfig {
        &self.manifest.train
    }

    /// Dataset preparation.
    pub fn preparation(&self) -> &Preparation {
        &self.manifest.dataset.preparation
    }

    /// Saved epochs, perhaps none.
    pub fn history(&self) -> Vec<EpochReport> {
        self.manifest.history()
    }

    /// Best epoch; errors before any save.
    pub fn best_report(&self) -> Result<EpochReport, TrainError> {
        best_of(&self.history()).ok_or_else(|| self.unsaved())
    }

    /// Loads the best model. Errors without a save, or for damaged or foreign files.
    pub fn best_model(&self, device: &Device) -> Result<C::Model, TrainError> {
        let saved = &self.files()?.best;
        let bytes = self.verified(saved)?;
        let model = self.manifest.model.init(device)?;
        let model = records::load_model(bytes, model);
        model.map_err(|reason| self.dir.failed(&saved.name, reason))
    }

    /// Refuses another dataset or preparation.
    pub fn check_dataset(
        &self,
        data: &NodeDataset,
        preparation: &Preparation,
    ) -> Result<(), TrainError> {
        let saved = &self.manifest.dataset;
        let options = fingerprint::differences(&saved.preparation, preparation);
        if !options.is_empty() {
            let options = options.join(", ");
            return Err(self
                .dir
                .failed("", format!("the saved run prepared its dataset differently: {options}")));
        }
        let parts = saved.fingerprint.differences(&Fingerprint::of(data));
        match parts.is_empty() {
            true => Ok(()),
            false => Err(self.dir.failed(
                "",
                format!(
                    "the saved run is of another dataset: the {} of {:?} and of {:?} differ",
                    parts.join(", "),
                    text::excerpt(&saved.name),
                    text::excerpt(data.name())
                ),
            )),
        }
    }

    pub(super) fn recipe(&self) -> &RecipeRecord {
        &self.manifest.recipe
    }

    pub(super) fn epochs(&self) -> usize {
        self.manifest.epochs()
    }

    pub(super) fn load_last<M: Module>(
        &self,
        model: M,
        optimizer: ModuleOptimizer,
    ) -> Result<(M, ModuleOptimizer), TrainError> {
        let Files { last, optimizer: state, .. } = self.files()?;
        let model = records::load_model(self.verified(last)?, model);
        let model = model.map_err(|reason| self.dir.failed(&last.name, reason))?;
        let own = self.manifest.recipe.has_optimizer();
        let optimizer = records::load_optimizer(self.verified(state)?, &model, optimizer, own);
        let optimizer = optimizer.map_err(|reason| self.dir.failed(&state.name, reason))?;
        Ok((model, optimizer))
    }

    pub(super) fn save(
        &mut self,
        epochs: &[EpochReport],
        (last, optimizer): (Bytes, Bytes),
        best: impl FnOnce() -> Result<Bytes, TrainError>,
    ) -> Result<(), TrainError> {
        let next = match self.write(epochs, (last, optimizer), best) {
            Ok(next) => next,
            Err(error) => {
                // The old manifest holds: free disk space.
                self.tidy();
                return Err(error);
            }
        };
        // Either manifest may be in place.
        self.commit(&next)?;
        self.manifest = next;
        self.tidy();
        Ok(())
    }

    fn write(
        &self,
        epochs: &[EpochReport],
        (last, optimizer): (Bytes, Bytes),
        best: impl FnOnce() -> Result<Bytes, TrainError>,
    ) -> Result<Manifest<C>, TrainError> {
        let history = [&self.history()[..], epochs].concat();
        let (Some(epoch), Some(best_epoch)) = (history.last(), best_of(&history)) else {
            return Ok(self.manifest.clone());
        };
        let best_name = name("best", best_epoch.epoch);
        let known = self.manifest.files.as_ref().map(|files| &files.best);
        let best = match known.filter(|file| file.name == best_name) {
            Some(known) => known.clone(),
            None => self.put(best_name, &best()?)?,
        };
        let files = Files {
            last: self.put(name("last", epoch.epoch), &last)?,
            optimizer: self.put(name("optimizer", epoch.epoch), &optimizer)?,
            best,
        };
        Ok(self.manifest.after(epochs, files))
    }

    fn put(&self, name: String, bytes: &[u8]) -> Result<Saved, TrainError> {
        output::write(&self.dir.file(&name), bytes)
            .map_err(|error| self.dir.failed(&name, error))?;
        Ok(Saved::new(name, bytes))
    }

    fn commit(&self, manifest: &Manifest<C>) -> Result<(), TrainError> {
        let text = manifest.text();
        let text = text.map_err(|reason| self.dir.failed(MANIFEST, reason))?;
        output::write(&self.dir.file(MANIFEST), text.as_bytes())
            .map_err(|error| self.dir.failed(MANIFEST, error))
    }

    fn tidy(&self) {
        let files = self.manifest.files.as_ref();
        let named = files.map(|files| [&files.last, &files.optimizer, &files.best]);
        let unfinished = format!(".{MANIFEST}.part");
        for name in self.dir.numbered().into_iter().chain([unfinished]) {
            let stays = named.is_some_and(|named| named.iter().any(|file| file.name == name));
            if !stays {
                let _ = fs::remove_file(self.dir.file(&name));
            }
        }
    }

    fn files(&self) -> Result<&Files, TrainError> {
        self.manifest.files.as_ref().ok_or_else(|| self.unsaved())
    }

    fn unsaved(&self) -> TrainError {
        let reason = "the run has no saved epoch";
        self.dir.failed(MANIFEST, reason)
    }

    fn verified(&self, saved: &Saved) -> Result<Bytes, TrainError> {
        let bytes = self.dir.bytes(&saved.name, |size| match size == saved.bytes {
            true => Ok(()),
            false => Err(format!("{size} bytes long, {} were saved", saved.bytes)),
        })?;
        match fingerprint::sha256(&bytes) == saved.sha256 {
            true => Ok(Bytes::from_bytes_vec(bytes)),
            false => Err(self.dir.failed(
                &saved.name,
                "changed or damaged after it was saved: its checksum does not match",
            )),
        }
    }
}
