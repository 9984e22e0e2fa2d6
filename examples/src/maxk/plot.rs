//! An SVG of training curves.
use std::error::Error;

use sparsek::io::output::Output;
use sparsek_examples::chart::{self, COLORS, Color, Line, Panel, SeriesLabelPosition};
use sparsek_gnn::train::EpochReport;

/// A run's curves.
pub struct Curves<'a> {
    pub label: &'a str,
    pub history: &'a [EpochReport],
}

type Value = fn(&EpochReport) -> f64;

/// The horizontal axis of accuracy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Across {
    Epochs,
    /// Training time, evaluation included.
    Seconds,
}

/// Draws loss over epochs, and accuracy, of every run.
pub fn write(
    output: &mut Output,
    title: &str,
    runs: &[Curves],
    across: Across,
) -> Result<(), Box<dyn Error>> {
    let color = |at: usize| COLORS[at % COLORS.len()];
    let loss = runs.iter().enumerate().map(|(at, run)| Line {
        points: points(run.history, |report| report.loss, Across::Epochs),
        ..Line::new(format!("{} training loss", run.label), at)
    });
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
    let left = Panel::new(["epoch", "loss"], loss.collect());
    let axis = if across == Across::Epochs { "epoch" } else { "seconds" };
    let mut right = Panel::new([axis, "accuracy"], accuracy.collect());
    right.legend = SeriesLabelPosition::LowerRight;
    if across == Across::Seconds {
        let ends = right.lines.iter().filter_map(|line| line.points.last());
        right.across = 0.0..ends.map(|end| end.0).fold(1e-3, f64::max);
    }
    chart::write(output, title, &[left, right])
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
