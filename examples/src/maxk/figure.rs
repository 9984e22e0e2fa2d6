//! Speed and accuracy of MaxK, as Figure 5 of the RTop-K paper.
use std::{error::Error, io::Write};

use plotters::{coord::Shift, prelude::*};
use sparsek::io::output::Output;

/// Results of a model.
pub struct Panel {
    pub title: String,
    pub metric: String,
    /// ReLU first, then MaxK.
    pub points: Vec<Point>,
}

/// Mean of an activation's runs.
pub struct Point {
    pub label: String,
    pub test: f64,
    pub spread: f64,
    /// Epoch time of ReLU over this one.
    pub speed_up: f64,
}

type Drawn = Result<(), Box<dyn Error>>;

const BAR: RGBColor = RGBColor(158, 188, 218);
const LINE: RGBColor = RGBColor(214, 39, 40);
const BASE: RGBColor = RGBColor(90, 90, 90);
const WIDTH: u32 = 420;

/// Draws a panel per model: bars are speed-ups over ReLU, the line is the test metric with its
/// deviation, dashes are ReLU's.
pub fn write(output: &mut Output, dataset: &str, panels: &[Panel]) -> Drawn {
    let mut svg = String::new();
    {
        let size = (WIDTH * panels.len().max(1) as u32, 380);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let cells = area.split_evenly((1, panels.len().max(1)));
        for (cell, panel) in cells.iter().zip(panels) {
            draw(cell, dataset, panel)?;
        }
        area.present()?;
    }
    Ok(output.write_all(svg.as_bytes())?)
}

fn draw(area: &DrawingArea<SVGBackend, Shift>, dataset: &str, panel: &Panel) -> Drawn {
    let (relu, kept) = panel.points.split_first().ok_or("nothing to draw")?;
    let low = panel.points.iter().map(|p| p.test - p.spread).fold(f64::INFINITY, f64::min);
    let high = panel.points.iter().map(|p| p.test + p.spread).fold(0.0, f64::max);
    let margin = (high - low).max(0.01) * 0.4;
    let fastest = kept.iter().map(|p| p.speed_up).fold(1.0, f64::max);
    let last = kept.len() as f64 - 0.5;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{} on {dataset}", panel.title), ("sans-serif", 17))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .right_y_label_area_size(56)
        .build_cartesian_2d(-0.5..last, 0.0..fastest * 1.3)?
        .set_secondary_coord(-0.5..last, low - margin..high + margin);
    let short = |x: &f64| {
        let place = x.round();
        match kept.get(place as usize) {
            Some(point) if place >= 0.0 && (x - place).abs() < 1e-6 => short(&point.label),
            _ => String::new(),
        }
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(kept.len() * 2 + 1)
        .x_label_formatter(&short)
        .y_label_formatter(&|y| format!("{y:.1}"))
        .x_desc("max_iter")
        .y_desc("speed-up over ReLU")
        .draw()?;
    chart
        .configure_secondary_axes()
        .y_label_formatter(&|y| format!("{y:.3}"))
        .y_desc(format!("test {}", panel.metric))
        .draw()?;
    chart.draw_series(kept.iter().enumerate().map(|(at, point)| {
        let at = at as f64;
        Rectangle::new([(at - 0.3, 0.0), (at + 0.3, point.speed_up)], BAR.filled())
    }))?;
    let dashes = (0..40).map(|at| -0.5 + (last + 0.5) * f64::from(at) / 40.0);
    let dash = (last + 0.5) / 80.0;
    chart.draw_secondary_series(dashes.map(|x| {
        PathElement::new([(x, relu.test), (x + dash, relu.test)], BASE.stroke_width(2))
    }))?;
    let line = kept.iter().enumerate().map(|(at, point)| (at as f64, point.test));
    chart.draw_secondary_series(LineSeries::new(line, LINE.stroke_width(2)))?;
    chart.draw_secondary_series(kept.iter().enumerate().map(|(at, point)| {
        let (low, high) = (point.test - point.spread, point.test + point.spread);
        ErrorBar::new_vertical(at as f64, low, point.test, high, LINE.filled(), 6)
    }))?;
    Ok(())
}

/// `maxk:32:early:4` is 4, `maxk:32:exact` exact.
fn short(label: &str) -> String {
    label.rsplit(':').next().unwrap_or(label).to_string()
}
