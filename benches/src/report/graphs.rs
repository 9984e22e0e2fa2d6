//! Tables of products with a graph, training epochs, linear layers and MaxK-GNN.

use super::{
    records::{Group, Line, groups, split},
    table::{BACKENDS, MISSING, Table, cell, over, rank, with_ratio},
};

pub fn products(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let (epochs, products): (Vec<&Line>, Vec<&Line>) =
        ours.into_iter().partition(|line| line.text("method").starts_with("epoch"));
    let peers = groups(peers, &["peer", "case"]);
    let products = groups(products, &["backend", "case", "method"]);
    const METHODS: [(&str, &str); 4] = [
        ("topk", "compression"),
        ("forward", "product"),
        ("backward", "its gradient"),
        ("dense", "dense product"),
    ];
    let head = ["graph", "backend"].into_iter().chain(METHODS.map(|(_, name)| name));
    let mut table = Table::new(head.chain(["PyTorch, dense product"]));
    let mut keys: Vec<(&str, &str)> =
        products.iter().map(|group| (group.text("backend"), group.text("case"))).collect();
    keys.sort_by_key(|&(backend, case)| (rank(backend, &BACKENDS), graph(case), width(case)));
    keys.dedup();
    for (backend, case) in keys {
        let find = |method: &str| {
            let mut same = products.iter().filter(|group| group.text("case") == case);
            same.find(|group| group.text("backend") == backend && group.text("method") == method)
        };
        let cells =
            METHODS.map(|(method, _)| cell(find(method).and_then(|group| group.median("ms"))));
        let dense = find("dense").and_then(|group| group.median("ms"));
        let mut same = peers.iter().filter(|_| dense.is_some());
        let peer = same.find(|peer| peer.text("case") == format!("spmm {case}"));
        let peer = over(peer.and_then(|peer| peer.median("ms")), dense);
        let row = [case.to_string(), backend.to_string()].into_iter().chain(cells);
        table.row(row.chain([peer]));
    }
    let mut text = table.markdown();
    if !text.is_empty() {
        text = format!("Milliseconds, f32, rows of 256, of them k after compression:\n\n{text}");
    }
    text + &training(&epochs, &peers)
}

/// The graph of a case `graph k=32`.
fn graph(case: &str) -> &str {
    case.split(' ').next().unwrap_or_default()
}

/// The k of a case `graph k=32`; none for dense rows, which sort last.
pub(super) fn width(case: &str) -> usize {
    let k = case.split_once(" k=").and_then(|(_, k)| k.parse().ok());
    k.unwrap_or(usize::MAX)
}

fn training(epochs: &[&Line], peers: &[Group]) -> String {
    let sage = epochs.iter().copied().filter(|line| line.text("model").is_empty());
    let mut epochs = groups(sage, &["backend", "case", "method", "topk"]);
    epochs.sort_by_key(|group| (rank(group.text("backend"), &BACKENDS), group.text("case").len()));
    epochs.sort_by_key(|group| (rank(group.text("backend"), &BACKENDS), group.text("graph")));
    let mut table = Table::new([
        "graph",
        "backend",
        "activation",
        "ms",
        "ReLU / this",
        "peak, MB",
        "PyTorch, ms",
    ]);
    for group in &epochs {
        let ms = group.median("ms");
        let (backend, graph) = (group.text("backend"), group.text("graph"));
        let dtype = group.text("dtype");
        let relu = epochs.iter().find(|other| {
            other.text("method") == "epoch-relu"
                && ["backend", "graph", "dtype"].map(|field| other.text(field))
                    == [backend, graph, dtype]
        });
        let relu = relu.and_then(|relu| relu.median("ms"));
        let (activation, torch) = match group.text("topk") {
            "" => ("ReLU".to_string(), format!("epoch {graph} relu")),
            topk => {
                let k = width(group.text("case"));
                let torch = format!("epoch {graph} topk {k}");
                (format!("MaxK, k = {k}, {topk}"), torch)
            }
        };
        let mut same = peers.iter().filter(|_| backend != "vulkan" && dtype != "bf16");
        let peer = same.find(|peer| peer.text("case") == torch);
        let peak = group.median("peak_mb").map(|peak| format!("{peak:.0}"));
        table.row([
            match dtype {
                "bf16" => format!("{graph}, mixed"),
                _ => graph.into(),
            },
            backend.into(),
            activation,
            cell(ms),
            cell(relu.zip(ms).map(|(relu, ms)| relu / ms)),
            peak.unwrap_or(MISSING.into()),
            over(peer.and_then(|peer| peer.median("ms")), ms),
        ]);
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!(
            "Training epochs of SAGE, 3 layers of 256, full batch. PyTorch masks with `torch.topk` \
             and uses TF32 on GPUs:\n\n{text}"
        ),
    }
}

pub fn linear(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let ours = groups(ours, &["backend", "case", "method"]);
    let peers = groups(peers, &["case", "method"]);
    let methods = ["output", "rows", "weight"];
    let mut table = Table::new([
        "rows x inputs x outputs",
        "backend",
        "output (× floor)",
        "PyTorch",
        "gradient of rows",
        "PyTorch",
        "gradient of weight",
        "PyTorch",
    ]);
    let keys = groups(ours.iter().map(|group| group.0[0]), &["backend", "case"]);
    for key in &keys {
        let (backend, case) = (key.text("backend"), key.text("case"));
        let cells = methods.iter().flat_map(|method| {
            let mut same = ours.iter().filter(|group| group.text("backend") == backend);
            let group =
                same.find(|group| group.text("case") == case && group.text("method") == *method);
            let ms = group.and_then(|group| group.median("ms"));
            let mut same = peers.iter().filter(|_| backend == "cuda");
            let peer =
                same.find(|peer| peer.text("case") == case && peer.text("method") == *method);
            let floor = group.and_then(|group| group.ratio("ms", "floor_ms"));
            [with_ratio(ms, floor), over(peer.and_then(|peer| peer.median("ms")), ms)]
        });
        let row = [format!("`{case}`"), backend.to_string()].into_iter().chain(cells);
        table.row(row);
    }
    let text = table.markdown();
    format!("Milliseconds, f32; PyTorch with TF32:\n\n{text}")
}

/// Short runs give the milliseconds of an epoch, others the test metric.
const SHORT: f64 = 100.0;

pub fn maxk(lines: &[Line]) -> String {
    let lines: Vec<&Line> = lines.iter().filter(|line| line.is("summary")).collect();
    let epochs = |line: &Line| line.number("most_epochs").or(line.number("epochs"));
    let (short, long): (Vec<&Line>, Vec<&Line>) =
        lines.into_iter().partition(|line| epochs(line).unwrap_or(SHORT) < SHORT);
    const LEFT_OUT: [&str; 4] =
        ["maxk:32:early:3", "maxk:32:early:5", "maxk:32:early:6", "maxk:32:early:7"];
    let long: Vec<&Line> =
        (long.into_iter()).filter(|line| !LEFT_OUT.contains(&line.text("activation"))).collect();
    let mut text = by_model(
        &long,
        "Test accuracy (Tolokers: ROC-AUC) in percent after 200 epochs, 3 layers of 256, k = 32, \
         ± deviation over seeds",
        metric,
    );
    let short: Vec<&Line> = (short.into_iter())
        .filter(|line| ["relu", "maxk:32:exact"].contains(&line.text("activation")))
        .collect();
    text += &by_model(&short, "Milliseconds of an epoch, in runs of 60 epochs", |group| {
        cell(group.median("ms_per_epoch"))
    });
    text
}

/// A row for each activation, a column for each backend, data set and model.
fn by_model(lines: &[&Line], caption: &str, write: impl Fn(&Group) -> String) -> String {
    let fields = ["backend", "dataset", "model"];
    let mut columns = groups(lines.iter().copied(), &fields);
    columns.sort_by_key(|column| fields.map(|field| column.text(field)));
    let head = columns.iter().map(|column| {
        let [backend, data, model] = fields.map(|field| column.text(field));
        match backend {
            "cuda" => format!("{data}, {model}"),
            backend => format!("{data}, {model}, {backend}"),
        }
    });
    let mut table = Table::new(["activation".to_string()].into_iter().chain(head));
    let mut names: Vec<String> = lines.iter().map(|line| row_name(line)).collect();
    names.sort_by_cached_key(|name| (!name.starts_with("relu"), name.clone()));
    names.dedup();
    for name in names {
        let cells = columns.iter().map(|column| {
            let lines = column.0.iter().copied().filter(|line| row_name(line) == name);
            groups(lines, &[]).first().map_or(MISSING.into(), &write)
        });
        table.row([name.clone()].into_iter().chain(cells));
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!("{caption}:\n\n{text}"),
    }
}

fn row_name(line: &Line) -> String {
    let peer = if line.is_peer() { ", PyTorch" } else { "" };
    let captured = if line.is("captured") { ", captured" } else { "" };
    format!("{}{captured}{peer}", line.text("activation"))
}

/// Mean and sample standard deviation of the test metric, in percent.
pub(super) fn metric(group: &Group) -> String {
    let tests: Vec<f64> =
        group.0.iter().filter_map(|line| Some(100.0 * line.number("test")?)).collect();
    let count = tests.len() as f64;
    let mean = tests.iter().sum::<f64>() / count;
    if tests.len() < 2 {
        return format!("{mean:.2}");
    }
    let squares: f64 = tests.iter().map(|test| (test - mean).powi(2)).sum();
    format!("{mean:.2}±{:.2}", (squares / (count - 1.0)).sqrt())
}
