use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sparsek::io::text;

use super::{checkpoint::RunId, types::EpochReport};

/// Last line of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Always true.
    pub summary: bool,
    /// Such as `flex`.
    pub backend: String,
    /// Device.
    pub device: String,
    /// Dataset.
    pub dataset: String,
    /// Such as `sage`.
    pub model: String,
    /// Such as `accuracy`.
    pub metric: String,
    /// Such as `maxk:32:exact`.
    pub activation: String,
    /// Hidden width.
    pub hidden: usize,
    /// Layers.
    pub layers: usize,
    /// Dropout.
    pub dropout: f64,
    /// Learning rate.
    pub lr: f64,
    /// L2 penalty.
    pub weight_decay: f64,
    /// Seed.
    pub seed: u64,
    /// Trainable numbers.
    pub parameters: usize,
    /// Most epochs.
    pub most_epochs: usize,
    /// Epochs run.
    pub epochs: usize,
    /// Best epoch.
    pub best_epoch: usize,
    /// Its validation metric.
    pub val: f64,
    /// Its test metric.
    pub test: f64,
    /// Median milliseconds.
    pub ms_per_epoch: f64,
    /// Total seconds.
    pub seconds: f64,
    /// Epochs were replayed.
    #[serde(default)]
    pub captured: bool,
    /// Full configuration.
    #[serde(default)]
    pub configuration: String,
}

/// JSON-lines log: a line per epoch, then a [`RunSummary`]. Run ids separate runs.
///
/// Each line is one appending write. Readers skip truncated lines. Resumed runs log each epoch
/// once.
#[derive(Debug)]
pub struct RunLog {
    file: File,
    path: PathBuf,
    regular: bool,
    run: Option<String>,
    written: HashMap<String, Written>,
}

#[derive(Debug, Default)]
struct Written {
    epochs: HashSet<usize>,
    summaries: HashSet<usize>,
}

impl RunLog {
    /// Opens or creates a log. [`ErrorKind::InvalidData`] for other files, left unchanged.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let regular = path.metadata().map_or(true, |found| found.is_file());
        let mut options = File::options();
        let options = options.create(true).append(true).read(regular);
        let file = options.open(&path).map_err(|error| named(&path, error))?;
        let mut written = HashMap::<String, Written>::new();
        if regular {
            read_lines(&path, &file, |line| {
                let run = line.get("run").and_then(Value::as_str).unwrap_or_default();
                let run = written.entry(run.to_string()).or_default();
                let epochs = line.get("epochs").or_else(|| line.get("epoch"));
                let epochs = epochs.and_then(Value::as_u64).unwrap_or(0) as usize;
                match line.contains_key("summary") {
                    true => run.summaries.insert(epochs),
                    false => run.epochs.insert(epochs),
                };
                Ok(())
            })?;
        }
        Ok(Self { file, path, regular, run: None, written })
    }

    /// Reads summaries; none without a file.
    pub fn summaries(path: impl AsRef<Path>) -> io::Result<Vec<RunSummary>> {
        let path = path.as_ref();
        let file = match sparsek::io::input::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(|error| named(path, error))?.0,
        };
        let mut all = Vec::new();
        read_lines(path, &file, |line| {
            if line.contains_key("summary") {
                all.push(serde_json::from_value(Value::Object(line))?);
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Sets the current run.
    pub fn begin(&mut self, run: &RunId) {
        self.run = Some(run.to_string());
    }

    /// Logs an epoch unless present.
    pub fn epoch(&mut self, activation: &str, report: &EpochReport) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            run: &'a str,
            activation: &'a str,
            #[serde(flatten)]
            report: &'a EpochReport,
        }
        let run = self.run.clone().unwrap_or_default();
        let has = |of: &Written| of.epochs.contains(&report.epoch);
        if self.written.get(&run).is_some_and(has) {
            return Ok(());
        }
        self.line(&Line { run: &run, activation, report })?;
        let written = self.written.entry(run).or_default();
        written.epochs.insert(report.epoch);
        Ok(())
    }

    /// Logs a summary once.
    pub fn summary(&mut self, summary: &RunSummary) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            run: &'a str,
            #[serde(flatten)]
            summary: &'a RunSummary,
        }
        let run = self.run.clone().unwrap_or_default();
        let has = |of: &Written| of.summaries.contains(&summary.epochs);
        if self.written.get(&run).is_some_and(has) {
            return Ok(());
        }
        self.line(&Line { run: &run, summary })?;
        let written = self.written.entry(run).or_default();
        written.summaries.insert(summary.epochs);
        Ok(())
    }

    /// Flushes to disk.
    pub fn sync(&self) -> io::Result<()> {
        match self.regular {
            true => self.file.sync_data().map_err(|error| self.named(error)),
            false => Ok(()),
        }
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = Vec::new();
        if self.cut_short().map_err(|error| self.named(error))? {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, value)?;
        line.push(b'\n');
        let written = self.file.write_all(&line);
        written.map_err(|error| self.named(error))
    }

    fn cut_short(&mut self) -> io::Result<bool> {
        if !self.regular || self.file.metadata()?.len() == 0 {
            return Ok(false);
        }
        let mut last = [0];
        // Writes append anyway.
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }

    fn named(&self, error: io::Error) -> io::Error {
        named(&self.path, error)
    }
}

const MAX_LINE: u64 = 1 << 20;

const BEGINNINGS: [&[u8]; 3] = [b"{\"run\":", b"{\"activation\":", b"{\"summary\":"];

fn read_lines(
    path: &Path,
    file: &File,
    mut each: impl FnMut(Map<String, Value>) -> io::Result<()>,
) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| named(path, error))? == 0 {
            break;
        }
        let foreign = |reason: &str| {
            let reason =
                format!("line {number} is not part of a run log{reason}; the file is unchanged");
            named(path, io::Error::new(ErrorKind::InvalidData, reason))
        };
        let text = line.trim_ascii();
        let cut = |text: &[u8]| {
            let begins = |start: &&[u8]| text.starts_with(start) || start.starts_with(text);
            BEGINNINGS.iter().any(begins)
        };
        let value = match serde_json::from_slice::<Map<String, Value>>(text) {
            Ok(value) => value,
            Err(error) if error.is_eof() && cut(text) => continue,
            Err(error) => return Err(foreign(&format!(": {}", text::excerpt(&error.to_string())))),
        };
        let ours = match value.get("summary") {
            Some(summary) => summary == &Value::Bool(true),
            None => {
                value.get("epoch").is_some_and(Value::is_u64) && value.contains_key("activation")
            }
        };
        if !ours {
            return Err(foreign(""));
        }
        each(value)
            .map_err(|error| foreign(&format!(": {}", text::excerpt(&error.to_string()))))?;
    }
    Ok(())
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
