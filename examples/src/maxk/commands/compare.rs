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
    nn::{Activation, Architecture, method_from_str},
    train::{RunLog, RunSummary, Trainer},
};

use super::common::{Done, Ended, announce, check_output, configuration, named, run};
use crate::{
    cli::{CompareArgs, Kind, StructureName, looped, name},
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
    let activations = activations(args)?;
    args.settings.check()?;
    check_paths(args.data.inputs(), [Some(&args.log), args.plot.as_ref()].into_iter().flatten())?;
    // The log may also be the source of times.
    check_paths(&args.times, &args.plot)?;
    let data = args.data.load()?;
    let wanted: Vec<(Architecture, bool)> = args
        .models
        .iter()
        .map(|model| match model.kind(StructureName::Maxk)? {
            Kind::Maxk(architecture) => {
                let loops = args.settings.settings(Kind::Maxk(architecture), &data).self_loops;
                Ok((architecture, loops || args.data.self_loops))
            }
            Kind::Plain(_) => unreachable!("the structure is not plain"),
        })
        .collect::<Result<_, String>>()?;
    let every = wanted.iter().all(|&(_, loops)| loops);
    let some = wanted.iter().any(|&(_, loops)| loops);
    let data = looped(data, every);
    let other = (some && !every).then(|| looped(data.clone(), true));
    let datasets = wanted.iter().map(|&(architecture, loops)| match &other {
        Some(other) if loops => (architecture, other),
        _ => (architecture, &data),
    });
    let datasets: Vec<(Architecture, &NodeDataset)> = datasets.collect();
    let times = args.times.as_deref().map(|file| RunLog::summaries(file).map(|runs| (file, runs)));
    let times = times.transpose()?;
    for &(architecture, data) in &datasets {
        for &activation in &activations {
            let config = args.settings.training(Kind::Maxk(architecture), 0, data);
            let model = args.settings.model(architecture, activation, data);
            Trainer::new(&config, &model, data)?;
            if let Some(times) = &times {
                time_of((architecture, activation), data, times)?;
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
    for (architecture, data) in datasets {
        let mut groups = Vec::new();
        for &activation in &activations {
            let runs = (0..args.seeds).map(|seed| {
                let of = (architecture, activation, seed);
                one(args, of, data, &backend, (&earlier, &mut log))
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
                    Some(times) => time_of((architecture, activation), data, times)?,
                    None => time(&runs),
                },
                runs,
            });
        }
        panels.push(table(architecture, &groups));
    }
    if let (Some(file), Some(mut drawing)) = (&args.plot, drawing) {
        let drawn = figure::write(&mut drawing, data.name(), &panels);
        drawn.map_err(|error| named(file, error))?;
        commit(file, drawing)?;
    }
    Ok(Ended::Whole)
}

/// ReLU first, MaxK stopped early, MaxK exact.
fn activations(args: &CompareArgs) -> Done<Vec<Activation>> {
    let mut all = vec![Activation::Relu];
    let k = args.settings.k();
    for iterations in args.early.iter().filter(|text| !text.is_empty()) {
        let method = method_from_str(&format!("early:{iterations}"))?;
        all.push(Activation::MaxK { k, method });
    }
    all.push(Activation::maxk(k));
    Ok(all)
}

/// A run, logged or new; none if interrupted.
fn one(
    args: &CompareArgs,
    (architecture, activation, seed): (Architecture, Activation, u64),
    data: &NodeDataset,
    backend: &Backend,
    (earlier, log): (&[RunSummary], &mut RunLog),
) -> Done<Option<RunSummary>> {
    let config = args.settings.training(Kind::Maxk(architecture), seed, data);
    let model = args.settings.model(architecture, activation, data);
    let settings = args.data.settings();
    let configuration = configuration(&config, &model, (data, &settings))?;
    let same = |run: &&RunSummary| {
        run.dataset == data.name()
            && run.backend == backend.choice.to_string()
            && run.configuration == configuration
    };
    if let Some(run) = earlier.iter().find(same) {
        return Ok(Some(run.clone()));
    }
    if stop::asked() {
        return Ok(None);
    }
    let trainer = Trainer::new(&config, &model, data)?;
    let backend = slice::from_ref(backend);
    Ok(run(trainer, backend, &config, &model, (data, &settings), Some(log), Plain::Lines)?.1)
}

fn time<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> f64 {
    median(runs.into_iter().map(|run| run.ms_per_epoch).collect())
}

/// Median epoch time in other runs.
fn time_of(
    (architecture, activation): (Architecture, Activation),
    data: &NodeDataset,
    (file, runs): &(&Path, Vec<RunSummary>),
) -> Done<f64> {
    let (model, label) = (name(architecture), activation.to_string());
    let same = |run: &&RunSummary| {
        run.dataset == data.name() && run.model == model && run.activation == label
    };
    match time(runs.iter().filter(same)) {
        ms if ms.is_nan() => {
            let data = data.name();
            Err(format!("{}: no run of {model} with {label} on {data}", file.display()).into())
        }
        ms => Ok(ms),
    }
}

/// Prints a model's table and returns its panel.
fn table(architecture: Architecture, groups: &[Group]) -> Panel {
    let (relu, exact) = (groups[0].ms, groups[groups.len() - 1].ms);
    let metric = groups[0].runs.first().map_or("test", |run| &run.metric);
    let title = name(architecture).to_uppercase();
    say!("\n| {title} | test {metric} | validation | ms per epoch | ReLU / this | exact / this |");
    say!("| --- | --- | --- | --- | --- | --- |");
    let mut points = Vec::new();
    for group in groups {
        let (test, spread) = moments(group.runs.iter().map(|run| run.test).collect());
        let (val, _) = moments(group.runs.iter().map(|run| run.val).collect());
        let ms = group.ms;
        say!(
            "| {} | {test:.4} ± {spread:.4} | {val:.4} | {ms:.1} | {:.2} | {:.2} |",
            group.label,
            relu / ms,
            exact / ms
        );
        points.push(Point { label: group.label.clone(), test, spread, speed_up: relu / ms });
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
