//! Tables of nearest neighbors.

use super::{
    records::{Group, Line, groups, split, values},
    table::{Table, cell, over, with_ratio},
};
use crate::{chart::significant, paper::distance_figures};

pub fn distances(lines: &[Line]) -> String {
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
            "Synthetic matrices of the paper's sizes: one call, kernel compilation included. \
             RAFT's seconds are published ones, for the original data:\n\n{text}"
        ),
    }
}
