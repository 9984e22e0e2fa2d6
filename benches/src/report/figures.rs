//! The charts of the report.

use super::records::{Benches, Group, groups, row_sizes, vector_sizes};
use crate::chart::{self, Axes, FLOOR, Panel, READ, Scale};

/// A chart and its place in the document.
pub struct Figure {
    /// The bench whose section shows it.
    pub bench: &'static str,
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
            bench,
            file: format!("{folder}-{name}.svg"),
            caption,
            svg: svg.map_err(|error| anyhow::anyhow!("{name}: {error}"))?,
        });
        anyhow::Ok(())
    };
    let time = |x, y_scale| Axes {
        x,
        y: "time, ms",
        x_scale: Scale::Log,
        y_scale,
    };
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
    Ok(figures)
}

/// Time of 2^20 normal rows: rows of 256 over k, and k = 32 over the row length.
fn rows(benches: &Benches) -> Vec<Panel> {
    let mut over_k = Panel {
        title: "rows of 256".into(),
        ..Panel::default()
    };
    let mut over_cols = Panel {
        title: "k = 32".into(),
        ..Panel::default()
    };
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
    let mut panel = Panel {
        title: "uniform".into(),
        ..Panel::default()
    };
    let lines = benches.get("delegate").into_iter().flatten();
    for group in groups(
        lines,
        &["peer", "backend", "case", "dtype", "method", "dist"],
    ) {
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
    let fields: Vec<&str> = ["case", "dtype", "dist"]
        .iter()
        .chain(fields)
        .copied()
        .collect();
    groups(ours, &fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records::parse;

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
