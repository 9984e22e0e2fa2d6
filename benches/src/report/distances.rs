//! Tables of nearest neighbors.

use super::{
    records::{Group, Line, groups, split, values},
    table::{Table, cell, over, with_ratio},
};
use crate::paper::distance_figures;

/// Dense rows, with each peer in a column.
pub fn dense(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let peers = groups(peers, &["peer", "case", "method"]);
    let names = values(&peers, "peer");
    let head = ["rows x columns x queries x k", "metric", "backend", "ms"];
    let mut table = Table::new(head.into_iter().chain(names.iter().copied()));
    for group in groups(ours, &["case", "method", "backend", "routine"]) {
        let ms = group.median("ms");
        let backend = match group.text("routine") {
            "dense" => group.text("backend").into(),
            other => format!("{}, {other}", group.text("backend")),
        };
        let mut row = vec![
            format!("`{}`", group.text("case")),
            group.text("method").into(),
            backend,
            cell(ms),
        ];
        row.extend(names.iter().map(|&name| {
            let same = |peer: &&Group, field| peer.text(field) == group.text(field);
            let of_case = |peer: &&Group| same(peer, "case") && same(peer, "method");
            let found = peers.iter().find(|peer| peer.text("peer") == name && of_case(peer));
            over(found.and_then(|peer| peer.median("ms")), ms)
        }));
        table.row(row);
    }
    table.markdown()
}

/// Groups of one kind, and of peers.
struct Measured<'a> {
    ours: Vec<Group<'a>>,
    peers: Vec<Group<'a>>,
}

impl<'a> Measured<'a> {
    fn new(lines: &'a [Line]) -> Self {
        let (ours, peers) = split(lines);
        Self {
            ours: groups(ours, &["backend", "case", "method", "routine", "k"]),
            peers: groups(peers, &["peer", "case", "method"]),
        }
    }

    fn ms(&self, case: &str, method: &str, routine: &str) -> Option<f64> {
        let matches = |group: &&Group| {
            ["case", "method", "routine"].map(|field| group.text(field)) == [case, method, routine]
        };
        self.ours.iter().find(matches)?.median("ms")
    }

    /// Names of data sets: of synthetic ones, or of others.
    fn cases(&self, synthetic: bool) -> Vec<&'a str> {
        let mut cases = values(&self.ours, "case");
        cases.retain(|case| case.starts_with("synthetic:") == synthetic);
        cases
    }
}

pub fn distances(lines: &[Line]) -> String {
    let all = Measured::new(lines);
    let times = nearest(&all);
    let others = libraries(&all);
    let mut text = String::new();
    if !(times.is_empty() && others.is_empty()) {
        text += "The 16 nearest other rows of each row, f32, in milliseconds. In brackets: how \
                 many times longer a peer takes, or the paper's routine, `hybrid`.\n\n";
    }
    text + &times + &others
}

/// What the paper on sparse semirings has too: seconds of its sizes, memory of sparse products.
pub fn of_paper(lines: &[Line]) -> String {
    let all = Measured::new(lines);
    published(&all) + &memory(&all.peers)
}

/// Our times and the quotient of the paper's routine. Empty if the table of other libraries has all
/// of them.
fn nearest(all: &Measured) -> String {
    let mut real = all.cases(false);
    real.sort_unstable();
    let mut methods = values(&all.ours, "method");
    methods.sort_unstable();
    let compared = pairs(&all.peers);
    let mut table = Table::new(["metric"].into_iter().chain(real.iter().copied()));
    let mut new = false;
    for method in methods {
        let times: Vec<_> = real.iter().map(|case| all.ms(case, method, "auto")).collect();
        if times.iter().all(Option::is_none) {
            continue;
        }
        let mut timed = real.iter().zip(&times).filter(|(_, ms)| ms.is_some());
        new |= timed.any(|(case, _)| !compared.contains(&(*case, method)));
        let cells = real.iter().zip(times).map(|(case, ms)| {
            let hybrid = all.ms(case, method, "hybrid");
            let ratio = hybrid.zip(ms).map(|(other, ms)| other / ms);
            with_ratio(ms, ratio)
        });
        table.row([method.to_string()].into_iter().chain(cells));
    }
    if new { table.markdown() } else { String::new() }
}

fn libraries(all: &Measured) -> String {
    let peers = &all.peers;
    let names = values(peers, "peer");
    let head = ["data", "metric", "sparsek"].into_iter();
    let mut table = Table::new(head.chain(names.iter().map(|name| peer_name(name))));
    for (case, method) in pairs(peers) {
        let ms = all.ms(case, method, "auto");
        let cells = names.iter().map(|name| {
            let fields = ["peer", "case", "method"];
            let same = |peer: &&Group| fields.map(|field| peer.text(field)) == [name, case, method];
            let peer = peers.iter().find(same);
            over(peer.and_then(|peer| peer.median("ms")), ms)
        });
        let row = [case.to_string(), method.to_string(), cell(ms)];
        table.row(row.into_iter().chain(cells));
    }
    table.markdown()
}

/// What a sparse product of a tile of rows takes (Nolet et al., Section 4.3).
fn memory(peers: &[Group]) -> String {
    let mib = |group: &Group, field| group.median(field).map(|bytes| bytes / f64::from(1 << 20));
    let head = ["data", "rows", "density", "product", "workspace", "dense distances"];
    let mut table = Table::new(head);
    for group in peers.iter().filter(|group| group.median("density").is_some()) {
        table.row([
            group.text("case").to_string(),
            group.0[0].shown("tile_rows").unwrap_or_default(),
            cell(group.median("density")),
            cell(mib(group, "product_bytes")),
            cell(mib(group, "workspace_bytes")),
            cell(mib(group, "dense_bytes")),
        ]);
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!(
            "### Section 4.3: MiB of a sparse product\n\nWhat cuSPARSE's product of some rows with \
             all takes, beside the dense distances that sparsek writes instead:\n\n{text}"
        ),
    }
}

/// A peer as the table names it.
fn peer_name(peer: &str) -> &str {
    match peer {
        "cusparse tiles" => "PyTorch, sparse × dense",
        "cuSPARSE SpGEMM" => "PyTorch, sparse × sparse",
        "dense matmul" => "PyTorch, dense",
        other => other,
    }
}

/// The distinct data sets and metrics, in the order of their first line.
fn pairs<'a>(peers: &[Group<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut pairs = Vec::new();
    for pair in peers.iter().map(|peer| (peer.text("case"), peer.text("method"))) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

/// Synthetic matrices of the paper's sizes, beside the published seconds.
fn published(all: &Measured) -> String {
    let set = |case: &str| {
        let mut sets = distance_figures::SETS.iter();
        sets.position(|(keys, _)| keys.iter().any(|key| case.contains(key)))
    };
    let sets: Vec<(&str, usize)> =
        all.cases(true).into_iter().filter_map(|case| Some((case, set(case)?))).collect();
    let head = sets.iter().map(|(case, _)| case.trim_start_matches("synthetic:"));
    let mut table = Table::new(["metric"].into_iter().chain(head));
    for row in &distance_figures::ROWS {
        let cells: Vec<Option<(f64, f64)>> = (sets.iter())
            .map(|&(case, set)| {
                let seconds = all.ms(case, row.method, "auto")? / 1e3;
                Some((seconds, row.seconds[set][1] / seconds))
            })
            .collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| {
                let (seconds, ratio) = cell.unzip();
                with_ratio(seconds, ratio)
            });
            table.row([row.method.to_string()].into_iter().chain(cells));
        }
    }
    match table.markdown() {
        empty if empty.is_empty() => empty,
        text => format!(
            "### Table 3: seconds at the paper's sizes\n\nOne call, compilation included, on \
             synthetic matrices. In brackets: how many times longer RAFT took on a V100, as \
             published:\n\n{text}"
        ),
    }
}
