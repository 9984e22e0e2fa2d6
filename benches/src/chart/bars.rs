//! Horizontal bars as SVG.

use plotters::{coord::Shift, prelude::*};

type Error = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Bars that share their scale, which starts at 0.
pub struct Bars {
    pub title: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub label: String,
    pub length: f64,
    /// Text behind the bar.
    pub note: String,
}

const WIDTH: u32 = 540;
const TITLE_HEIGHT: i32 = 40;
const HEAD_HEIGHT: i32 = 34;
/// A label and its bar.
const BAR_HEIGHT: i32 = 44;
const THICKNESS: i32 = 15;
const MARGIN: i32 = 16;
/// The longest bar; notes follow.
const LONGEST: f64 = 220.0;

const COLOR: RGBColor = RGBColor(31, 119, 180);
const TEXT: RGBColor = RGBColor(31, 35, 40);
const FAINT: RGBColor = RGBColor(110, 118, 129);

/// Draws panels side by side on white, which dark pages show too.
pub fn bars(title: &str, panels: &[Bars]) -> Result<String, Error> {
    let most = panels.iter().map(|panel| panel.bars.len()).max();
    let height = TITLE_HEIGHT + HEAD_HEIGHT + BAR_HEIGHT * most.unwrap_or(0) as i32 + MARGIN;
    let size = (WIDTH * panels.len() as u32, height as u32);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(TITLE_HEIGHT);
        write(&head, title, (MARGIN, 14), 18, TEXT)?;
        for (panel, area) in panels.iter().zip(body.split_evenly((1, panels.len()))) {
            draw(&area, panel)?;
        }
        area.present()?;
    }
    Ok(text)
}

fn draw(area: &Area, panel: &Bars) -> Result<(), Error> {
    write(area, &panel.title, (MARGIN, 8), 15, TEXT)?;
    let longest = panel.bars.iter().map(|bar| bar.length).fold(0.0, f64::max);
    for (at, bar) in panel.bars.iter().enumerate() {
        let top = HEAD_HEIGHT + BAR_HEIGHT * at as i32;
        write(area, &bar.label, (MARGIN, top), 13, TEXT)?;
        let length = (LONGEST * bar.length / longest) as i32;
        let (start, end) = (top + 17, top + 17 + THICKNESS);
        let corners = [(MARGIN, start), (MARGIN + length, end)];
        area.draw(&Rectangle::new(corners, COLOR.filled()))?;
        write(area, &bar.note, (MARGIN + length + 8, start + 1), 13, FAINT)?;
    }
    Ok(())
}

fn write(
    area: &Area,
    text: &str,
    place: (i32, i32),
    size: u32,
    color: RGBColor,
) -> Result<(), Error> {
    let style = ("sans-serif", size).into_text_style(area).color(&color);
    Ok(area.draw_text(text, &style, place)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_share_a_scale() {
        let bar = |length| Bar {
            label: format!("label {length}"),
            length,
            note: format!("note {length}"),
        };
        let panel = Bars { title: "panel".into(), bars: vec![bar(4.0), bar(1.0)] };
        let svg = bars("title", &[panel]).unwrap();
        for text in ["title", "panel", "label 4", "note 1"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        // The ground, then the bars.
        let widths = svg.split("<rect ").skip(2).map(|rect| {
            let (_, rest) = rect.split_once("width=\"").unwrap();
            rest.split('"').next().unwrap()
        });
        assert_eq!(widths.collect::<Vec<_>>(), ["220", "55"]);
    }
}
