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

/// The horizontal axis of accuracy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Across {
    Epochs,
    /// Training time, evaluation included.
    Seconds,
}

struct Line {
    label: String,
    points: Vec<(f64, f64)>,
    style: ShapeStyle,
}

const COLORS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(44, 160, 44), RGBColor(148, 103, 189)];

/// Draws loss over epochs, and accuracy, of every run.
pub fn write(output: &mut Output, title: &str, runs: &[Curves], across: Across) -> Drawn {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (1100, 460)).into_drawing_area();
        area.fill(&WHITE)?;
        let (left, right) = area.titled(title, ("sans-serif", 20))?.split_horizontally(550);
        let color = |at: usize| COLORS[at % COLORS.len()];
        let loss = runs.iter().enumerate().map(|(at, run)| Line {
            label: format!("{} training loss", run.label),
            points: points(run.history, |report| report.loss, Across::Epochs),
            style: color(at).stroke_width(2),
        });
        draw(&left, "loss", Across::Epochs, &loss.collect::<Vec<_>>())?;
        let accuracy = runs.iter().enumerate().flat_map(|(at, run)| {
            let line = |name: &str, of: Value, style| Line {
                label: format!("{} {name}", run.label),
                points: points(run.history, of, across),
                style,
            };
            [
                line("training", |report| report.train, color(at).mix(0.25).stroke_width(1)),
                line("validation", |report| report.val, color(at).mix(0.5).stroke_width(1)),
                line("test", |report| report.test, color(at).stroke_width(2)),
            ]
        });
        draw(&right, "accuracy", across, &accuracy.collect::<Vec<_>>())?;
        area.present()?;
    }
    Ok(output.write_all(svg.as_bytes())?)
}

fn points(history: &[EpochReport], value: Value, across: Across) -> Vec<(f64, f64)> {
    let mut seconds = 0.0;
    let points = history.iter().map(|report| {
        seconds += report.ms / 1e3;
        let x = match across {
            Across::Epochs => report.epoch as f64,
            Across::Seconds => seconds,
        };
        (x, value(report))
    });
    points.collect()
}

fn draw(
    area: &DrawingArea<SVGBackend, Shift>,
    name: &str,
    across: Across,
    lines: &[Line],
) -> Drawn {
    let points = || lines.iter().flat_map(|line| &line.points);
    let first = points().map(|point| point.0).reduce(f64::min);
    let last = points().map(|point| point.0).fold(0.0, f64::max);
    let (first, least) = match across {
        Across::Epochs => (first.unwrap_or(1.0), 1.0),
        Across::Seconds => (0.0, 1e-3),
    };
    let last = last.max(first + least);
    let low = points().map(|point| point.1).fold(1.0, f64::min);
    let high = points().map(|point| point.1).fold(low + 1e-3, f64::max);
    let margin = (high - low) * 0.04;

    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(52)
        .build_cartesian_2d(first..last, low - margin..high + margin)?;
    let digits = usize::from(across == Across::Seconds && last < 10.0);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|x| format!("{x:.digits$}"))
        .y_label_formatter(&|y| format!("{y:.2}"))
        .x_desc(match across {
            Across::Epochs => "epoch",
            Across::Seconds => "seconds",
        })
        .y_desc(name)
        .draw()?;
    for line in lines {
        let style = line.style;
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(&line.label)
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
