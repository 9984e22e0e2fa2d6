//! Long rows beside the kernels of other libraries.

use super::{
    chapter,
    records::{Benches, Group, Line, groups, row_sizes, split, values},
    table::{Table, over, with_ratio},
};

/// The records.
const BENCH: &str = "long-rows";
const FIELDS: [&str; 3] = ["case", "dtype", "form"];

const HEAD: &str = "\
# Long rows beside other libraries

`sparsek-bench report` writes this chapter from the records of `sparsek-bench topk`. Milliseconds of
device time for normal values. In brackets: the quotient with the compulsory memory traffic, or with
our time. Ragged rows have uniform lengths.

sparsek and FlashInfer take the lowest index among equals; FlashInfer writes ragged rows' indices
only. vLLM, SGLang and DeepSelect take any of equals. All their kernels are compiled from their
packages and called without their Python layers, repeatedly or as a CUDA graph, whichever is faster;
no script here does so.
";

/// Outputs, as forms begin.
const OUTPUTS: [(&str, &str); 2] = [("pairs", "Values and indices"), ("indices", "Indices only")];

/// A measurement of ours, and the time of each peer.
struct Row<'a> {
    ours: Group<'a>,
    peers: Vec<Option<f64>>,
}

/// The peers, and all measurements: f32 before other dtypes, whole before ragged rows.
fn rows(lines: &[Line]) -> (Vec<&str>, Vec<Row<'_>>) {
    let (ours, peers) = split(lines);
    let mut ours = groups(ours, &FIELDS);
    ours.sort_by_key(|group| {
        let [case, dtype, form] = FIELDS.map(|field| group.text(field));
        (form, dtype != "f32", row_sizes(case))
    });
    let peers = groups(peers, &[&FIELDS[..], &["peer"]].concat());
    let names = values(&peers, "peer");
    let rows = ours.into_iter().map(|ours| {
        let time = |name: &&str| {
            let same =
                |peer: &&Group| peer.text("peer") == *name && peer.0[0].agrees(ours.0[0], &FIELDS);
            peers.iter().find(same)?.median("ms")
        };
        let peers = names.iter().map(time).collect();
        Row { ours, peers }
    });
    let rows = rows.collect();
    (names, rows)
}

/// In how many cases each peer is slower.
pub fn summary(lines: &[Line]) -> String {
    let (names, rows) = rows(lines);
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let pairs = rows.iter().filter_map(|row| row.ours.median("ms").zip(row.peers[at]));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let slower = pairs.iter().filter(|(ours, peer)| ours < peer).count();
        text += &format!("- {name}: {slower} of {}\n", pairs.len());
    }
    match text.is_empty() {
        true => text,
        false => format!("Slower than sparsek ([cases](guide/src/long-rows.md)):\n\n{text}\n"),
    }
}

/// The chapter of the guide; none without records.
pub fn chapter<'a>(devices: impl Iterator<Item = (String, &'a Benches, String)>) -> Option<String> {
    chapter::of_devices(HEAD, BENCH, devices, section)
}

fn section(lines: &[Line]) -> String {
    let (names, rows) = rows(lines);
    let mut text = String::new();
    for (output, title) in OUTPUTS {
        let head = ["N x M x k", "dtype", "rows", "sparsek"].into_iter();
        let mut table = Table::new(head.chain(names.iter().copied()));
        for Row { ours, peers } in &rows {
            let form = ours.text("form");
            let (form, lengths) = form.split_once('/').unwrap_or((form, "whole"));
            if form != output {
                continue;
            }
            let ms = ours.median("ms");
            let cells = [
                format!("`{}`", ours.text("case")),
                ours.text("dtype").into(),
                lengths.into(),
                with_ratio(ms, ours.ratio("ms", "floor_ms")),
            ];
            table.row(cells.into_iter().chain(peers.iter().map(|&peer| over(peer, ms))));
        }
        let table = table.markdown();
        if !table.is_empty() {
            text += &format!("### {title}\n\n{table}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records::parse;

    #[test]
    fn cases_meet_their_peers_by_dtype_and_form() {
        let ours = |dtype: &str, form: &str, ms: f64| {
            format!(
                "{{\"case\":\"1x8x2\",\"dtype\":\"{dtype}\",\"form\":\"{form}\",\"ms\":{ms},\
                 \"floor_ms\":1.0}}\n"
            )
        };
        let peer = r#"{"peer":"Q","case":"1x8x2","dtype":"f32","form":"pairs","ms":4.0}"#;
        let text = ours("bf16", "pairs", 3.0)
            + &ours("f32", "pairs", 2.0)
            + &ours("f32", "indices/uniform", 5.0)
            + peer;
        let benches: Benches = [(BENCH.to_string(), parse(&text).unwrap())].into();
        assert!(summary(&benches[BENCH]).contains("- Q: 1 of 1\n"));
        let text = chapter([("X".to_string(), &benches, "p.jsonl".to_string())].into_iter());
        let text = text.expect("records");
        let rows = "| `1x8x2` | f32 | whole | 2.00 (2.00×) | 4.00 (2.00×) |\n\
                    | `1x8x2` | bf16 | whole | 3.00 (3.00×) |  |\n";
        assert!(text.contains(rows), "{text}");
        let rows = "| N x M x k | dtype | rows | sparsek |\n|---|---|---|---|\n\
                    | `1x8x2` | f32 | uniform | 5.00 (5.00×) |\n";
        assert!(text.contains(rows), "{text}");
    }
}
