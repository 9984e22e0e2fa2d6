//! An SVG of training curves.
use std::io::Write;

use plotters::{coord::Shift, prelude::*};
use sparsek::io::output::Output;
use sparsek_gnn::train::EpochReport;

/// A run's curves.
pub struct Curves<'a> {
    pub label: &'a str,
    pub history: &'a [EpochReport],
}

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Value = fn(&EpochReport) -> f64;
type Line<'a> = (String, &'a [EpochReport], Value, ShapeStyle);

const COLORS: [RGBColor; 4] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
];

/// Draws loss and accuracy of every run.
pub fn write(output: &mut Output, title: &str, runs: &[Curves]) -> Drawn {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (1100, 460)).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area
            .titled(title, ("sans-serif", 20))?
            .split_horizontally(550);
        let color = |at: usize| COLORS[at % COLORS.len()];
        let loss = runs.iter().enumerate().map(|(at, run)| -> Line {
            (
                format!("{} training loss", run.label),
                run.history,
                |report| report.loss,
                color(at).stroke_width(2),
            )
        });
        draw(&left, "loss", &loss.collect::<Vec<_>>())?;
        let accuracy = runs.iter().enumerate().flat_map(|(at, run)| -> [Line; 3] {
            let line = |name: &str, of: Value, style| {
                (format!("{} {name}", run.label), run.history, of, style)
            };
            [
                line(
                    "training",
                    |report| report.train,
                    color(at).mix(0.25).stroke_width(1),
                ),
                line(
                    "validation",
                    |report| report.val,
                    color(at).mix(0.5).stroke_width(1),
                ),
                line("test", |report| report.test, color(at).stroke_width(2)),
            ]
        });
        draw(&right, "accuracy", &accuracy.collect::<Vec<_>>())?;
        area.present()?;
    }
    Ok(output.write_all(svg.as_bytes())?)
}

fn draw(area: &DrawingArea<SVGBackend, Shift>, name: &str, lines: &[Line]) -> Drawn {
    let reports = || lines.iter().flat_map(|line| line.1);
    let first = reports().map(|report| report.epoch).min().unwrap_or(1) as f64;
    let last = reports().map(|report| report.epoch).max().unwrap_or(1) as f64;
    let values = || lines.iter().flat_map(|line| line.1.iter().map(line.2));
    let low = values().fold(f64::INFINITY, f64::min).min(1.0);
    let high = values().fold(f64::NEG_INFINITY, f64::max).max(low + 1e-3);
    let margin = (high - low) * 0.04;

    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(52)
        .build_cartesian_2d(first..last.max(first + 1.0), low - margin..high + margin)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.2}"))
        .x_desc("epoch")
        .y_desc(name)
        .draw()?;
    for (label, history, value, style) in lines {
        let points = history
            .iter()
            .map(|report| (report.epoch as f64, value(report)));
        let style = *style;
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    let position = if name == "loss" {
        SeriesLabelPosition::UpperRight
    } else {
        SeriesLabelPosition::LowerRight
    };
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
