//! Calls of the Python package beside other libraries.

use super::{
    chapter,
    records::{Benches, Line, groups, split, values},
    table::{Table, cell, over},
};

/// The records.
const BENCH: &str = "python";
/// The method of a line that times the wrapper alone.
const OVERHEAD: &str = "overhead";

const HEAD: &str = "\
# From Python

`sparsek-bench report` writes this chapter from the records of `benches/peers/sklearn_neighbors.py`
and `torch_calls.py`: milliseconds of whole calls, arguments and results included, in f32. A
peer's time is followed by its quotient with ours. A case is a file whose rows search for their 16
nearest; or rows x columns x k; or index rows x columns x queries x k of normal values.
";

/// The chapter of the guide; none without records.
pub fn chapter<'a>(devices: impl Iterator<Item = (String, &'a Benches, String)>) -> Option<String> {
    chapter::of_devices(HEAD, BENCH, devices, section)
}

fn section(lines: &[Line]) -> String {
    let (ours, peers) = split(lines);
    let peers = groups(peers, &["peer", "case", "method"]);
    let names = values(&peers, "peer");
    let head = ["case", "call", "device", "sparsek"].into_iter();
    let mut table = Table::new(head.chain(names.iter().copied()));
    let mut wrapper = String::new();
    for group in groups(ours, &["method", "case", "backend"]) {
        let ms = group.median("ms");
        if group.text("method") == OVERHEAD {
            let Some((alone, whole)) = group.median("wrapper_ms").zip(ms) else {
                continue;
            };
            wrapper = format!(
                "A call without work takes {} ms, {:.1}% of a search that takes {} ms.\n\n",
                cell(Some(alone)),
                100.0 * alone / whole,
                cell(Some(whole)),
            );
            continue;
        }
        let [case, method] = ["case", "method"].map(|field| group.text(field));
        let cells = [format!("`{case}`"), method.into(), group.text("backend").into(), cell(ms)];
        let theirs = names.iter().map(|&name| {
            let key = [name, case, method];
            let found = peers
                .iter()
                .find(|peer| ["peer", "case", "method"].map(|field| peer.text(field)) == key);
            over(found.and_then(|peer| peer.median("ms")), ms)
        });
        table.row(cells.into_iter().chain(theirs));
    }
    table.markdown() + &wrapper
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records::parse;

    #[test]
    fn calls_meet_their_peers() {
        let text = r#"{"case":"8x4x2","method":"topk","backend":"cuda","ms":2.0}
{"case":"8x4x2","method":"topk","peer":"Q","ms":3.0}
{"case":"64 rows","method":"overhead","backend":"cpu","ms":10.0,"wrapper_ms":0.2}"#;
        let benches: Benches = [(BENCH.to_string(), parse(text).unwrap())].into();
        let text = chapter([("X".to_string(), &benches, "p.jsonl".to_string())].into_iter());
        let text = text.expect("records");
        assert!(text.contains("| `8x4x2` | topk | cuda | 2.00 | 3.00 (1.50×) |"), "{text}");
        assert!(text.contains("takes 0.200 ms, 2.0% of a search that takes 10.0 ms."), "{text}");
    }
}
