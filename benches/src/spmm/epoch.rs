//! Times epochs of full-batch training: forward, loss, backward and a step of Adam; no evaluation.

use anyhow::{Context, ensure};
use burn::tensor::{DType, Device, Distribution, Tensor};
use sparsek::{sparse::sparse_topk, topk::Method as Selection};
use sparsek_gnn::{
    datasets::NodeDataset,
    nn::{Activation, MaxKModelConfig, Representation},
    train::{Epochs, Precision, TrainConfig, Trainer},
};

use super::types::{Bench, Method, Model, Source};
use crate::{
    record::{self, EpochRecord},
    timing::{Median, Ready, measure_ahead, measure_tensors, wall_clock},
};

const HIDDEN: usize = 256;
const LAYERS: usize = 3;
const CHECKED: usize = 4;
/// Relative difference allowed between losses through compressed and dense rows. Tensor cores round
/// factors to 11 bits, mixed precision all results to 8, and steps enlarge the difference.
const TOLERANCE: f64 = 3e-2;
const MIXED_TOLERANCE: f64 = 5e-2;

pub fn run(bench: &Bench, source: &Source) -> anyhow::Result<Vec<EpochRecord>> {
    let arguments = bench.arguments;
    let mut all = Vec::new();
    if arguments.methods.contains(&Method::EpochRelu) {
        all.push(Activation::Relu);
    }
    if arguments.methods.contains(&Method::Epoch) {
        all.extend(arguments.selections.iter().flat_map(|&method| {
            let k = arguments.k.iter();
            k.map(move |&k| Activation::MaxK { k, method })
        }));
    }
    let mut records = Vec::new();
    if all.is_empty() {
        return Ok(records);
    }
    let data = source.dataset(arguments.seed)?;
    let device = &bench.backend.device;
    let upload_ms = wall_clock(|| {
        drop(data.graph().adjacency(device));
        Ok(device.sync()?)
    })?;
    let config = TrainConfig::new()
        .with_lr(0.01)
        .with_seed(arguments.seed)
        .with_precision(arguments.mixed.then_some(Precision::Bf16));
    for activation in all {
        let training = Training::new(device, &data, &config, arguments.model, activation);
        let record = one(bench, source, &training, upload_ms)
            .with_context(|| format!("{}, {activation}", source.name))?;
        say!("{}", line(&record));
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
        records.push(record);
    }
    Ok(records)
}

/// Full-batch training with an activation.
pub struct Training<'a> {
    device: &'a Device,
    data: &'a NodeDataset,
    config: &'a TrainConfig,
    activation: Activation,
    compressed: MaxKModelConfig,
    masked: MaxKModelConfig,
}

impl<'a> Training<'a> {
    pub fn new(
        device: &'a Device,
        data: &'a NodeDataset,
        config: &'a TrainConfig,
        model: Model,
        activation: Activation,
    ) -> Self {
        let (features, classes) = (data.feature_width(), data.classes());
        let architecture = model.architecture();
        let model = |form| {
            MaxKModelConfig::new(architecture, features, HIDDEN, classes)
                .with_layers(LAYERS)
                .with_activation(activation)
                .with_form(form)
        };
        Self {
            device,
            data,
            config,
            activation,
            compressed: model(Representation::Compressed),
            masked: model(Representation::Masked),
        }
    }

    fn start(&self, form: Representation) -> anyhow::Result<Epochs<'_, MaxKModelConfig>> {
        let model = match form {
            Representation::Compressed => &self.compressed,
            Representation::Masked => &self.masked,
        };
        self.device.sync()?;
        self.device.memory_cleanup();
        let epochs = Trainer::new(self.config, model, self.data)?.start(self.device)?;
        self.device.sync()?;
        Ok(epochs)
    }

    /// The losses of the first epochs, and the time of the first one.
    fn losses(&self, form: Representation) -> anyhow::Result<(Vec<f64>, f64)> {
        let mut epochs = self.start(form)?;
        let mut losses = Vec::new();
        let mut step = || {
            losses.push(epochs.step());
            Ok(self.device.sync()?)
        };
        let first_ms = wall_clock(&mut step)?;
        (1..CHECKED).try_for_each(|_| step())?;
        let read = |loss: Tensor<1>| f64::from(loss.into_scalar::<f32>());
        Ok((losses.into_iter().map(read).collect(), first_ms))
    }

    /// [`Training::losses`], after comparison with those of training through dense rows.
    fn checked(&self) -> anyhow::Result<(Vec<f64>, f64)> {
        let (losses, first_ms) = self.losses(Representation::Compressed)?;
        ensure!(losses.iter().all(|loss| loss.is_finite()), "the first losses were {losses:?}");
        if self.activation != Activation::Relu {
            let (dense, _) = self.losses(Representation::Masked)?;
            let tolerance = match self.config.precision {
                Some(Precision::Bf16) => MIXED_TOLERANCE,
                _ => TOLERANCE,
            };
            for (epoch, (&loss, dense)) in (1..).zip(losses.iter().zip(dense)) {
                ensure!(
                    (loss - dense).abs() <= tolerance * dense,
                    "epoch {epoch}: the loss is {loss}, through dense rows {dense}"
                );
            }
        }
        Ok((losses, first_ms))
    }

    /// Checks the first epochs; the next ones are to be timed.
    pub fn ready(&self) -> anyhow::Result<Ready<'_>> {
        let (losses, first_ms) = self.checked()?;
        let mut epochs = self.start(Representation::Compressed)?;
        let run = move || drop(epochs.step());
        Ok(Ready::ahead(self.device, first_ms, losses.len(), run))
    }
}

fn one(
    bench: &Bench,
    source: &Source,
    training: &Training,
    upload_ms: f64,
) -> anyhow::Result<EpochRecord> {
    let Training { device, data, activation, .. } = *training;
    let (losses, first_ms) = training.checked()?;
    let mut epochs = training.start(Representation::Compressed)?;
    let mut loss = None;
    let Median { ms, spread } = measure_ahead(device, || loss = Some(epochs.step()))?;
    // Pools never shrink, so this is the peak.
    let peak = device.memory_pool_usage();
    let peak = peak.map(|usage| usage.bytes_reserved);
    let last = f64::from(loss.expect("measured").into_scalar::<f32>());
    drop(epochs);
    // At this rate the loss rises in the first steps, most of all on noise.
    let highest = losses.iter().copied().fold(0.0, f64::max);
    ensure!(last < highest, "the first losses were {losses:?}, the last {last}");
    let selection = match activation {
        Activation::Relu | Activation::Elu => None,
        Activation::MaxK { k, method } => Some((k, method)),
    };
    let topk_ms = selection.map(|selection| topk_ms(bench, data.nodes(), selection)).transpose()?;
    let method = match selection {
        None => Method::EpochRelu,
        Some(_) => Method::Epoch,
    };
    let (mut named, model) = match bench.arguments.model {
        Model::Sage => (source.name.clone(), None),
        other => (format!("{} {}", source.name, other.name()), Some(other.name().into())),
    };
    if bench.arguments.mixed {
        named += " mixed";
    }
    Ok(EpochRecord {
        bench: "spmm".into(),
        case: match selection {
            None => named,
            Some((k, _)) => format!("{named} k={k}"),
        },
        model,
        backend: bench.arguments.backend.to_string(),
        device: bench.backend.label.clone(),
        dtype: if bench.arguments.mixed { "bf16" } else { "f32" }.into(),
        method: method.name().into(),
        dist: source.dist.into(),
        graph: source.name.clone(),
        nodes: data.nodes(),
        edges: data.graph().edges(),
        features: data.feature_width(),
        classes: data.classes(),
        topk: selection.map(|(_, method)| method.to_string()),
        ms,
        spread: Some(spread),
        first_ms,
        upload_ms,
        topk_ms,
        topk_share: topk_ms.map(|topk| topk / ms),
        peak_mb: peak.map(|bytes| bytes as f64 / 1e6),
        copy_gbps: bench.copy_gbps,
        checked: losses.len(),
    })
}

/// Milliseconds of all selections of an epoch.
fn topk_ms(bench: &Bench, nodes: usize, (k, method): (usize, Selection)) -> anyhow::Result<f64> {
    let device = &bench.backend.device;
    let mut x = Tensor::<2>::random([nodes, HIDDEN], Distribution::Normal(0.0, 1.0), device);
    if bench.arguments.mixed {
        x = x.cast(DType::BF16);
    }
    let median = measure_tensors(device, || drop(sparse_topk(x.clone(), k, method)))?;
    Ok(LAYERS as f64 * median.ms)
}

fn line(record: &EpochRecord) -> String {
    let topk = match (&record.topk, record.topk_share) {
        (Some(topk), Some(share)) => format!(" {topk}: {:.1}% top-k,", 100.0 * share),
        _ => String::from(":"),
    };
    let peak = record.peak_mb.map_or(String::new(), |mb| format!(", peak {mb:.0} MB"));
    format!(
        "{} {}{topk} {:.3} ms{peak}, first epoch {:.0} ms, upload {:.0} ms, {} losses checked",
        record.case, record.method, record.ms, record.first_ms, record.upload_ms, record.checked,
    )
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::spmm::Arguments;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn an_epoch_of_a_small_graph() {
        let text =
            "bench --backend flex --graph reddit-size/1000 --k 32 --method epoch --topk early:4";
        let arguments = Command::parse_from(text.split(' ')).arguments;
        let bench = Bench {
            backend: arguments.backend.open().unwrap(),
            arguments: &arguments,
            copy_gbps: 1.0,
        };
        let source = Source::synthetic(&arguments.graphs[0], 5).unwrap();
        let data = source.dataset(5).unwrap();
        let activation = Activation::MaxK { k: arguments.k[0], method: arguments.selections[0] };
        let config = TrainConfig::new().with_lr(0.01);
        let training =
            Training::new(&bench.backend.device, &data, &config, arguments.model, activation);
        let record = one(&bench, &source, &training, 1.0).unwrap();
        assert_eq!(record.case, "reddit-size/1000 k=32");
        assert_eq!(record.topk.as_deref(), Some("early:4"));
        assert_eq!((record.nodes, record.edges), (232, 114_600));
        assert_eq!((record.features, record.classes, record.checked), (100, 47, CHECKED));
        let share = record.topk_share.unwrap();
        assert!(record.ms > 0.0 && share > 0.0 && share < 1.0, "{share}");
        assert!(record.peak_mb.is_none());
    }
}
