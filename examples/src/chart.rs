//! Line charts as SVG.

use std::{error::Error, io::Write, ops::Range, path::PathBuf};

pub use plotters::prelude::{Color, RGBColor, SeriesLabelPosition, ShapeStyle};
use plotters::{coord::Shift, prelude::*};
use sparsek::io::output::Output;

use crate::program::{commit, create, named};

/// Colors of lines.
pub const COLORS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(44, 160, 44), RGBColor(148, 103, 189)];

/// A curve.
pub struct Line {
    /// Name in the legend.
    pub label: String,
    /// x and y of each point.
    pub points: Vec<(f64, f64)>,
    /// Color and width.
    pub style: ShapeStyle,
}

impl Line {
    /// A line without points in color `at` of [`COLORS`], counted around.
    pub fn new(label: impl Into<String>, at: usize) -> Self {
        let style = COLORS[at % COLORS.len()].stroke_width(2);
        Self { label: label.into(), points: Vec::new(), style }
    }
}

/// Curves over one axis; the vertical axis fits them.
pub struct Panel<'a> {
    /// Names of the horizontal and the vertical axis.
    pub axes: [&'a str; 2],
    /// Ends of the horizontal axis.
    pub across: Range<f64>,
    /// The curves.
    pub lines: Vec<Line>,
    /// Place of the legend.
    pub legend: SeriesLabelPosition,
}

impl<'a> Panel<'a> {
    /// A panel as wide as its lines, with the legend at the upper right.
    pub fn new(axes: [&'a str; 2], lines: Vec<Line>) -> Self {
        let places = || lines.iter().flat_map(|line| &line.points).map(|point| point.0);
        let first = places().reduce(f64::min).unwrap_or(0.0);
        let last = places().fold(first + 1.0, f64::max);
        Self { axes, across: first..last, lines, legend: SeriesLabelPosition::UpperRight }
    }
}

/// Draws panels side by side.
///
/// # Errors
/// What plotters or the file report.
pub fn write(output: &mut Output, title: &str, panels: &[Panel]) -> Result<(), Box<dyn Error>> {
    let mut svg = String::new();
    {
        let size = (550 * panels.len() as u32, 460);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let cells = area.titled(title, ("sans-serif", 20))?.split_evenly((1, panels.len()));
        for (cell, panel) in cells.iter().zip(panels) {
            draw(cell, panel)?;
        }
        area.present()?;
    }
    Ok(output.write_all(svg.as_bytes())?)
}

/// [`write()`] to the file of the second argument, else to `NAME.svg` in the folder for temporary
/// files; returns its path.
///
/// # Errors
/// One line that names the file.
pub fn save(name: &str, title: &str, panels: &[Panel]) -> Result<PathBuf, String> {
    let unnamed = || std::env::temp_dir().join(name).with_extension("svg");
    let path = std::env::args_os().nth(2).map_or_else(unnamed, PathBuf::from);
    let mut output = create(&path)?;
    write(&mut output, title, panels).map_err(|error| named(&path, error))?;
    commit(&path, output)?;
    Ok(path)
}

fn draw(area: &DrawingArea<SVGBackend, Shift>, panel: &Panel) -> Result<(), Box<dyn Error>> {
    let heights = || panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let low = heights().reduce(f64::min).unwrap_or(0.0);
    let high = heights().fold(low + 1e-3, f64::max);
    let margin = (high - low) * 0.04;
    let fine = |range: f64| range < 10.0;
    let columns = usize::from(fine(panel.across.end - panel.across.start));
    let rows = if fine(high - low) { 2 } else { 0 };

    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(52)
        .build_cartesian_2d(panel.across.clone(), low - margin..high + margin)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|x| format!("{x:.columns$}"))
        .y_label_formatter(&|y| format!("{y:.rows$}"))
        .x_desc(panel.axes[0])
        .y_desc(panel.axes[1])
        .draw()?;
    for line in &panel.lines {
        let style = line.style;
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(&line.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(panel.legend.clone())
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
