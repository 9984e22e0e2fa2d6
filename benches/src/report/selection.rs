//! Tables of top-k: rows, single calls, whole programs, vectors.

use std::collections::BTreeSet;

use super::{
    records::{Group, Line, groups, row_sizes, split, values, vector_sizes},
    table::{BACKENDS, Table, cell, extremes, over, rank, with_ratio},
};
use crate::chart::significant;

/// The fields that distinguish measurements of one case.
const FIELDS: [&str; 5] = ["backend", "dtype", "form", "dist", "method"];

/// The columns of normal rows: dtype, output, method, head.
const COLUMNS: [(&str, &str, &str, &str); 5] = [
    ("f32", "pairs", "exact", "f32 (× floor)"),
    ("f32", "sorted", "exact", "sorted"),
    ("f32", "pairs", "early:8", "early:8"),
    ("f16", "pairs", "exact", "f16"),
    ("bf16", "pairs", "exact", "bf16"),
];

/// Peers with a column, and peers of few cases.
const TORCH: &str = "torch";
const OTHERS: [(&str, &str); 2] =
    [("RTop-K authors' CUDA, exact", "RTop-K's CUDA"), ("RAFT select_k", "RAFT")];

/// The case with a table of its other inputs, outputs and methods.
const COMMON: &str = "2**20x256x32";

pub fn rows(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let peers = groups(peers, &["peer", "case"]);
    let ours = groups(ours, &[&FIELDS[..], &["case"]].concat());
    let backends = ours.iter().map(|group| group.text("backend"));
    let main = backends.min_by_key(|backend| rank(backend, &BACKENDS));
    let main = main.unwrap_or_default();
    let mut cases = values(&ours, "case");
    cases.sort_by_key(|case| row_sizes(case));
    let find = |case: &str, fields: [&str; 5]| {
        let mut same = ours.iter().filter(|group| group.text("case") == case);
        same.find(|group| FIELDS.map(|field| group.text(field)) == fields)
    };

    let head = COLUMNS.map(|(.., head)| head);
    let head = ["N x M x k"].into_iter().chain(head);
    let mut table = Table::new(head.chain(["Vulkan", "torch.topk", "Burn"]));
    let mut others_beside = String::new();
    for case in cases {
        let column = |backend, (dtype, form, method, _): (&str, &str, &str, &str)| {
            find(case, [backend, dtype, form, "normal", method])
        };
        let Some(plain) = column(main, COLUMNS[0]) else {
            continue;
        };
        let ms = plain.median("ms");
        let time = |group: Option<&Group>| cell(group.and_then(|group| group.median("ms")));
        let others = COLUMNS[1..].iter().map(|&one| time(column(main, one)));
        let beside = |name: &str| {
            let same = |peer: &&Group| {
                peer.text("peer").starts_with(name)
                    && row_sizes(peer.text("case")) == row_sizes(case)
            };
            peers.iter().find(same).and_then(|peer| peer.median("ms"))
        };
        for (name, title) in OTHERS {
            if let Some(peer) = beside(name) {
                others_beside += &format!("- {title}, `{case}`: {}\n", over(Some(peer), ms));
            }
        }
        let row = [format!("`{case}`"), with_ratio(ms, plain.ratio("ms", "floor_ms"))];
        table.row(row.into_iter().chain(others).chain([
            time(column("vulkan", COLUMNS[0])),
            over(beside(TORCH), ms),
            with_ratio(plain.median("burn_ms"), plain.ratio("burn_ms", "ms")),
        ]));
    }
    let table = table.markdown();
    if table.is_empty() {
        return table;
    }
    let mut text = format!(
        "Milliseconds for normal values; exact pairs in index order, unless the head says \
         otherwise:\n\n{table}"
    );

    if !others_beside.is_empty() {
        text += &format!("\nOther libraries:\n\n{others_beside}\n");
    }
    text += &variants(&ours, main);
    let first = |group: &Group| group.median("first_ms");
    let gpu = ours.iter().filter(|group| group.text("backend") == "cuda");
    let first: Vec<f64> = gpu.filter_map(first).collect();
    if let Some((least, most)) = extremes(&first) {
        let [least, most] = [least, most].map(|ms| significant(ms / 1e3));
        text += &format!("A first call takes {least} to {most} s, compilation included.\n\n");
    }
    text
}

/// The measurements of `COMMON` that the table of normal rows leaves out.
fn variants(ours: &[Group], main: &str) -> String {
    let shown = |group: &Group| {
        let [backend, dtype, form, dist, method] = FIELDS.map(|field| group.text(field));
        let columns = if backend == main { &COLUMNS[..] } else { &COLUMNS[..1] };
        let mut listed = columns.iter().map(|&(dtype, form, method, _)| (dtype, form, method));
        dist == "normal" && listed.any(|one| one == (dtype, form, method))
    };
    let mut rest: Vec<&Group> = ours.iter().filter(|group| !shown(group)).collect();
    rest.retain(|group| group.text("case") == COMMON);
    rest.sort_by_key(|group| {
        let fields = FIELDS.map(|field| group.text(field));
        (rank(fields[0], &BACKENDS), fields[3] != "normal", fields)
    });
    let mut table = Table::new(["variant", "ms (× floor)"]);
    for group in rest {
        let plain = [main, "f32", "pairs", "normal", "exact"];
        let names = FIELDS.iter().zip(plain).map(|(field, plain)| {
            let name = Some(group.text(field)).filter(|name| *name != plain)?;
            Some(match *field == "dist" {
                true => format!("input {name}"),
                false => name.to_string(),
            })
        });
        let names: Vec<String> = names.flatten().collect();
        let ms = with_ratio(group.median("ms"), group.ratio("ms", "floor_ms"));
        table.row([names.join(", "), ms]);
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!("Other inputs, outputs and methods of `{COMMON}`:\n\n{text}"),
    }
}

pub fn latency(lines: &[Line]) -> String {
    let mut table =
        Table::new(["N x M x k", "single, µs", "PyTorch, µs", "queued, µs", "PyTorch, µs"]);
    for group in groups(lines, &["backend", "case"]) {
        let peer = |field| group.median(&format!("torch_{field}"));
        let ours = |field| group.median(field);
        table.row([
            format!("`{}`", group.text("case")),
            cell(ours("single_us")),
            over(peer("single_us"), ours("single_us")),
            cell(ours("piped_us")),
            over(peer("piped_us"), ours("piped_us")),
        ]);
    }
    table.markdown()
}

pub fn layers(lines: &[Line]) -> String {
    layers_beside(lines, "case", "PyTorch")
}

pub fn convolutions(lines: &[Line]) -> String {
    layers_beside(lines, "layer, graph, width", "PyG")
}

fn layers_beside(lines: &[Line], cases: &str, peer: &str) -> String {
    let gib = |bytes: Option<f64>| cell(bytes.map(|bytes| bytes / f64::from(1 << 30)));
    let [times, peaks] = ["ms", "GiB"].map(|unit| format!("{peer}, {unit}"));
    let mut table = Table::new([cases, "backend", "ms", &times, "peak, GiB", &peaks]);
    for group in groups(lines, &["case", "backend"]) {
        let ours = group.median("ms");
        table.row([
            format!("`{}`", group.text("case")),
            group.text("backend").into(),
            cell(ours),
            over(group.median("torch_ms"), ours),
            gib(group.median("peak_bytes")),
            gib(group.median("torch_peak_bytes")),
        ]);
    }
    table.markdown()
}

pub fn startup(lines: &[Line]) -> String {
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

pub fn vectors(lines: &[Line]) -> String {
    const DTYPES: [&str; 5] = ["f32", "f16", "bf16", "i32", "u32"];
    const INPUTS: [&str; 3] = ["normal", "custom", "equal"];
    let (ours, peers) = split(lines);
    let peers = groups(peers, &["peer", "case"]);
    let mut ours = groups(ours, &["backend", "case", "dtype", "dist", "method"]);
    ours.retain(|group| group.text("method") == "delegates");
    let mut cases = values(&ours, "case");
    cases.sort_by_key(|case| vector_sizes(case));
    let find = |case: &str, dtype: &str, dist: &str| {
        let fields = ["case", "dtype", "dist"];
        let same = |group: &&Group| fields.map(|field| group.text(field)) == [case, dtype, dist];
        ours.iter().find(same)
    };
    let time = |group: Option<&Group>| cell(group.and_then(|group| group.median("ms")));

    let head = ["n x k", "f32 (× one read)"].into_iter();
    let head = head.chain(DTYPES[1..].iter().copied());
    let mut by_dtype = Table::new(head.chain(["torch.topk, f32"]));
    let mut by_input = Table::new(["n x k"].into_iter().chain(INPUTS));
    for case in cases {
        let plain = find(case, "f32", "uniform");
        let ms = plain.and_then(|group| group.median("ms"));
        let read = plain.and_then(|group| group.ratio("ms", "floor_ms"));
        let others = DTYPES[1..].iter().map(|dtype| time(find(case, dtype, "uniform")));
        let mut same = peers.iter();
        let peer = same.find(|peer| vector_sizes(peer.text("case")) == vector_sizes(case));
        let peer = over(peer.and_then(|peer| peer.median("ms")), ms);
        let row = [format!("`{case}`"), with_ratio(ms, read)];
        by_dtype.row(row.into_iter().chain(others).chain([peer]));
        let inputs = INPUTS.map(|dist| find(case, "f32", dist));
        if inputs.iter().any(Option::is_some) {
            by_input.row([format!("`{case}`")].into_iter().chain(inputs.map(time)));
        }
    }
    let (by_dtype, by_input) = (by_dtype.markdown(), by_input.markdown());
    if by_dtype.is_empty() {
        return by_dtype;
    }
    let mut text = format!("Milliseconds, uniform values:\n\n{by_dtype}");
    if !by_input.is_empty() {
        text += &format!("Other inputs, f32:\n\n{by_input}");
    }
    text
}

pub fn stream(lines: &[Line]) -> String {
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

pub fn shards(lines: &[Line]) -> String {
    let mut table =
        Table::new(["n x k", "devices", "ms", "longest local selection, ms", "one device, ms"]);
    for group in groups(lines, &["case", "method", "gpus"]) {
        table.row([
            format!("`{}`", group.text("case")),
            group.text("method").trim_end_matches(" devices").into(),
            cell(group.median("ms")),
            cell(group.median("local_ms")),
            with_ratio(group.median("one_ms"), group.ratio("one_ms", "ms")),
        ]);
    }
    table.markdown()
}

pub fn statistics(lines: &[Line]) -> String {
    let mut table = Table::new(["table", "loop", "figures", "within the sampling error"]);
    let tables: BTreeSet<u64> =
        lines.iter().filter_map(|line| Some(line.number("table")? as u64)).collect();
    for number in tables {
        let of_table = lines.iter().filter(|line| line.number("table") == Some(number as f64));
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
        "Figures of the paper's tables that our selections reproduce. Table 2 matches Algorithm \
         2 with the break of Algorithm 1, not as printed:\n\n{}",
        table.markdown()
    )
}
