//! Many runs, and what they come to.
use std::{fs, io::ErrorKind, path::Path, slice};

use sparsek_examples::backend::{self, Backend};
use sparsek_gnn::{
    datasets::NodeDataset,
    nn::{Activation, Architecture, method_from_str},
    train::{RunLog, RunSummary, Trainer},
};

use super::{Done, announce, check_output, configuration, named, run};
use crate::{
    cli::{CompareArgs, looped, name},
    figure::{self, Panel, Point},
};

/// All runs of an activation.
struct Group {
    label: String,
    runs: Vec<RunSummary>,
    /// Of an epoch, in milliseconds.
    ms: f64,
}

/// Trains whatever the log does not hold, then prints a table, and draws it.
pub fn compare(args: &CompareArgs) -> Done {
    let activations = activations(args)?;
    let data = args.data.load()?;
    let wanted: Vec<(Architecture, bool)> = args
        .models
        .iter()
        .map(|model| {
            let architecture = model.architecture();
            let loops = args.settings.settings(architecture, &data).self_loops;
            (architecture, loops || args.data.self_loops)
        })
        .collect();
    let every = wanted.iter().all(|&(_, loops)| loops);
    let some = wanted.iter().any(|&(_, loops)| loops);
    let data = looped(data, every);
    let other = (some && !every).then(|| looped(data.clone(), true));
    let datasets = wanted.iter().map(|&(architecture, loops)| match &other {
        Some(other) if loops => (architecture, other),
        _ => (architecture, &data),
    });
    let datasets: Vec<(Architecture, &NodeDataset)> = datasets.collect();
    let times = args
        .times
        .as_deref()
        .map(|file| earlier(file).map(|runs| (file, runs)));
    let times = times.transpose()?;
    for &(architecture, data) in &datasets {
        for &activation in &activations {
            let config = args.settings.training(architecture, 0, data);
            let model = args.settings.model(architecture, activation, data);
            Trainer::new(&config, &model, data)?;
            if let Some(times) = &times {
                time_of((architecture, activation), data, times)?;
            }
        }
    }
    for file in [Some(&args.log), args.plot.as_ref()].into_iter().flatten() {
        check_output(file)?;
    }
    let earlier = earlier(&args.log)?;
    let backend = backend::open(args.backend)?;
    announce(slice::from_ref(&backend), &data);
    let mut log = RunLog::append(&args.log).map_err(|error| named(&args.log, error))?;
    let mut panels = Vec::new();
    for (architecture, data) in datasets {
        let mut groups = Vec::new();
        for &activation in &activations {
            let runs = (0..args.seeds).map(|seed| {
                let of = (architecture, activation, seed);
                one(args, of, data, &backend, (&earlier, &mut log))
            });
            let runs = runs.collect::<Done<Vec<_>>>()?;
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
    if let Some(file) = &args.plot {
        figure::write(file, data.name(), &panels)?;
    }
    Ok(())
}

/// ReLU first, MaxK stopped early, MaxK exact.
fn activations(args: &CompareArgs) -> Done<Vec<Activation>> {
    let mut all = vec![Activation::Relu];
    let k = args.settings.k;
    for iterations in args.early.iter().filter(|text| !text.is_empty()) {
        let method = method_from_str(&format!("early:{iterations}"))?;
        all.push(Activation::MaxK { k, method });
    }
    all.push(Activation::maxk(k));
    Ok(all)
}

/// The runs that a log holds, none if there is no log.
fn earlier(file: &Path) -> Done<Vec<RunSummary>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|error| named(file, error))?,
    };
    let mut runs = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let value: serde_json::Value = serde_json::from_str(line)
            .map_err(|error| format!("{}: line {}: {error}", file.display(), at + 1))?;
        if value.get("summary").is_some() {
            let run = serde_json::from_value(value);
            runs.push(
                run.map_err(|error| format!("{}: line {}: {error}", file.display(), at + 1))?,
            );
        }
    }
    Ok(runs)
}

/// A run, from the log if it is there.
fn one(
    args: &CompareArgs,
    (architecture, activation, seed): (Architecture, Activation, u64),
    data: &NodeDataset,
    backend: &Backend,
    (earlier, log): (&[RunSummary], &mut RunLog),
) -> Done<RunSummary> {
    let config = args.settings.training(architecture, seed, data);
    let model = args.settings.model(architecture, activation, data);
    let settings = args.data.settings();
    let configuration = configuration(&config, &model, (data, &settings))?;
    let same = |run: &&RunSummary| {
        run.dataset == data.name()
            && run.backend == backend.choice.to_string()
            && run.configuration == configuration
    };
    if let Some(run) = earlier.iter().find(same) {
        return Ok(run.clone());
    }
    let trainer = Trainer::new(&config, &model, data)?;
    let backend = slice::from_ref(backend);
    Ok(run(
        trainer,
        backend,
        &config,
        &model,
        (data, &settings),
        Some(log),
    )?
    .1)
}

fn time<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> f64 {
    median(runs.into_iter().map(|run| run.ms_per_epoch).collect())
}

/// That of other runs.
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
            Err(format!(
                "{}: no run of {model} with {label} on {data}",
                file.display()
            )
            .into())
        }
        ms => Ok(ms),
    }
}

/// Prints the results of a model, and returns what is drawn.
fn table(architecture: Architecture, groups: &[Group]) -> Panel {
    let (relu, exact) = (groups[0].ms, groups[groups.len() - 1].ms);
    let metric = groups[0].runs.first().map_or("test", |run| &run.metric);
    let title = name(architecture).to_uppercase();
    println!(
        "\n| {title} | test {metric} | validation | ms per epoch | ReLU / this | exact / this |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut points = Vec::new();
    for group in groups {
        let (test, spread) = moments(group.runs.iter().map(|run| run.test).collect());
        let (val, _) = moments(group.runs.iter().map(|run| run.val).collect());
        let ms = group.ms;
        println!(
            "| {} | {test:.4} ± {spread:.4} | {val:.4} | {ms:.1} | {:.2} | {:.2} |",
            group.label,
            relu / ms,
            exact / ms
        );
        points.push(Point {
            label: group.label.clone(),
            test,
            spread,
            speed_up: relu / ms,
        });
    }
    Panel {
        title,
        metric: metric.to_string(),
        points,
    }
}

/// Mean and standard deviation of the sample, which is 0 for one run.
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
