//! The JSON-lines log of a run.
use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::EpochReport;

/// The last line of a run's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Always true; epochs' lines lack it.
    pub summary: bool,
    /// What ran it, such as `flex`.
    pub backend: String,
    /// The device's own name.
    pub device: String,
    /// The dataset.
    pub dataset: String,
    /// The model, such as `sage`.
    pub model: String,
    /// What was measured, such as `accuracy`.
    pub metric: String,
    /// The nonlinearity, such as `maxk:32:exact`.
    pub activation: String,
    /// Width of the hidden rows.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Probability of dropping an element.
    pub dropout: f64,
    /// Learning rate.
    pub lr: f64,
    /// L2 penalty.
    pub weight_decay: f64,
    /// Seed.
    pub seed: u64,
    /// Trainable numbers.
    pub parameters: usize,
    /// Most epochs to run.
    pub most_epochs: usize,
    /// Epochs that ran.
    pub epochs: usize,
    /// The epoch with the best validation metric.
    pub best_epoch: usize,
    /// Its validation metric.
    pub val: f64,
    /// Its test metric: the run's result.
    pub test: f64,
    /// Median milliseconds of an epoch, the evaluation included.
    pub ms_per_epoch: f64,
    /// Seconds of all epochs.
    pub seconds: f64,
    /// All that the result depends on, in one line, for runs to be told apart; empty in logs that lack it.
    #[serde(default)]
    pub configuration: String,
}

/// A log of one JSON object per line: a line per epoch, then a [`RunSummary`]. Each line is written out at once.
#[derive(Debug)]
pub struct RunLog {
    file: File,
}

impl RunLog {
    /// Creates the file, or empties the one there.
    ///
    /// # Errors
    /// What the system says.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
        })
    }

    /// Opens the file at its end, and makes it if there is none.
    ///
    /// # Errors
    /// What the system says.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            file: File::options().create(true).append(true).open(path)?,
        })
    }

    /// Opens the log of a run that goes on after an epoch: lines of later epochs are dropped, and a last line that was cut off.
    ///
    /// # Errors
    /// What the system says.
    pub fn resume(path: impl AsRef<Path>, epoch: usize) -> io::Result<Self> {
        #[derive(Deserialize)]
        struct Line {
            epoch: Option<usize>,
        }
        let path = path.as_ref();
        if path.exists() {
            let text = fs::read_to_string(path)?;
            let stays = |line: &&str| match serde_json::from_str::<Line>(line) {
                Ok(line) => line.epoch.is_none_or(|of| of <= epoch),
                Err(_) => false,
            };
            let kept: String = text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
                .filter(stays)
                .collect();
            if kept != text {
                // Whole at any time: written under another name first.
                let mut name = path.as_os_str().to_os_string();
                name.push(".part");
                fs::write(&name, kept)?;
                fs::rename(&name, path)?;
            }
        }
        Self::append(path)
    }

    /// Writes an epoch's line, with the activation that tells runs in one file apart.
    ///
    /// # Errors
    /// What the system says.
    pub fn epoch(&mut self, activation: &str, report: &EpochReport) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            activation: &'a str,
            #[serde(flatten)]
            report: &'a EpochReport,
        }
        self.line(&Line { activation, report })
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// What the system says.
    pub fn summary(&mut self, summary: &RunSummary) -> io::Result<()> {
        self.line(summary)
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}
