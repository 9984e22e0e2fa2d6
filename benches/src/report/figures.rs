//! The charts of the report.

use super::{
    graphs::width,
    records::{Benches, Group, Line, groups, row_sizes, vector_sizes},
};
use crate::chart::{self, Axes, Bar, Bars, FLOOR, Panel, READ, Scale, significant};

/// A chart and its place in the document.
pub struct Figure {
    /// The bench whose section shows it; README.md shows those of none.
    pub bench: Option<&'static str>,
    pub file: String,
    pub caption: &'static str,
    pub svg: String,
}

/// A chart needs lines of at least this many points.
const MIN_POINTS: usize = 3;

pub fn all(folder: &str, benches: &Benches) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut add = |bench, name, caption, panels: Vec<Panel>, axes| {
        let mut panels = panels;
        panels.retain(|panel| panel.ticks().len() >= MIN_POINTS);
        if panels.is_empty() {
            return Ok(());
        }
        let svg = chart::svg(&format!("{caption} ({folder})"), &panels, axes);
        figures.push(Figure {
            bench: Some(bench),
            file: format!("{folder}-{name}.svg"),
            caption,
            svg: svg.map_err(|error| anyhow::anyhow!("{name}: {error}"))?,
        });
        anyhow::Ok(())
    };
    let time = |x, y_scale| Axes { x, y: "time, ms", x_scale: Scale::Log, y_scale };
    add(
        "topk",
        "rows",
        "Top-k of 2^20 rows: over k, and over the row length",
        rows(benches),
        time("k (left), elements per row (right)", Scale::Linear),
    )?;
    add(
        "delegate",
        "vector",
        "Top-k of one vector, k = 128, f32",
        vectors(benches),
        time("n", Scale::Log),
    )?;
    if let Some(panels) = peers(benches) {
        let svg = chart::bars(&format!("{PEERS} ({folder})"), &panels);
        figures.push(Figure {
            bench: None,
            file: format!("{folder}-peers.svg"),
            caption: PEERS,
            svg: svg.map_err(|error| anyhow::anyhow!("peers: {error}"))?,
        });
    }
    Ok(figures)
}

const PEERS: &str = "Time of other libraries over the time of sparsek";

/// Top-k of normal rows beside Burn's and PyTorch's, and training epochs beside PyTorch's; none
/// without either.
fn peers(benches: &Benches) -> Option<Vec<Bars>> {
    let panels = [
        ("Top-k of rows, f32, values and indices", rows_beside(benches)),
        ("Training epochs of SAGE, 3 layers of 256", epochs_beside(benches)),
    ];
    let panels = panels.into_iter().map(|(title, bars)| Bars { title: title.into(), bars });
    let panels: Vec<Bars> = panels.collect();
    panels.iter().all(|panel| !panel.bars.is_empty()).then_some(panels)
}

/// A bar as long as a peer's time over ours.
fn beside(label: String, ours: f64, peer: (&str, f64)) -> Bar {
    let length = peer.1 / ours;
    let [ratio, ours, other] = [length, ours, peer.1].map(significant);
    Bar { label, length, note: format!("{ratio}× ({ours} ms, {} {other} ms)", peer.0) }
}

fn rows_beside(benches: &Benches) -> Vec<Bar> {
    let lines = benches.get("topk").into_iter().flatten();
    let torch = lines.filter(|line| line.text("peer") == "torch unsorted");
    let torch = groups(torch, &["case"]);
    let mut bars = Vec::new();
    for group in measured(benches, "topk", &["form", "method"]) {
        let case = ["dtype", "form", "dist", "method"].map(|field| group.text(field));
        let sizes = row_sizes(group.text("case"));
        let (Some((rows, cols, k)), Some(ms)) = (sizes, group.median("ms")) else {
            continue;
        };
        if case != ["f32", "pairs", "normal", "exact"] {
            continue;
        }
        let label = format!("{} rows of {cols}, k = {k}", chart::power(rows));
        let mut same = torch.iter();
        let same = same.find(|peer| row_sizes(peer.text("case")) == sizes);
        let peers = [
            ("torch.topk", same.and_then(|peer| peer.median("ms"))),
            ("Burn", group.median("burn_ms")),
        ];
        for (peer, time) in peers {
            bars.extend(time.map(|time| ((rows, cols), beside(label.clone(), ms, (peer, time)))));
        }
    }
    bars.sort_by_key(|(sizes, _)| std::cmp::Reverse(*sizes));
    bars.into_iter().map(|(_, bar)| bar).collect()
}

fn epochs_beside(benches: &Benches) -> Vec<Bar> {
    let lines = || benches.get("spmm").into_iter().flatten();
    let torch = groups(lines().filter(|line| line.text("peer") == "torch"), &["case"]);
    let plain = |line: &&Line| line.text("dtype") != "bf16" && line.text("model").is_empty();
    let epoch =
        |line: &&Line| !line.is_peer() && line.text("method").starts_with("epoch") && plain(line);
    let ours = lines().filter(|line| epoch(line) && line.text("backend") == "cuda");
    let mut bars = Vec::new();
    for group in groups(ours, &["case", "method", "topk"]) {
        let (graph, k) = (group.text("graph"), width(group.text("case")));
        let (activation, case) = match group.text("topk") {
            "" => ("ReLU".to_string(), format!("epoch {graph} relu")),
            "exact" => (format!("MaxK, k = {k}"), format!("epoch {graph} topk {k}")),
            _ => continue,
        };
        let mut same = torch.iter();
        let peer = same.find(|peer| peer.text("case") == case);
        let peer = peer.and_then(|peer| peer.median("ms"));
        if let (Some(ms), Some(peer)) = (group.median("ms"), peer) {
            let bar = beside(format!("{graph}, {activation}"), ms, ("PyTorch", peer));
            bars.push(bar);
        }
    }
    bars.sort_by(|one, other| {
        // MaxK before ReLU of each graph, by the label.
        let graph = |bar: &Bar| bar.label.split(',').next().map(str::to_string);
        let key = |bar: &Bar| (std::cmp::Reverse(graph(bar)), bar.label.ends_with("ReLU"));
        key(one).cmp(&key(other))
    });
    bars
}

/// Time of 2^20 normal rows: rows of 256 over k, and k = 32 over the row length.
fn rows(benches: &Benches) -> Vec<Panel> {
    let mut over_k = Panel { title: "rows of 256".into(), ..Panel::default() };
    let mut over_cols = Panel { title: "k = 32".into(), ..Panel::default() };
    for group in measured(benches, "topk", &["form", "method"]) {
        let plain = group.text("form") == "pairs" && group.text("dist") == "normal";
        let dtype = group.text("dtype");
        let Some((1_048_576, cols, k)) = row_sizes(group.text("case")) else {
            continue;
        };
        if !plain || group.text("method") != "exact" {
            continue;
        }
        let (Some(ms), Some(floor)) = (group.median("ms"), group.median("floor_ms")) else {
            continue;
        };
        let add = |panel: &mut Panel, x| {
            panel.add(dtype, x, ms);
            if dtype == "f32" {
                panel.add(FLOOR, x, floor);
            }
        };
        if cols == 256 {
            add(&mut over_k, k);
        }
        if k == 32 && cols >= 256 {
            add(&mut over_cols, cols);
        }
    }
    vec![over_k, over_cols]
}

/// Time of uniform f32 vectors over their length, with and without delegates, and of torch.topk.
fn vectors(benches: &Benches) -> Vec<Panel> {
    let mut panel = Panel { title: "uniform".into(), ..Panel::default() };
    let lines = benches.get("delegate").into_iter().flatten();
    for group in groups(lines, &["peer", "backend", "case", "dtype", "method", "dist"]) {
        let Some((n, 128)) = vector_sizes(group.text("case")) else {
            continue;
        };
        let Some(ms) = group.median("ms") else {
            continue;
        };
        if group.text("peer") == "torch unsorted" {
            panel.add("torch.topk", n, ms);
        }
        let method = group.text("method");
        let shown = method == "delegates" || method.starts_with("whole/");
        let plain = group.text("dtype") == "f32" && group.text("dist") == "uniform";
        if shown && plain {
            panel.add(method, n, ms);
            if let Some(read) = group.median("floor_ms") {
                panel.add(READ, n, read);
            }
        }
    }
    vec![panel]
}

/// Our measurements by CUDA, grouped by case, dtype, distribution and more fields.
fn measured<'a>(benches: &'a Benches, bench: &str, fields: &[&str]) -> Vec<Group<'a>> {
    let lines = benches.get(bench).into_iter().flatten();
    let ours = lines.filter(|line| !line.is_peer() && line.text("backend") == "cuda");
    let fields: Vec<&str> = ["case", "dtype", "dist"].iter().chain(fields).copied().collect();
    groups(ours, &fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records::parse;

    #[test]
    fn peers_need_rows_and_epochs() {
        let rows = r#"{"case":"2**16x256x4","backend":"cuda","dtype":"f32","dist":"normal",
            "form":"pairs","method":"exact","ms":2,"burn_ms":5}
            {"peer":"torch unsorted","case":"65536x256x4","ms":6}"#;
        let epochs = r#"{"case":"g k=8","graph":"g","backend":"cuda","method":"epoch",
            "topk":"exact","ms":10}
            {"peer":"torch","case":"epoch g topk 8","ms":40}"#;
        let lines = |text: &str| parse(&text.replace("\n            \"", "\"")).unwrap();
        let mut benches: Benches = [("topk".into(), lines(rows))].into();
        assert!(all("x", &benches).unwrap().is_empty());
        benches.insert("spmm".into(), lines(epochs));
        let figures = all("x", &benches).unwrap();
        assert_eq!((&*figures[0].file, figures[0].bench), ("x-peers.svg", None));
        for text in [
            "2^16 rows of 256, k = 4",
            "3.00× (2.00 ms, torch.topk 6.00 ms)",
            "2.50× (2.00 ms, Burn 5.00 ms)",
            "g, MaxK, k = 8",
            "4.00× (10.0 ms, PyTorch 40.0 ms)",
        ] {
            assert!(figures[0].svg.contains(text), "{text}: {}", figures[0].svg);
        }
    }

    #[test]
    fn a_chart_needs_three_points() {
        let line = |n: usize| {
            format!(
                r#"{{"case":"2**{n}x128","backend":"cuda","dtype":"f32","dist":"uniform",
                    "method":"delegates","ms":{n},"floor_ms":1}}"#
            )
        };
        let benches = |lengths: &[usize]| -> Benches {
            let text: Vec<String> = lengths.iter().map(|&n| line(n).replace('\n', "")).collect();
            [("delegate".into(), parse(&text.join("\n")).unwrap())].into()
        };
        assert!(all("x", &benches(&[20, 24])).unwrap().is_empty());
        let figures = all("x", &benches(&[20, 24, 28])).unwrap();
        assert_eq!(figures[0].file, "x-vector.svg");
        assert!(figures[0].svg.starts_with("<svg"));
    }
}
