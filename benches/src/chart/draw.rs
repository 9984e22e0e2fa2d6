//! Panels as SVG.

use plotters::{
    coord::{
        Shift,
        ranged1d::{Ranged, ValueFormatter},
    },
    prelude::*,
};

use super::panel::{Panel, is_floor, names, power};

type Error = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

const PANELS_PER_ROW: usize = 3;
/// Width and height of a panel, in pixels.
const PANEL: (u32, u32) = (380, 300);
const LEGEND_WIDTH: u32 = 150;
const TITLE_HEIGHT: u32 = 40;
/// The most labels on an x axis.
const TICKS: f64 = 14.0;

const COLORS: [RGBColor; 9] = [
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

#[derive(Clone, Copy)]
pub struct Axes {
    pub x: &'static str,
    pub y: &'static str,
    pub x_scale: Scale,
    pub y_scale: Scale,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
}

impl Axes {
    /// Position of x on an axis of powers of two.
    fn place(self, x: usize) -> f64 {
        match self.x_scale {
            Scale::Linear => (x as f64).exp2(),
            Scale::Log => x as f64,
        }
    }

    fn x_label(self, place: f64) -> String {
        match self.x_scale {
            Scale::Linear => format!("{:.0}", place.log2()),
            Scale::Log => power(place as usize),
        }
    }

    /// Label of y on an axis up to `most`.
    fn y_label(self, y: f64, most: f64) -> String {
        let digits = match self.y_scale {
            Scale::Linear if most < 1.0 => 2,
            Scale::Linear => 1,
            Scale::Log => (-y.log10() - 1e-6).ceil().max(0.0) as usize,
        };
        format!("{y:.digits$}")
    }
}

/// Draws the panels with a title above and a legend at the right.
pub fn svg(title: &str, panels: &[Panel], axes: Axes) -> Result<String, Error> {
    let across = panels.len().min(PANELS_PER_ROW);
    let down = panels.len().div_ceil(across);
    let width = PANEL.0 * across as u32;
    let size = (width + LEGEND_WIDTH, PANEL.1 * down as u32 + TITLE_HEIGHT);
    let names = names(panels);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(TITLE_HEIGHT);
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
    let places: Vec<f64> = (panel.ticks().into_iter()).map(|x| axes.place(x)).collect();
    let most = points().map(|(_, &y)| y).fold(0.0, f64::max);
    let least = points().map(|(_, &y)| y).fold(most, f64::min);
    let x = (places[0] / 1.1..places[places.len() - 1] * 1.1)
        .log_scale()
        .base(2.0)
        .with_key_points(ticks(&places));
    let mut chart = ChartBuilder::on(area);
    chart
        .caption(&panel.title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(56);
    match axes.y_scale {
        Scale::Linear => {
            let chart = chart.build_cartesian_2d(x, 0.0..most * 1.08)?;
            lines(chart, panel, names, axes, most)
        }
        Scale::Log => {
            let y = (least / 1.3..most * 1.3).log_scale();
            lines(chart.build_cartesian_2d(x, y)?, panel, names, axes, most)
        }
    }
}

/// Positions far enough apart for their labels.
fn ticks(places: &[f64]) -> Vec<f64> {
    let least = (places[places.len() - 1] / places[0]).powf(1.0 / TICKS);
    let mut ticks: Vec<f64> = Vec::new();
    for &place in places {
        if ticks.last().is_none_or(|last| place / last >= least) {
            ticks.push(place);
        }
    }
    ticks
}

fn lines<X, Y>(
    mut chart: Chart<X, Y>,
    panel: &Panel,
    names: &[String],
    axes: Axes,
    most: f64,
) -> Result<(), Error>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|&x| axes.x_label(x))
        .y_label_formatter(&|&y| axes.y_label(y, most))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .draw()?;
    for (at, name) in names.iter().enumerate() {
        let Some(line) = panel.lines.get(name) else {
            continue;
        };
        let style = style(at, name);
        let points: Vec<(f64, f64)> = line.iter().map(|(&x, &y)| (axes.place(x), y)).collect();
        if is_floor(name) {
            chart.draw_series(DashedLineSeries::new(points, 5, 4, style))?;
        } else {
            let dots = points.clone();
            chart.draw_series(LineSeries::new(points, style))?;
            chart
                .draw_series(dots.into_iter().map(|point| Circle::new(point, 3, style.filled())))?;
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
    if is_floor(name) {
        BLACK.mix(0.6).stroke_width(1)
    } else {
        COLORS[at % COLORS.len()].stroke_width(2)
    }
}
