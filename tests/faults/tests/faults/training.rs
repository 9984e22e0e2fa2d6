//! `maxk train` with a checkpoint, log and plot.
use std::fs;

use serde_json::Value;

use super::{
    command::{Folder, KINDS, Kind, points},
    counts::Counts,
};

const TRAIN: &str = "maxk train --format karate --backend flex --hidden 16 --layers 2 --k 4 \
     --epochs 6 --save-every 2 --checkpoint run --log run.jsonl --plot run.svg";
const EVAL: &str = "maxk eval --checkpoint run --backend flex";
const OLD: &[u8] = b"<svg>the old plot</svg>";

/// Log lines without timings, each with the id of its run.
fn lines(folder: &Folder) -> Result<Vec<(String, Value)>, String> {
    let bytes = fs::read(folder.file("run.jsonl")).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            Err(error) if error.is_eof() => continue,
            Err(error) => return Err(format!("{line}: {error}")),
        };
        let fields = value.as_object_mut().ok_or("no object")?;
        for field in ["ms", "ms_per_epoch", "seconds"] {
            fields.remove(field);
        }
        let run = fields.remove("run").ok_or("no run")?;
        lines.push((run.as_str().unwrap_or_default().to_string(), value));
    }
    Ok(lines)
}

/// Results of a run without faults.
struct Reference {
    lines: Vec<Value>,
    plot: Vec<u8>,
    eval: String,
    names: Vec<String>,
}

impl Reference {
    fn new(folder: &Folder) -> Self {
        folder.runs(TRAIN).unwrap();
        let lines = lines(folder).unwrap().into_iter().map(|(_, line)| line);
        let reference = Self {
            lines: lines.collect(),
            plot: fs::read(folder.file("run.svg")).unwrap(),
            eval: folder.runs(EVAL).unwrap(),
            names: folder.names(),
        };
        assert_eq!(reference.lines.len(), 7, "{:?}", reference.lines);
        assert!(reference.plot.trim_ascii_end().ends_with(b"</svg>"));
        reference
    }

    /// Checks files after a fault, then resumes and compares all results.
    fn check(&self, folder: &Folder) -> Result<(), String> {
        let plot = || fs::read(folder.file("run.svg")).unwrap_or_default();
        if plot() != OLD && plot() != self.plot {
            return Err(format!("partial plot of {} bytes", plot().len()));
        }
        let begun = folder.file("run/manifest.json").exists();
        let evaluated = folder.run(EVAL);
        let message = String::from_utf8_lossy(&evaluated.stderr).into_owned();
        let unsaved = message.contains("no saved epoch") || message.contains("no run is saved");
        if !evaluated.status.success() && !unsaved {
            return Err(format!("cannot be evaluated: {message}"));
        }
        match begun {
            true => folder.runs(&format!("{TRAIN} --resume"))?,
            false => folder.runs(TRAIN)?,
        };
        if plot() != self.plot {
            return Err("another plot".to_string());
        }
        let evaluated = folder.runs(EVAL)?;
        if evaluated != self.eval {
            return Err(format!("another model: {evaluated}"));
        }
        if folder.names() != self.names {
            return Err(format!("leftovers: {:?}", folder.names()));
        }
        let lines = lines(folder)?;
        let (last, _) = lines.last().ok_or("an empty log")?;
        let own = |run: &str| -> Vec<&Value> {
            let of = lines.iter().filter(|(id, _)| id == run);
            of.map(|(_, line)| line).collect()
        };
        let wanted: Vec<&Value> = self.lines.iter().collect();
        if own(last) != wanted {
            return Err(format!("another log: {:?}", own(last)));
        }
        // A run that stopped before its manifest existed has at most begun its log.
        match lines.iter().find(|(id, _)| !wanted.starts_with(&own(id))) {
            Some((id, _)) => Err(format!("another log of {id}: {:?}", own(id))),
            None => Ok(()),
        }
    }
}

#[test]
fn a_run_reaches_its_figures_whatever_fails() {
    let folder = Folder::new("train");
    let reference = Reference::new(&folder);
    let mut counts = Counts::default();
    for kind in KINDS {
        for at in points(kind) {
            folder.clear();
            fs::write(folder.file("run.svg"), OLD).unwrap();
            let Some(failed) = folder.faulty(TRAIN, kind, at) else {
                break;
            };
            let checked = failed.and_then(|()| reference.check(&folder));
            counts.add(format!("train, {kind:?} at {at}"), checked);
        }
    }
    counts.finish("train");
}

#[test]
fn a_resumed_run_reaches_its_figures_whatever_fails() {
    let folder = Folder::new("resume");
    let reference = Reference::new(&folder);
    let resume = format!("{TRAIN} --resume");
    let mut counts = Counts::default();
    for kind in KINDS {
        for at in points(kind) {
            folder.clear();
            fs::write(folder.file("run.svg"), OLD).unwrap();
            // The first run is killed while it saves.
            let first = folder.faulty(TRAIN, Kind::Kill, 60);
            first.unwrap().unwrap();
            let Some(failed) = folder.faulty(&resume, kind, at) else {
                break;
            };
            let checked = failed.and_then(|()| reference.check(&folder));
            counts.add(format!("resume, {kind:?} at {at}"), checked);
        }
    }
    counts.finish("resume");
}
