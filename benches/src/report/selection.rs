//! Tables of top-k: rows, single calls, whole programs, vectors.

use std::collections::BTreeSet;

use super::{
    records::{Group, Line, groups, row_sizes, split, vector_sizes},
    table::{DTYPES, Table, cell, first_call, over, rank, with_ratio},
};
use crate::chart::significant;

pub fn rows(lines: &[Line]) -> String {
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

pub fn latency(lines: &[Line]) -> String {
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

pub fn statistics(lines: &[Line]) -> String {
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
        "The figures of the paper's Tables 1, 2 and 5, reproduced from our selections. The \
         paper's Table 2 matches Algorithm 2 with the break of Algorithm 1, not Algorithm 2 as \
         printed:\n\n{}",
        table.markdown()
    )
}
