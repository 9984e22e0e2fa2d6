//! Checkpoints: Burn records of the parameters, with the configuration as JSON beside them.
use std::{
    fs,
    path::{Path, PathBuf},
};

use burn::{
    module::Module,
    optim::{ModuleOptimizer, OptimizerRecord},
    store::ModuleRecord,
    tensor::Device,
};
use serde::{Deserialize, Serialize};

use super::{EpochReport, NodeModelConfig, TrainConfig, TrainError};

const MODEL_CONFIG: &str = "model.json";
const TRAIN_CONFIG: &str = "train.json";
const BEST: &str = "best.bpk";
const BEST_STATE: &str = "best.json";
/// Each state is in one of two places, so that the one before stays whole while it is written.
const LAST: [&str; 2] = ["last-0.bpk", "last-1.bpk"];
const OPTIMIZER: [&str; 2] = ["optimizer-0.bpk", "optimizer-1.bpk"];
const STATE: &str = "state.json";

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The last epoch that was saved.
    pub last: EpochReport,
    /// Seconds of all epochs so far.
    pub seconds: f64,
    /// Which of the two places holds it: `last-0.bpk` or `last-1.bpk`.
    pub place: usize,
}

/// A directory that holds one run: `model.json` and `train.json`, the best parameters (`best.bpk`, `best.json`), and
/// what resuming needs: `state.json`, and the `last-0.bpk` and `optimizer-0.bpk`, or `last-1.bpk` and `optimizer-1.bpk`, that it
/// names.
///
/// Each file is written under another name and then renamed, and `state.json` comes last, so that an interruption at any time
/// leaves a run that can be resumed, if one was saved before.
#[derive(Clone, Debug)]
pub struct CheckpointDir {
    path: PathBuf,
}

impl CheckpointDir {
    /// Names a directory; nothing is read or made.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a run was begun here.
    pub fn exists(&self) -> bool {
        self.file(MODEL_CONFIG).exists()
    }

    /// The model's configuration.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`], naming the file.
    pub fn model_config<C: NodeModelConfig>(&self) -> Result<C, TrainError> {
        self.read_json(MODEL_CONFIG)
    }

    /// How the run is trained.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`], naming the file.
    pub fn train_config(&self) -> Result<TrainConfig, TrainError> {
        self.read_json(TRAIN_CONFIG)
    }

    /// How far the run has come.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`], naming the file.
    pub fn state(&self) -> Result<RunState, TrainError> {
        self.read_json(STATE)
    }

    /// What was measured in the best epoch.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`], naming the file.
    pub fn best_report(&self) -> Result<EpochReport, TrainError> {
        self.read_json(BEST_STATE)
    }

    /// The model with the best validation accuracy, and its configuration.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`], naming the file, when it is missing, corrupt, or of another model.
    pub fn best_model<C: NodeModelConfig>(
        &self,
        device: &Device,
    ) -> Result<(C, C::Model), TrainError> {
        let config: C = self.model_config()?;
        let model = config.init(device)?;
        let model = self.load(BEST, model)?;
        Ok((config, model))
    }

    pub(super) fn create(
        &self,
        model: &impl NodeModelConfig,
        train: &TrainConfig,
    ) -> Result<(), TrainError> {
        fs::create_dir_all(&self.path).map_err(|error| self.failed("", error))?;
        self.write_json(TRAIN_CONFIG, train)?;
        self.write_json(MODEL_CONFIG, model)
    }

    pub(super) fn save_best<M: Module>(
        &self,
        model: M,
        report: &EpochReport,
    ) -> Result<(), TrainError> {
        self.save(BEST, model)?;
        self.write_json(BEST_STATE, report)
    }

    pub(super) fn save_last<M: Module>(
        &self,
        model: M,
        optimizer: &ModuleOptimizer,
        state: &RunState,
    ) -> Result<(), TrainError> {
        let place = self.state().map_or(0, |before| 1 - before.place.min(1));
        self.save(LAST[place], model)?;
        let file = self.file(OPTIMIZER[place]);
        optimizer
            .save(&file)
            .map_err(|error| TrainError::record(&file, error))?;
        self.write_json(STATE, &RunState { place, ..*state })
    }

    pub(super) fn load_last<M: Module>(
        &self,
        model: M,
        optimizer: ModuleOptimizer,
    ) -> Result<(M, ModuleOptimizer), TrainError> {
        let place = self.state()?.place.min(1);
        let file = self.readable(OPTIMIZER[place])?;
        let record =
            OptimizerRecord::load(&file).map_err(|error| TrainError::record(&file, error))?;
        Ok((
            self.load(LAST[place], model)?,
            optimizer.load_record(record),
        ))
    }

    fn load<M: Module>(&self, name: &str, model: M) -> Result<M, TrainError> {
        let file = self.readable(name)?;
        let record = ModuleRecord::load(&file).map_err(|error| TrainError::record(&file, error))?;
        model
            .try_load_record(record)
            .map_err(|error| TrainError::record(&file, error))
    }

    fn save<M: Module>(&self, name: &str, model: M) -> Result<(), TrainError> {
        let file = self.file(name);
        model
            .into_record()
            .save(&file)
            .map_err(|error| TrainError::record(&file, error))
    }

    fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, TrainError> {
        let text = fs::read_to_string(self.file(name)).map_err(|error| self.failed(name, error))?;
        serde_json::from_str(&text).map_err(|error| self.failed(name, error))
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), TrainError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| self.failed(name, error))?;
        let part = self.path.join(format!("{name}.part"));
        fs::write(&part, text)
            .and_then(|()| fs::rename(part, self.file(name)))
            .map_err(|error| self.failed(name, error))
    }

    fn readable(&self, name: &str) -> Result<PathBuf, TrainError> {
        let file = self.file(name);
        fs::File::open(&file).map_err(|error| self.failed(name, error))?;
        Ok(file)
    }

    fn failed(&self, name: &str, error: impl ToString) -> TrainError {
        TrainError::Checkpoint {
            file: self.file(name),
            reason: error.to_string(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
