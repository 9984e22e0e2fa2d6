//! Checkpoint folders: no change of files makes loading panic.
//!
//! A small run is saved once; each input changes its files. An accepted folder must evaluate to the
//! saved figures if the checksums are original, and take a training step if they were forged.
#![no_main]

use std::{collections::BTreeMap, env::temp_dir, fs, path::PathBuf, process::id, sync::OnceLock};

use burn::tensor::Device;
use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use sha2::{Digest, Sha256};
use sparsek::io::memory;
use sparsek_gnn::{
    datasets::{NodeDataset, karate},
    nn::{Activation, Architecture, MaxKModelConfig},
    train::{
        CheckpointDir, EpochReport, Evaluation, Preparation, TrainConfig, TrainError, Trainer,
        evaluate,
    },
};

const MANIFEST: &str = "manifest.json";

/// A saved run.
struct Saved {
    data: NodeDataset,
    model: MaxKModelConfig,
    config: TrainConfig,
    files: Files,
    figures: Evaluation,
}

type Files = BTreeMap<String, Vec<u8>>;

fn folder() -> PathBuf {
    temp_dir().join(format!("sparsek-fuzz-checkpoint-{}", id()))
}

fn saved() -> &'static Saved {
    static SAVED: OnceLock<Saved> = OnceLock::new();
    SAVED.get_or_init(|| {
        memory::set_limit(64 << 20);
        let data = karate::karate_club();
        let (features, classes) = (data.feature_width(), data.classes());
        let model = MaxKModelConfig::new(Architecture::Sage, features, 4, classes)
            .with_layers(2)
            .with_activation(Activation::maxk(2));
        let config = TrainConfig::new().with_epochs(2);
        let _ = fs::remove_dir_all(folder());
        let trainer = Trainer::new(&config, &model, &data).expect("the configuration is valid");
        trainer
            .with_preparation(Preparation::from([("a".to_string(), "b".to_string())]))
            .with_checkpoint(CheckpointDir::new(folder()))
            .and_then(|trainer| trainer.run(&Device::flex(), &mut |_: &EpochReport| Ok(())))
            .expect("the run is saved");
        let entries = fs::read_dir(folder())
            .expect("the folder is there")
            .flatten();
        let read = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.to_string();
            Some((name, fs::read(path).ok()?))
        };
        let files: Files = entries.filter_map(|entry| read(entry.path())).collect();
        let (own, best) = CheckpointDir::new(folder())
            .best_model::<MaxKModelConfig>(&Device::flex())
            .expect("the run can be read");
        let figures = evaluate(&config, &own, &best, &data, &Device::flex());
        Saved {
            figures: figures.expect("the run can be evaluated"),
            data,
            model,
            config,
            files,
        }
    })
}

fuzz_target!(|bytes: &[u8]| {
    let saved = saved();
    let mut input = Unstructured::new(bytes);
    let mut files = saved.files.clone();
    let Ok(forged) = change(&mut input, &mut files) else {
        return;
    };
    let folder = folder();
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    for (name, bytes) in &files {
        fs::write(folder.join(name), bytes).expect("a temporary file can be written");
    }
    let device = Device::flex();
    let dir = CheckpointDir::new(&folder);
    if let Some((config, model)) = accept(dir.best_model::<MaxKModelConfig>(&device)) {
        let found = evaluate(&saved.config, &config, &model, &saved.data, &device);
        if let (false, Some(found)) = (forged, accept(found)) {
            let values = |of: &Evaluation| [of.loss, of.train, of.val, of.test].map(f64::to_bits);
            assert_eq!(values(&found), values(&saved.figures));
        }
    }
    let trainer = Trainer::new(&saved.config, &saved.model, &saved.data);
    let trainer = trainer.expect("the configuration is valid");
    let preparation = Preparation::from([("a".to_string(), "b".to_string())]);
    let resumed = trainer.with_preparation(preparation).resume(dir);
    let resumed = accept(resumed).and_then(|trainer| accept(trainer.start(&device)));
    if let Some(mut epochs) = resumed {
        epochs.step();
    }
});

/// The value; errors must be one short line.
fn accept<T>(result: std::result::Result<T, TrainError>) -> Option<T> {
    result
        .map_err(|error| {
            let message = error.to_string();
            assert!(!message.contains(char::is_control), "{message:?}");
            assert!(message.len() < 4000, "{message:?}");
        })
        .ok()
}

/// Changes files; returns whether checksums were forged to fit.
fn change(input: &mut Unstructured, files: &mut Files) -> Result<bool> {
    let forged = input.arbitrary()?;
    let names: Vec<String> = files.keys().cloned().collect();
    for _ in 0..input.int_in_range(1..=4)? {
        let name = input.choose(&names)?;
        let Some(file) = files.get_mut(name) else {
            continue;
        };
        let at = input.int_in_range(0..=file.len())?;
        let count = input.int_in_range(0..=16)?;
        match input.int_in_range(0..=5)? {
            0 => {
                let bytes = input.bytes(count)?;
                let end = (at + count).min(file.len());
                file[at..end].copy_from_slice(&bytes[..end - at]);
            }
            1 => file.truncate(at),
            2 => {
                let bytes = input.bytes(count)?.to_vec();
                file.splice(at..at, bytes);
            }
            3 => {
                let end = (at + count).min(file.len());
                file.drain(at..end);
            }
            4 => {
                let other = input.choose(&names)?;
                let other = files.get(other).cloned().unwrap_or_default();
                files.insert(name.clone(), other);
            }
            _ => {
                files.remove(name);
            }
        }
    }
    if forged {
        forge(files);
    }
    Ok(forged)
}

/// Forges the manifest's lengths and checksums to fit the files.
fn forge(files: &mut Files) {
    let Some(manifest) = files.get(MANIFEST) else {
        return;
    };
    let text = String::from_utf8_lossy(manifest).into_owned();
    let Some((_, run)) = text.split_once("\n\"run\":") else {
        return;
    };
    let mut run = run.trim_end().trim_end_matches('}').to_string() + "}";
    for (name, before) in &saved().files {
        if let Some(now) = files.get(name) {
            run = run.replace(&sha256(before), &sha256(now));
            let length = |bytes: &[u8]| format!("\"{name}\",\"bytes\":{}", bytes.len());
            run = run.replace(&length(before), &length(now));
        }
    }
    // Close all open braces of the run.
    let count = |brace| run.matches(brace).count();
    let missing = count('{').saturating_sub(count('}'));
    run += &"}".repeat(missing);
    let sum = sha256(run.as_bytes());
    let head = format!(
        "{{\"format\":\"sparsek checkpoint\",\"version\":1,\"sha256\":\"{sum}\",\n\"run\":"
    );
    files.insert(
        MANIFEST.to_string(),
        format!("{head}{run}}}\n").into_bytes(),
    );
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
