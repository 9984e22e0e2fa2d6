//! The sections of a device, one for each bench.

use std::collections::BTreeSet;

use super::{
    figures::{Figure, row_sizes, vector_sizes},
    record_path,
    records::{Benches, Group, Line, groups},
    table::{Table, cell, with_ratio},
};
use crate::{chart::significant, paper::distance_figures};

/// A bench, the head of its section, and the function that writes its tables.
type Section = (&'static str, &'static str, fn(&[Line]) -> String);

/// The sections in the order of the document.
const SECTIONS: [Section; 11] = [
    ("topk", "Row-wise top-k", rows),
    ("latency", "Single calls of row-wise top-k", latency),
    ("startup", "Whole programs", startup),
    ("delegate", "Top-k of one vector", vectors),
    ("stream", "Vectors streamed from the host", stream),
    ("shards", "Vectors over several GPUs", shards),
    ("distance", "Nearest neighbors of sparse rows", distances),
    (
        "spmm",
        "Products with a graph, and training epochs",
        products,
    ),
    ("linear", "Linear layers", linear),
    ("maxk", "MaxK-GNN", maxk),
    ("rtopk-stats", "Statistics of RTop-K", statistics),
];

/// The sections of a device, with their figures and the files behind them.
pub fn all(folder: &str, benches: &Benches, figures: &[Figure]) -> String {
    let mut text = String::new();
    for (bench, title, write) in SECTIONS {
        let Some(lines) = benches.get(bench) else {
            continue;
        };
        let body = write(lines);
        if body.is_empty() {
            continue;
        }
        text += &format!("### {title}\n\n{body}");
        for figure in figures.iter().filter(|figure| figure.bench == bench) {
            text += &format!("![{}](figures/{})\n\n", figure.caption, figure.file);
        }
        text += &origin(&record_path(folder, bench), lines);
    }
    text
}

/// The file of records, its dates, and the copy rates of its runs.
fn origin(path: &str, lines: &[Line]) -> String {
    let mut text = format!("Records: `{path}`");
    let dates: BTreeSet<&str> = lines.iter().map(|line| line.text("date")).collect();
    if let (Some(first), Some(last)) = (dates.first(), dates.last()) {
        text += &match first == last {
            true => format!(", {last}"),
            false => format!(", {first} to {last}"),
        };
    }
    let rates = lines.iter().filter_map(|line| line.number("copy_gbps"));
    let rates: Vec<f64> = rates.filter(|&rate| rate > 0.0).collect();
    if !rates.is_empty() {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        text += &format!("; copy rate {least:.0} to {most:.0} GB/s");
    }
    text + ".\n\n"
}

/// Our own lines and those of other libraries.
fn split(lines: &[Line]) -> (Vec<&Line>, Vec<&Line>) {
    lines.iter().partition(|line| !line.is_peer())
}

/// The distinct values of a field, in the order of their first line.
fn values<'a>(groups: &[Group<'a>], field: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for value in groups.iter().map(|group| group.text(field)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// A rank by position in a list; values that are not in it come last.
fn rank(value: &str, order: &[&str]) -> usize {
    order
        .iter()
        .position(|one| *one == value)
        .unwrap_or(order.len())
}

const DTYPES: [&str; 7] = ["f32", "f16", "bf16", "f64", "i32", "u32", "i64"];

fn rows(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let fields = ["backend", "case", "dtype", "form", "dist", "method"];
    let mut ours = groups(ours, &fields);
    ours.sort_by_key(|group| {
        let form = rank(group.text("form"), &["pairs", "sorted", "mask", "gradient"]);
        let backend = rank(group.text("backend"), &["cuda", "vulkan"]);
        let dtype = rank(group.text("dtype"), &DTYPES);
        let (dist, method) = (group.text("dist"), group.text("method"));
        let sizes = row_sizes(group.text("case"));
        (
            backend,
            form,
            dist != "normal",
            dtype,
            sizes,
            dist,
            method != "exact",
            method,
        )
    });
    let peers = groups(peers, &["peer", "case"]);
    let mut table = Table::new([
        "N x M x k",
        "backend",
        "dtype",
        "output",
        "input",
        "method",
        "ms (× floor)",
        "first call, ms",
        "torch.topk, ms",
        "Burn, same run, ms",
        "date",
    ]);
    for group in &ours {
        let ms = group.median("ms");
        let plain = ["pairs", "f32", "normal", "exact"]
            == ["form", "dtype", "dist", "method"].map(|field| group.text(field));
        let sizes = row_sizes(group.text("case"));
        let mut same = peers
            .iter()
            .filter(|_| plain && group.text("backend") != "vulkan");
        let peer = same.find(|peer| row_sizes(peer.text("case")) == sizes);
        let peer = peer.and_then(|peer| peer.median("ms"));
        table.row([
            format!("`{}`", group.text("case")),
            group.text("backend").into(),
            group.text("dtype").into(),
            group.text("form").into(),
            group.text("dist").into(),
            group.text("method").into(),
            with_ratio(ms, group.ratio("ms", "floor_ms")),
            first_call(group),
            over(peer, ms),
            with_ratio(group.median("burn_ms"), group.ratio("burn_ms", "ms")),
            group.date().into(),
        ]);
    }
    table.markdown()
}

fn first_call(group: &Group) -> String {
    let ms = group.median("first_ms");
    ms.map_or("–".into(), |ms| format!("{ms:.0}"))
}

/// A peer's time and its quotient with ours.
fn over(peer: Option<f64>, ours: Option<f64>) -> String {
    with_ratio(peer, peer.zip(ours).map(|(peer, ours)| peer / ours))
}

fn latency(lines: &[Line]) -> String {
    let mut table = Table::new([
        "N x M x k",
        "single, µs",
        "PyTorch, µs",
        "queued, µs",
        "PyTorch, µs",
        "first call, ms",
    ]);
    for group in groups(lines, &["backend", "case"]) {
        let peer = |field| group.median(&format!("torch_{field}"));
        let ours = |field| group.median(field);
        table.row([
            format!("`{}`", group.text("case")),
            cell(ours("single_us")),
            over(peer("single_us"), ours("single_us")),
            cell(ours("piped_us")),
            over(peer("piped_us"), ours("piped_us")),
            first_call(&group),
        ]);
    }
    table.markdown()
}

fn startup(lines: &[Line]) -> String {
    let mut table = Table::new(["program", "backend", "cold cache, s", "warm cache, s"]);
    for group in groups(lines, &["backend", "case"]) {
        let seconds = |cache: &str| {
            let lines = group.0.iter().copied();
            let lines = lines.filter(|line| line.text("cache") == cache);
            let groups = groups(lines, &[]);
            cell(groups.first().and_then(|one| Some(one.median("ms")? / 1e3)))
        };
        table.row([
            group.text("case").into(),
            group.text("backend").into(),
            seconds("cold"),
            seconds("warm"),
        ]);
    }
    table.markdown()
}

fn vectors(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let peers = groups(peers, &["peer", "case"]);
    let mut ours = groups(ours, &["backend", "case", "dtype", "dist", "method"]);
    ours.sort_by_key(|group| {
        let sizes = vector_sizes(group.text("case"));
        (
            sizes,
            rank(group.text("dtype"), &DTYPES),
            rank(group.text("dist"), &["uniform"]),
        )
    });
    let mut table = Table::new([
        "n x k",
        "dtype",
        "input",
        "ms (× one read)",
        "queued, ms",
        "torch.topk, ms",
        "date",
    ]);
    let chosen = ours
        .iter()
        .filter(|group| group.text("method") == "delegates");
    for group in chosen {
        let ms = group.median("ms");
        let sizes = vector_sizes(group.text("case"));
        let plain = group.text("dtype") == "f32" && group.text("dist") == "uniform";
        let mut same = peers.iter().filter(|_| plain);
        let peer = same.find(|peer| vector_sizes(peer.text("case")) == sizes);
        let peer = peer.and_then(|peer| peer.median("ms"));
        table.row([
            format!("`{}`", group.text("case")),
            group.text("dtype").into(),
            group.text("dist").into(),
            with_ratio(ms, group.ratio("ms", "floor_ms")),
            cell(group.median("launched_ms")),
            over(peer, ms),
            group.date().into(),
        ]);
    }
    let whole = ours
        .iter()
        .filter(|group| group.text("method").starts_with("whole/"));
    let mut without = Table::new(["n x k", "radix, ms", "bucket, ms", "bitonic, ms"]);
    let whole: Vec<&Group> = whole.collect();
    let cases: Vec<&str> = whole.iter().map(|group| group.text("case")).collect();
    for (at, case) in cases.iter().enumerate() {
        if cases[..at].contains(case) {
            continue;
        }
        let ms = |selection: &str| {
            let method = format!("whole/{selection}");
            let mut same = whole.iter().filter(|group| group.text("case") == *case);
            let found = same.find(|group| group.text("method") == method);
            cell(found.and_then(|group| group.median("ms")))
        };
        without.row([
            format!("`{case}`"),
            ms("radix"),
            ms("bucket"),
            ms("bitonic"),
        ]);
    }
    let mut text = table.markdown();
    if !cases.is_empty() {
        text += "Without delegates, uniform f32, by selection:\n\n";
        text += &without.markdown();
    }
    text + &exponents(&ours)
}

/// Times by subrange exponent, which `Tuning` of vectors follows.
fn exponents(ours: &[Group]) -> String {
    let exponent = |group: &Group| -> Option<u32> {
        group.text("method").strip_prefix("alpha:")?.parse().ok()
    };
    let swept: Vec<&Group> = ours
        .iter()
        .filter(|group| exponent(group).is_some())
        .collect();
    let columns: BTreeSet<u32> = swept.iter().filter_map(|group| exponent(group)).collect();
    let head = ["n x k", "dtype", "input"].map(String::from).into_iter();
    let mut table =
        Table::new(head.chain(columns.iter().map(|exponent| format!("α = {exponent}, ms"))));
    let key = |group: &Group| ["case", "dtype", "dist"].map(|field| group.text(field).to_string());
    let mut done = Vec::new();
    for group in &swept {
        let key_of_row = key(group);
        if done.contains(&key_of_row) {
            continue;
        }
        let same = swept.iter().filter(|other| key(other) == key_of_row);
        let times: Vec<(u32, f64)> = same
            .filter_map(|other| Some((exponent(other)?, other.median("ms")?)))
            .collect();
        let least = times
            .iter()
            .map(|time| time.1)
            .fold(f64::INFINITY, f64::min);
        let cells = columns.iter().map(|column| {
            let time = times.iter().find(|(exponent, _)| exponent == column);
            match time {
                Some(&(_, ms)) if ms == least => format!("**{}**", significant(ms)),
                time => cell(time.map(|&(_, ms)| ms)),
            }
        });
        let [case, dtype, dist] = key_of_row.clone();
        table.row([format!("`{case}`"), dtype, dist].into_iter().chain(cells));
        done.push(key_of_row);
    }
    match done.is_empty() {
        true => String::new(),
        false => format!(
            "With subranges of 2^α elements, the best time in bold:\n\n{}",
            table.markdown()
        ),
    }
}

fn stream(lines: &[Line]) -> String {
    let mut table = Table::new(["n x k", "source", "ms", "share of the copy rate"]);
    for group in groups(lines, &["backend", "case", "method"]) {
        let source = match group.text("method") {
            "pinned" => "pinned memory",
            _ => "pageable memory",
        };
        table.row([
            format!("`{}`", group.text("case")),
            source.into(),
            cell(group.median("ms")),
            cell(group.ratio("floor_ms", "ms")),
        ]);
    }
    table.markdown()
}

fn shards(lines: &[Line]) -> String {
    let mut table = Table::new([
        "n x k",
        "devices",
        "ms",
        "longest local selection, ms",
        "one device, ms",
        "date",
    ]);
    for group in groups(lines, &["case", "method", "gpus"]) {
        table.row([
            format!("`{}`", group.text("case")),
            group.text("method").trim_end_matches(" devices").into(),
            cell(group.median("ms")),
            cell(group.median("local_ms")),
            with_ratio(group.median("one_ms"), group.ratio("one_ms", "ms")),
            group.date().into(),
        ]);
    }
    table.markdown()
}

fn distances(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let ours = groups(ours, &["backend", "case", "method", "routine", "k"]);
    let peers = groups(peers, &["peer", "case", "method"]);
    let of = |case: &str, method: &str, routine: &str| {
        let matches = |group: &&Group| {
            ["case", "method", "routine"].map(|field| group.text(field)) == [case, method, routine]
        };
        ours.iter().find(matches)
    };
    let cases = values(&ours, "case");
    let (made, real): (Vec<&str>, Vec<&str>) = cases
        .into_iter()
        .partition(|case| case.starts_with("synthetic:"));
    let mut methods = values(&ours, "method");
    methods.sort_unstable();

    let head = real.iter().map(|case| format!("{case}, ms"));
    let mut table = Table::new(["metric".to_string()].into_iter().chain(head));
    for method in &methods {
        let found = real.iter().map(|case| of(case, method, "auto"));
        let found: Vec<Option<&Group>> = found.collect();
        if found.iter().any(Option::is_some) {
            let cells = found.into_iter().map(|group| {
                let ms = group.and_then(|group| group.median("ms"));
                let all = group.and_then(|group| group.ratio("ms", "matrix_ms"));
                with_ratio(ms, all)
            });
            table.row([(*method).to_string()].into_iter().chain(cells));
        }
    }
    let mut text = table.markdown();
    if !text.is_empty() {
        let ratio = real.iter().any(|case| {
            let some = methods.iter().filter_map(|method| of(case, method, "auto"));
            some.filter_map(|group| group.median("matrix_ms"))
                .any(|ms| ms > 0.0)
        });
        let note = match ratio {
            true => ", in brackets compared with one write of all distances at the copy rate",
            false => "",
        };
        text = format!("The 16 nearest other rows of each row, f32{note}:\n\n{text}");
    }

    let mut table = Table::new(["data", "metric", "sparsek, ms", "peer", "peer, ms", "date"]);
    for peer in &peers {
        let ms = of(peer.text("case"), peer.text("method"), "auto");
        let ms = ms.and_then(|group| group.median("ms"));
        table.row([
            peer.text("case").into(),
            peer.text("method").into(),
            cell(ms),
            peer_name(peer.text("peer")).into(),
            over(peer.median("ms"), ms),
            peer.date().into(),
        ]);
    }
    if !peers.is_empty() {
        text += "Beside other libraries on the same data:\n\n";
        text += &table.markdown();
    }
    text + &hybrid(&real, &methods, &of) + &published(&made, &of)
}

/// A peer as the table names it.
fn peer_name(peer: &str) -> &str {
    match peer {
        "cusparse tiles" => "PyTorch: cuSPARSE times dense tiles, torch.topk",
        "dense matmul" => "PyTorch: dense product, torch.topk",
        other => other,
    }
}

type Find<'a, 'b> = &'b dyn Fn(&str, &str, &str) -> Option<&'b Group<'a>>;

/// The routine of the paper, forced, and its quotient with the chosen one.
fn hybrid(real: &[&str], methods: &[&str], of: Find) -> String {
    let mut table = Table::new(
        ["metric".to_string()]
            .into_iter()
            .chain(real.iter().map(|case| format!("{case}, ms"))),
    );
    for method in methods {
        let cells: Vec<String> = (real.iter())
            .map(|case| {
                let ms = |routine| of(case, method, routine).and_then(|group| group.median("ms"));
                over(ms("hybrid"), ms("auto"))
            })
            .collect();
        if cells.iter().any(|cell| cell != "–") {
            table.row([(*method).to_string()].into_iter().chain(cells));
        }
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!(
            "The paper's routine, `hybrid`, and its quotient with the chosen one:\n\n{text}"
        ),
    }
}

/// Synthetic matrices of the paper's sizes, beside the published seconds.
fn published(made: &[&str], of: Find) -> String {
    let set = |case: &str| {
        let mut sets = distance_figures::SETS.iter();
        sets.position(|(keys, _)| keys.iter().any(|key| case.contains(key)))
    };
    let sets: Vec<(&str, usize)> = made
        .iter()
        .filter_map(|case| Some((*case, set(case)?)))
        .collect();
    let head = sets.iter().flat_map(|(case, _)| {
        let name = case.trim_start_matches("synthetic:");
        [format!("{name}, s"), "RAFT on a V100, s".into()]
    });
    let mut table = Table::new(["metric".to_string()].into_iter().chain(head));
    for row in &distance_figures::ROWS {
        let cells: Vec<String> = (sets.iter())
            .flat_map(|&(case, set)| {
                let group = of(case, row.method, "auto");
                let seconds = group.and_then(|group| Some(group.median("ms")? / 1e3));
                [cell(seconds), significant(row.seconds[set][1])]
            })
            .collect();
        if cells.iter().step_by(2).any(|cell| cell != "–") {
            table.row([row.method.to_string()].into_iter().chain(cells));
        }
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!(
            "Synthetic matrices of the paper's sizes: one call, kernel compilation included. RAFT's \
             seconds are published ones, for the original data:\n\n{text}"
        ),
    }
}

const BACKENDS: [&str; 3] = ["cuda", "vulkan", "flex"];

fn products(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let (epochs, products): (Vec<&Line>, Vec<&Line>) = ours
        .into_iter()
        .partition(|line| line.text("method").starts_with("epoch"));
    let peers = groups(peers, &["peer", "case"]);
    let products = groups(products, &["backend", "case", "method"]);
    const METHODS: [(&str, &str); 6] = [
        ("topk", "compression, ms"),
        ("forward", "forward, ms"),
        ("backward", "gradient, ms"),
        ("backward-two-pass", "two-pass gradient, ms"),
        ("backward-gathered", "gathered gradient, ms"),
        ("dense", "dense rows, ms"),
    ];
    let head = ["graph", "backend"]
        .into_iter()
        .chain(METHODS.map(|(_, name)| name));
    let mut table = Table::new(head.chain(["PyTorch, CSR times dense, ms"]));
    let mut keys: Vec<(&str, &str)> = products
        .iter()
        .map(|group| (group.text("backend"), group.text("case")))
        .collect();
    keys.sort_by_key(|&(backend, case)| (rank(backend, &BACKENDS), graph(case), width(case)));
    keys.dedup();
    for (backend, case) in keys {
        let find = |method: &str| {
            let mut same = products.iter().filter(|group| group.text("case") == case);
            same.find(|group| group.text("backend") == backend && group.text("method") == method)
        };
        let cells = METHODS.map(|(method, _)| {
            let group = find(method);
            let ms = group.and_then(|group| group.median("ms"));
            with_ratio(ms, group.and_then(|group| group.ratio("ms", "floor_ms")))
        });
        let dense = find("dense").and_then(|group| group.median("ms"));
        let mut same = peers.iter().filter(|_| dense.is_some());
        let peer = same.find(|peer| peer.text("case") == format!("spmm {case}"));
        let peer = over(peer.and_then(|peer| peer.median("ms")), dense);
        let row = [case.to_string(), backend.to_string()]
            .into_iter()
            .chain(cells);
        table.row(row.chain([peer]));
    }
    let mut text = table.markdown();
    if !text.is_empty() {
        text = format!("Rows of 256, f32, in brackets × floor:\n\n{text}");
    }
    text + &training(&epochs, &peers)
}

/// The graph of a case `graph k=32`.
fn graph(case: &str) -> &str {
    case.split(' ').next().unwrap_or_default()
}

/// The k of a case `graph k=32`; none for dense rows, which sort last.
fn width(case: &str) -> usize {
    let k = case.split_once(" k=").and_then(|(_, k)| k.parse().ok());
    k.unwrap_or(usize::MAX)
}

fn training(epochs: &[&Line], peers: &[Group]) -> String {
    let mut epochs = groups(
        epochs.iter().copied(),
        &["backend", "case", "method", "topk"],
    );
    epochs.sort_by_key(|group| {
        (
            rank(group.text("backend"), &BACKENDS),
            group.text("case").len(),
        )
    });
    epochs.sort_by_key(|group| (rank(group.text("backend"), &BACKENDS), group.text("graph")));
    let mut table = Table::new([
        "graph",
        "backend",
        "activation",
        "ms",
        "ReLU / this",
        "top-k, share",
        "peak, MB",
        "PyTorch, ms",
        "date",
    ]);
    for group in &epochs {
        let ms = group.median("ms");
        let (backend, graph) = (group.text("backend"), group.text("graph"));
        let relu = epochs.iter().find(|other| {
            other.text("method") == "epoch-relu"
                && (other.text("backend"), other.text("graph")) == (backend, graph)
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
        let mut same = peers.iter().filter(|_| backend != "vulkan");
        let peer = same.find(|peer| peer.text("case") == torch);
        let share = group
            .median("topk_share")
            .map(|share| format!("{:.1}%", 100.0 * share));
        let peak = group.median("peak_mb").map(|peak| format!("{peak:.0}"));
        table.row([
            graph.into(),
            backend.into(),
            activation,
            cell(ms),
            cell(relu.zip(ms).map(|(relu, ms)| relu / ms)),
            share.unwrap_or("–".into()),
            peak.unwrap_or("–".into()),
            over(peer.and_then(|peer| peer.median("ms")), ms),
            group.date().into(),
        ]);
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!(
            "Training epochs of SAGE: 3 layers of 256, full batch; PyTorch with TF32 on GPUs, \
             `torch.topk` masks:\n\n{text}"
        ),
    }
}

fn linear(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let ours = groups(ours, &["backend", "case", "method"]);
    let peers = groups(peers, &["case", "method"]);
    let methods = ["output", "rows", "weight"];
    let mut table = Table::new([
        "rows x inputs x outputs",
        "backend",
        "output, ms",
        "PyTorch",
        "gradient of rows, ms",
        "PyTorch",
        "gradient of weight, ms",
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
            [
                with_ratio(ms, floor),
                over(peer.and_then(|peer| peer.median("ms")), ms),
            ]
        });
        let row = [format!("`{case}`"), backend.to_string()]
            .into_iter()
            .chain(cells);
        table.row(row);
    }
    let text = table.markdown();
    format!(
        "f32, × floor in brackets; PyTorch with TF32, its quotient with ours in brackets:\n\n{text}"
    )
}

/// Short runs give the milliseconds of an epoch, others the test metric.
const SHORT: f64 = 100.0;

fn maxk(lines: &[Line]) -> String {
    let lines: Vec<&Line> = lines.iter().filter(|line| line.is("summary")).collect();
    let epochs = |line: &Line| line.number("most_epochs").or(line.number("epochs"));
    let (short, long): (Vec<&Line>, Vec<&Line>) = lines
        .into_iter()
        .partition(|line| epochs(line).unwrap_or(SHORT) < SHORT);
    let mut text = by_model(
        &long,
        "Test metric after 200 epochs (hidden 256, 3 layers, k = 32; \
        accuracy, for Tolokers ROC-AUC), mean ± standard deviation over seeds",
        |group| metric(group),
    );
    text += &by_model(
        &short,
        "Milliseconds of an epoch in runs of 60 epochs",
        |group| cell(group.median("ms_per_epoch")),
    );
    text
}

/// A row for each activation, a column for each backend, data set and model.
fn by_model(lines: &[&Line], caption: &str, write: impl Fn(&Group) -> String) -> String {
    let fields = ["backend", "dataset", "model"];
    let mut columns = groups(lines.iter().copied(), &fields);
    columns.sort_by_key(|column| fields.map(|field| column.text(field)));
    let head = columns.iter().map(|column| {
        let [backend, data, model] = fields.map(|field| column.text(field));
        format!("{data}, {model}, {backend}")
    });
    let mut table = Table::new(["activation".to_string()].into_iter().chain(head));
    let mut names = values(
        &groups(lines.iter().copied(), &["activation"]),
        "activation",
    );
    names.sort_by_key(|name| (*name != "relu", *name));
    for name in names {
        let cells = columns.iter().map(|column| {
            let lines = column.0.iter().copied();
            let lines = lines.filter(|line| line.text("activation") == name);
            groups(lines, &[]).first().map_or("–".into(), &write)
        });
        table.row([name.to_string()].into_iter().chain(cells));
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!("{caption}:\n\n{text}"),
    }
}

/// Mean and sample standard deviation of the test metric.
fn metric(group: &Group) -> String {
    let tests: Vec<f64> = group
        .0
        .iter()
        .filter_map(|line| line.number("test"))
        .collect();
    let count = tests.len() as f64;
    let mean = tests.iter().sum::<f64>() / count;
    if tests.len() < 2 {
        return format!("{mean:.4}");
    }
    let squares: f64 = tests.iter().map(|test| (test - mean).powi(2)).sum();
    format!("{mean:.4} ± {:.4}", (squares / (count - 1.0)).sqrt())
}

fn statistics(lines: &[Line]) -> String {
    let mut table = Table::new(["table", "loop", "figures", "within the sampling error"]);
    let tables: BTreeSet<u64> = lines
        .iter()
        .filter_map(|line| Some(line.number("table")? as u64))
        .collect();
    for number in tables {
        let of_table = lines
            .iter()
            .filter(|line| line.number("table") == Some(number as f64));
        for group in groups(of_table, &["variant"]) {
            let within = group.0.iter().filter(|line| line.is("within")).count();
            table.row([
                number.to_string(),
                group.text("variant").into(),
                group.0.len().to_string(),
                within.to_string(),
            ]);
        }
    }
    format!(
        "The figures of the paper's Tables 1, 2 and 5, reproduced from our selections. The paper's \
         Table 2 matches Algorithm 2 with the break of Algorithm 1, not Algorithm 2 as printed:\n\n{}",
        table.markdown()
    )
}
