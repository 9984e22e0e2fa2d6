//! Comparison of many runs.
use std::{path::Path, slice};

use sparsek::io::text::clean;
use sparsek_examples::{
    backend::{self, Backend},
    note,
    program::{check_paths, commit, create},
    say,
};
use sparsek_gnn::{
    datasets::NodeDataset,
    nn::{Activation, ConvKind, method_from_str},
    train::{RunLog, RunSummary, Trainer},
};

use super::common::{
    Described, Done, Ended, announce, check_output, configuration, median, named, run,
};
use crate::{
    cli::{CompareArgs, Kind, ModelName, looped, name, plain_name},
    figure::{self, Panel, Point},
    progress::Plain,
    stop,
};

struct Group {
    label: String,
    runs: Vec<RunSummary>,
    /// Milliseconds per epoch.
    ms: f64,
}

/// Trains runs missing from the log, prints tables and draws them.
pub fn compare(args: &CompareArgs) -> Done {
    let methods = methods(args)?;
    args.settings.check()?;
    let kind = |model: &ModelName| {
        let kind = model.kind(args.structure)?;
        args.settings.check_model(kind).map(|()| kind)
    };
    let kinds: Vec<Kind> = args.models.iter().map(kind).collect::<Result<_, String>>()?;
    check_paths(args.data.inputs(), [Some(&args.log), args.plot.as_ref()].into_iter().flatten())?;
    // The log may also be the source of times.
    check_paths(&args.times, &args.plot)?;
    let data = args.data.load()?;
    let loops = |kind| args.settings.settings(kind, &data).self_loops || args.data.self_loops;
    let wanted: Vec<(Kind, bool)> = kinds.iter().map(|&kind| (kind, loops(kind))).collect();
    let every = wanted.iter().all(|&(_, loops)| loops);
    let some = wanted.iter().any(|&(_, loops)| loops);
    let data = looped(data, every);
    let other = (some && !every).then(|| looped(data.clone(), true));
    let datasets = wanted.iter().map(|&(kind, loops)| match &other {
        Some(other) if loops => (kind, other),
        _ => (kind, &data),
    });
    let datasets: Vec<(Kind, &NodeDataset)> = datasets.collect();
    let times = args.times.as_deref().map(|file| RunLog::summaries(file).map(|runs| (file, runs)));
    let times = times.transpose()?;
    for &(kind, data) in &datasets {
        for &activation in &activations(kind, &methods) {
            check(args, kind, activation, data)?;
            if let Some(times) = &times {
                time_of((kind, activation), data, times)?;
            }
        }
    }
    check_output(&args.log)?;
    let drawing = args.plot.as_deref().map(create).transpose()?;
    let earlier = RunLog::summaries(&args.log)?;
    let backend = backend::open(args.backend)?;
    backend::check_training(slice::from_ref(&backend))?;
    announce(slice::from_ref(&backend), &data);
    let mut log = RunLog::open(&args.log)?;
    let mut panels = Vec::new();
    for (kind, data) in datasets {
        let mut groups = Vec::new();
        for &activation in &activations(kind, &methods) {
            let runs = (0..args.seeds).map(|seed| {
                let logs = (&earlier[..], &mut log);
                one(args, (kind, activation, seed), data, &backend, logs)
            });
            let Some(runs) = runs.collect::<Done<Option<Vec<_>>>>()? else {
                note!(
                    "finished runs are in {}; to go on: {}",
                    clean(&args.log.display().to_string()),
                    stop::command(None)
                );
                return Ok(Ended::Interrupted);
            };
            groups.push(Group {
                label: activation.to_string(),
                ms: match &times {
                    Some(times) => time_of((kind, activation), data, times)?,
                    None => time(&runs),
                },
                runs,
            });
        }
        panels.push(table(kind, &groups));
    }
    if let (Some(file), Some(mut drawing)) = (&args.plot, drawing) {
        let drawn = figure::write(&mut drawing, data.name(), &panels);
        drawn.map_err(|error| named(file, error))?;
        commit(file, drawing)?;
    }
    Ok(Ended::Whole)
}

/// MaxK stopped early, and exact.
fn methods(args: &CompareArgs) -> Done<Vec<Activation>> {
    let mut all = Vec::new();
    let k = args.settings.k();
    for iterations in args.early.iter().filter(|text| !text.is_empty()) {
        let method = method_from_str(&format!("early:{iterations}"))?;
        all.push(Activation::MaxK { k, method });
    }
    all.push(Activation::maxk(k));
    Ok(all)
}

/// The paper's nonlinearity, then those of MaxK.
fn activations(kind: Kind, methods: &[Activation]) -> Vec<Activation> {
    [&[usual(kind).0], methods].concat()
}

/// The paper's nonlinearity, and how tables write it.
fn usual(kind: Kind) -> (Activation, &'static str) {
    match kind {
        Kind::Plain(ConvKind::Gat) => (Activation::Elu, "ELU"),
        _ => (Activation::Relu, "ReLU"),
    }
}

/// Refuses what does not fit before the first run.
fn check(args: &CompareArgs, kind: Kind, activation: Activation, data: &NodeDataset) -> Done<()> {
    let (settings, config) = (&args.settings, args.settings.training(kind, 0, data));
    match kind {
        Kind::Maxk(architecture) => {
            Trainer::new(&config, &settings.model(architecture, activation, data), data)?;
        }
        Kind::Plain(conv) => {
            Trainer::new(&config, &settings.plain_model(conv, activation, data), data)?;
        }
    }
    Ok(())
}

type Logs<'a> = (&'a [RunSummary], &'a mut RunLog);

/// A run, logged or new; none if interrupted.
fn one(
    args: &CompareArgs,
    (kind, activation, seed): (Kind, Activation, u64),
    data: &NodeDataset,
    backend: &Backend,
    logs: Logs,
) -> Done<Option<RunSummary>> {
    let settings = &args.settings;
    match kind {
        Kind::Maxk(architecture) => {
            let model = settings.model(architecture, activation, data);
            one_of(args, &model, (kind, seed), data, backend, logs)
        }
        Kind::Plain(conv) => {
            let model = settings.plain_model(conv, activation, data);
            one_of(args, &model, (kind, seed), data, backend, logs)
        }
    }
}

fn one_of<C: Described>(
    args: &CompareArgs,
    model: &C,
    (kind, seed): (Kind, u64),
    data: &NodeDataset,
    backend: &Backend,
    (earlier, log): Logs,
) -> Done<Option<RunSummary>> {
    let config = args.settings.training(kind, seed, data);
    let settings = args.data.settings();
    let configuration = configuration(&config, model, (data, &settings))?;
    let same = |run: &&RunSummary| {
        run.dataset == data.name()
            && run.backend == backend.choice.to_string()
            && run.configuration == configuration
            && !run.captured
    };
    if let Some(run) = earlier.iter().find(same) {
        return Ok(Some(run.clone()));
    }
    if stop::asked() {
        return Ok(None);
    }
    let trainer = Trainer::new(&config, model, data)?;
    let backend = slice::from_ref(backend);
    Ok(run(trainer, backend, &config, model, (data, &settings), Some(log), Plain::Lines)?.1)
}

fn time<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> f64 {
    median(runs.into_iter().map(|run| run.ms_per_epoch).collect())
}

/// Median epoch time in other runs.
fn time_of(
    (kind, activation): (Kind, Activation),
    data: &NodeDataset,
    (file, runs): &(&Path, Vec<RunSummary>),
) -> Done<f64> {
    let (model, label) = (name_of(kind), activation.to_string());
    let same = |run: &&RunSummary| {
        run.dataset == data.name() && run.model == model && run.activation == label && !run.captured
    };
    match time(runs.iter().filter(same)) {
        ms if ms.is_nan() => {
            let data = data.name();
            Err(format!("{}: no run of {model} with {label} on {data}", file.display()).into())
        }
        ms => Ok(ms),
    }
}

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Maxk(architecture) => name(architecture),
        Kind::Plain(conv) => plain_name(conv),
    }
}

/// Prints a model's table and returns its panel.
fn table(kind: Kind, groups: &[Group]) -> Panel {
    let (first, exact) = (groups[0].ms, groups[groups.len() - 1].ms);
    let metric = groups[0].runs.first().map_or("test", |run| &run.metric);
    let title = name_of(kind).to_uppercase();
    let (_, over) = usual(kind);
    say!(
        "\n| {title} | test {metric} | validation | ms per epoch | {over} / this | exact / this |"
    );
    say!("| --- | --- | --- | --- | --- | --- |");
    let mut points = Vec::new();
    for group in groups {
        let (test, spread) = moments(group.runs.iter().map(|run| run.test).collect());
        let (val, _) = moments(group.runs.iter().map(|run| run.val).collect());
        let ms = group.ms;
        say!(
            "| {} | {test:.4} ± {spread:.4} | {val:.4} | {ms:.1} | {:.2} | {:.2} |",
            group.label,
            first / ms,
            exact / ms
        );
        points.push(Point { label: group.label.clone(), test, spread, speed_up: first / ms });
    }
    Panel { title, metric: metric.to_string(), points }
}

/// Mean and sample standard deviation.
fn moments(values: Vec<f64>) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (square / (count - 1.0).max(1.0)).sqrt())
}
