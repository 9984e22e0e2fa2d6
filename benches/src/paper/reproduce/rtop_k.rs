//! RTop-K: Tables 1 to 5 and Figs. 4 to 7. The published times are ratios on an A6000.

use std::collections::BTreeMap;

use anyhow::Context;
use sparsek_gnn::datasets::power_law::PowerLawConfig;
use sparsek_tests::data::Distribution;

use super::Session;
use crate::{
    case::RowCase,
    paper::rtopk,
    record,
    spmm::{self, Model},
    topk::{Form, Problem, burn, ready, seeded_rows},
};

const EXPONENTS: [u32; 4] = [14, 16, 18, 20];
const QUICK_EXPONENTS: [u32; 1] = [16];
const COLS: [usize; 3] = [256, 512, 768];
const KS: [usize; 5] = [16, 32, 64, 96, 128];
const NO_EARLY_STOPPING: &str = "precision:1e-16";

/// Table 3: average speed-ups over PyTorch, by M, for 2 to 8 iterations and without early stopping.
const TABLE_3: [[f64; 8]; 3] = [
    [13.07, 12.32, 11.46, 10.86, 10.32, 9.88, 9.55, 8.88],
    [11.66, 11.37, 10.43, 9.51, 8.87, 8.34, 7.98, 7.27],
    [9.73, 9.44, 8.72, 7.75, 7.16, 6.78, 6.46, 5.72],
];

/// Rows, k, and columns of Figs. 6 and 7.
const LONG_ROWS: usize = 1 << 16;
const LONG_KS: [usize; 4] = [64, 128, 256, 512];
const LONG_COLS: [usize; 6] = [256, 512, 1024, 2048, 4096, 8192];
const QUICK_COLS: [usize; 2] = [1024, 4096];
/// Iterations of a quick run.
const QUICK_STEPS: [usize; 3] = [2, 4, 8];
const PRECISIONS: [&str; 4] =
    ["precision:0", "precision:1e-16", "precision:1e-8", "precision:1e-4"];

const QUICK_PRECISIONS: [&str; 2] = ["precision:0", "precision:1e-4"];

/// Table 4: the graph, and the share of top-k in percent for SAGE, GCN and GIN; Fig. 5: the range
/// of training speed-ups in percent.
const TABLE_4: [(&str, [f64; 3], [f64; 2]); 4] = [
    ("flickr-size", [26.86, 26.78, 26.73], [32.48, 33.29]),
    ("yelp-size", [26.09, 25.84, 25.92], [31.21, 32.42]),
    ("reddit-size", [11.66, 11.61, 11.62], [11.97, 12.21]),
    ("products-size", [19.81, 19.61, 19.67], [22.00, 22.74]),
];
const QUICK_GRAPH: &str = "flickr-size";
/// Of Table 4 and Fig. 5.
const HIDDEN: usize = 256;
const K: usize = 32;
/// Selections of an epoch.
const LAYERS: f64 = 3.0;

/// Rows of Tables 1 and 2 in a quick run.
const QUICK_STATS: usize = 10_000;

pub fn run(session: &Session) -> anyhow::Result<()> {
    let quick = session.arguments.quick;
    let peers = Peers::load(session)?;
    say!("speed-ups are over {}", peers.name());
    speedups(session, &peers)?;
    long_rows(session, &peers)?;
    training(session, &peers)?;
    if !session.wants("Tables 1, 2, 5") {
        return Ok(());
    }
    say!("\nTables 1, 2, 5");
    rtopk::run(&rtopk::Arguments::new(session.arguments.backend, quick.then_some(QUICK_STATS)))
}

/// Divides speed-ups: recorded times of torch.topk, or Burn's operation.
struct Peers(Option<BTreeMap<String, f64>>);

impl Peers {
    fn load(session: &Session) -> anyhow::Result<Self> {
        let Some(path) = &session.arguments.peers else {
            return Ok(Self(None));
        };
        let lines = record::read_torch::<record::PeerRecord>(Some(path))?;
        Ok(Self(Some(lines.into_iter().map(|line| (line.case, line.ms)).collect())))
    }

    fn name(&self) -> &'static str {
        match self.0 {
            Some(_) => "torch.topk",
            None => "Burn's topk_with_indices",
        }
    }

    fn ms(&self, session: &Session, problem: &Problem<f32>) -> anyhow::Result<f64> {
        let case = &problem.case.text;
        match &self.0 {
            Some(times) => {
                let ms = times.get(case);
                ms.copied().with_context(|| format!("{case}: not in the file of peers"))
            }
            None => burn(&session.backend.device, problem)?.context("Burn has no f32 tensors"),
        }
    }
}

fn ms(session: &Session, problem: &Problem<f32>) -> anyhow::Result<f64> {
    Ok(ready(&session.backend, problem)?.measure()?.median.ms)
}

/// Table 3, from the cases of Fig. 4.
fn speedups(session: &Session, peers: &Peers) -> anyhow::Result<()> {
    let quick = session.arguments.quick;
    let exponents: &[u32] = if quick { &QUICK_EXPONENTS } else { &EXPONENTS };
    let quantity = format!("mean speed-up over {}", peers.name());
    let figure = "Table 3";
    if !session.begins(figure, &quantity) {
        return Ok(());
    }
    for (cols, published) in COLS.into_iter().zip(TABLE_3) {
        let (last, early) = published.split_last().expect("eight columns");
        let early = (2..).zip(early).filter(|(steps, _)| !quick || QUICK_STEPS.contains(steps));
        let early = early.map(|(steps, &times)| (format!("early:{steps}"), Some(times)));
        let more = [(NO_EARLY_STOPPING.into(), Some(*last)), ("exact".into(), None)];
        let methods: Vec<(String, Option<f64>)> = early.chain(more).collect();
        let mut ratios = vec![Vec::new(); methods.len()];
        for &exponent in exponents {
            let input = seeded_rows::<f32>(1 << exponent, cols, Distribution::Normal, 0);
            for k in KS {
                let case = RowCase::new(1 << exponent, cols, k);
                let mut problem = Problem::new(&case, Form::Pairs, &input);
                let peer = peers.ms(session, &problem)?;
                for (ratios, (method, _)) in ratios.iter_mut().zip(&methods) {
                    problem.method = method.parse()?;
                    ratios.push(peer / ms(session, &problem)?);
                }
            }
        }
        for ((method, published), ratios) in methods.iter().zip(ratios) {
            let case = format!("M = {cols}, {method}");
            session.row([figure, &quantity, &case], *published, mean(&ratios))?;
        }
    }
    Ok(())
}

/// Figs. 6 and 7. The paper prints no numbers.
fn long_rows(session: &Session, peers: &Peers) -> anyhow::Result<()> {
    let all: &[usize] = if session.arguments.quick { &QUICK_COLS } else { &LONG_COLS };
    let quantity = format!("mean speed-up over {}, N = 65536", peers.name());
    let figure = "Figs. 6, 7";
    if !session.begins(figure, &quantity) {
        return Ok(());
    }
    for &cols in all {
        let input = seeded_rows::<f32>(LONG_ROWS, cols, Distribution::Normal, 0);
        let precisions: &[&str] =
            if session.arguments.quick { &QUICK_PRECISIONS } else { &PRECISIONS };
        let methods = ["early:4", "exact"].into_iter().chain(precisions.iter().copied());
        let mut ratios: Vec<(&str, Vec<f64>)> =
            methods.map(|method| (method, Vec::new())).collect();
        for k in LONG_KS.into_iter().filter(|&k| k < cols) {
            let case = RowCase::new(LONG_ROWS, cols, k);
            let mut problem = Problem::new(&case, Form::Pairs, &input);
            let peer = peers.ms(session, &problem)?;
            for (method, ratios) in &mut ratios {
                problem.method = method.parse()?;
                ratios.push(peer / ms(session, &problem)?);
            }
        }
        for (method, ratios) in ratios {
            let case = format!("M = {cols}, {method}");
            session.row([figure, &quantity, &case], None, mean(&ratios))?;
        }
    }
    Ok(())
}

/// Table 4 and Fig. 5 on seeded stand-ins. An epoch by torch.topk is ours with the times of the
/// selections exchanged.
fn training(session: &Session, peers: &Peers) -> anyhow::Result<()> {
    let quick = session.arguments.quick;
    if !session.wants("Table 4") && !session.wants("Fig. 5") {
        return Ok(());
    }
    let mut found = Vec::new();
    for graph in TABLE_4.iter().filter(|graph| !quick || graph.0 == QUICK_GRAPH) {
        let config: PowerLawConfig = graph.0.parse()?;
        let case = RowCase::new(config.nodes, HIDDEN, K);
        let input = seeded_rows::<f32>(case.rows, case.cols, Distribution::Normal, 0);
        let theirs = LAYERS * peers.ms(session, &Problem::new(&case, Form::Pairs, &input))?;
        for model in Model::ALL {
            let (backend, config) = (session.arguments.backend, config.clone());
            let arguments = spmm::Arguments::epochs(backend, config, model, K);
            let epoch = spmm::records(&arguments)?.pop().context("an epoch")?;
            let ours = epoch.topk_ms.context("an epoch of MaxK")?;
            found.push((graph, model, epoch.ms, ours, theirs));
        }
    }
    let share = format!("percent of an epoch in the selections by {}", peers.name());
    if session.begins("Table 4", &share) {
        for (at, (graph, model, epoch, ours, theirs)) in found.iter().enumerate() {
            let case = format!("{}, {}", graph.0, model.name());
            let published = Some(graph.1[at % Model::ALL.len()]);
            let percent = 100.0 * theirs / (epoch - ours + theirs);
            session.row(["Table 4", &share, &case], published, percent)?;
        }
    }
    let speedup = format!("percent by which an epoch is faster than by {}", peers.name());
    if session.begins("Fig. 5", &speedup) {
        for (graph, model, epoch, ours, theirs) in &found {
            let [low, high] = graph.2;
            let case = format!("{}, {}, in the paper {low} to {high}", graph.0, model.name());
            session.row(["Fig. 5", &speedup, &case], None, 100.0 * (theirs - ours) / epoch)?;
        }
    }
    Ok(())
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}
