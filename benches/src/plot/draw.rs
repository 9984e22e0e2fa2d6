//! Panels as SVG.

use std::collections::BTreeSet;

use plotters::{coord::Shift, prelude::*};

use super::panel::{FLOOR, Panel, names};

type Error = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Panels side by side before the next row begins.
const ACROSS: usize = 3;
/// Size of a panel, width of the legend, height of the title.
const PANEL: (u32, u32) = (380, 300);
const LEGEND: u32 = 150;
const TITLE: u32 = 40;

const COLOURS: [RGBColor; 9] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(255, 127, 14),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(188, 189, 34),
    RGBColor(23, 190, 207),
];

/// What the axes say.
#[derive(Clone, Copy)]
pub struct Axes {
    pub x: &'static str,
    pub y: &'static str,
}

/// The panels, a title above them and a legend beside them.
pub fn svg(title: &str, panels: &[Panel], axes: Axes) -> Result<String, Error> {
    let across = panels.len().min(ACROSS);
    let down = panels.len().div_ceil(across);
    let width = PANEL.0 * across as u32;
    let size = (width + LEGEND, PANEL.1 * down as u32 + TITLE);
    let names = names(panels);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(TITLE);
        head.draw_text(title, &("sans-serif", 18).into_text_style(&head), (16, 12))?;
        let (charts, side) = body.split_horizontally(width);
        for (panel, area) in panels.iter().zip(charts.split_evenly((down, across))) {
            draw(&area, panel, &names, axes)?;
        }
        legend(&side, &names)?;
        area.present()?;
    }
    Ok(text)
}

fn draw(area: &Area, panel: &Panel, names: &[String], axes: Axes) -> Result<(), Error> {
    let points = || panel.lines.values().flatten();
    let ticks: BTreeSet<usize> = points().map(|(&x, _)| x).collect();
    let ticks: Vec<f64> = ticks.into_iter().map(|x| x as f64).collect();
    let most = points().map(|(_, &y)| y).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(56)
        .build_cartesian_2d(
            (ticks[0] / 1.1..ticks[ticks.len() - 1] * 1.1)
                .log_scale()
                .base(2.0)
                .with_key_points(ticks),
            0.0..most * 1.08,
        )?;
    let digits = if most < 1.0 { 2 } else { 1 };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.digits$}"))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .draw()?;
    for (at, name) in names.iter().enumerate() {
        let Some(line) = panel.lines.get(name) else {
            continue;
        };
        let style = style(at, name);
        let points: Vec<(f64, f64)> = line.iter().map(|(&x, &y)| (x as f64, y)).collect();
        if name == FLOOR {
            chart.draw_series(DashedLineSeries::new(points, 5, 4, style))?;
        } else {
            let dots = points.clone();
            chart.draw_series(LineSeries::new(points, style))?;
            chart.draw_series(
                dots.into_iter()
                    .map(|point| Circle::new(point, 3, style.filled())),
            )?;
        }
    }
    Ok(())
}

fn legend(area: &Area, names: &[String]) -> Result<(), Error> {
    for (at, name) in names.iter().enumerate() {
        let y = 46 + 22 * at as i32;
        let line = PathElement::new([(4, y), (28, y)], style(at, name));
        area.draw(&line)?;
        let font = ("sans-serif", 14).into_text_style(area);
        area.draw_text(name, &font, (36, y - 7))?;
    }
    Ok(())
}

fn style(at: usize, name: &str) -> ShapeStyle {
    if name == FLOOR {
        BLACK.mix(0.6).stroke_width(1)
    } else {
        COLOURS[at % COLOURS.len()].stroke_width(2)
    }
}
