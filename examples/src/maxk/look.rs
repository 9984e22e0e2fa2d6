//! Pictures of a trained model: embedding, confusion matrix, accuracy by degree.
use std::{error::Error, io::Write};

use burn::tensor::{Device, Tensor, TensorData};
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use sparsek::io::output::Output;
use sparsek_gnn::{datasets::NodeDataset, nn::NodeModel};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T = ()> = Result<T, Box<dyn Error>>;

/// Points drawn at most.
const POINTS: usize = 4000;
/// Classes whose counts are written into the confusion matrix at most.
const WRITTEN: usize = 12;
const SIDE: u32 = 460;

/// What a trained model makes of a dataset.
pub struct Look {
    /// First two principal components of each node's embedding.
    places: Vec<[f64; 2]>,
    /// Predicted class per node.
    predicted: Vec<usize>,
}

impl Look {
    /// Runs the model on the whole graph. Errors for sets of classes.
    pub fn new<M: NodeModel>(model: &M, data: &NodeDataset, device: &Device) -> Drawn<Self> {
        if data.labels().classes().is_none() {
            return Err("--plot draws one class per node; the dataset has sets of classes".into());
        }
        let device = &device.clone().without_autodiff();
        let shape = [data.nodes(), data.feature_width()];
        let x = || TensorData::new(data.features().to_vec(), shape);
        let logits = model.forward(data.graph(), Tensor::from_data(x(), device));
        let predicted = numbers(logits)?;
        let predicted = predicted.chunks_exact(data.classes()).map(greatest).collect();
        let embedding = model.embed(data.graph(), Tensor::from_data(x(), device));
        Ok(Self { places: principal_components(embedding)?, predicted })
    }

    /// Draws three panels of the test nodes.
    pub fn write(&self, output: &mut Output, title: &str, data: &NodeDataset) -> Drawn {
        let labels = data.labels().classes().expect("checked by new");
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, (3 * SIDE, SIDE + 30));
            let area = area.into_drawing_area();
            area.fill(&WHITE)?;
            let cells = area.titled(title, ("sans-serif", 20))?.split_evenly((1, 3));
            self.draw_embedding(&cells[0], labels, data.classes())?;
            self.draw_confusion(&cells[1], labels, data)?;
            self.draw_degrees(&cells[2], labels, data)?;
            area.present()?;
        }
        Ok(output.write_all(svg.as_bytes())?)
    }

    fn draw_embedding(&self, area: &Area, labels: &[u32], classes: usize) -> Drawn {
        let step = self.places.len().div_ceil(POINTS).max(1);
        let shown = || self.places.iter().zip(labels).step_by(step);
        let ends = |axis: usize| {
            let values = || shown().map(|(place, _)| place[axis]);
            let low = values().fold(f64::INFINITY, f64::min);
            let high = values().fold(f64::NEG_INFINITY, f64::max);
            let margin = (high - low).max(1e-6) * 0.03;
            low - margin..high + margin
        };
        let mut chart = ChartBuilder::on(area)
            .caption("embedding, colored by class", ("sans-serif", 15))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(30)
            .build_cartesian_2d(ends(0), ends(1))?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(0)
            .y_labels(0)
            .x_desc("first principal component")
            .y_desc("second")
            .draw()?;
        chart.draw_series(shown().map(|(&[x, y], &class)| {
            Circle::new((x, y), 2, color(class as usize, classes).mix(0.7).filled())
        }))?;
        Ok(())
    }

    fn draw_confusion(&self, area: &Area, labels: &[u32], data: &NodeDataset) -> Drawn {
        let classes = data.classes();
        let counts = confusion(&self.predicted, labels, data.test(), classes);
        let size = classes as f64;
        let mut chart = ChartBuilder::on(area)
            .caption("test nodes: class and prediction", ("sans-serif", 15))
            .margin(10)
            .x_label_area_size(34)
            .y_label_area_size(40)
            .build_cartesian_2d(0.0..size, size..0.0)?;
        let name = |place: &f64| format!("{:.0}", place);
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(classes.min(10))
            .y_labels(classes.min(10))
            .x_label_formatter(&name)
            .y_label_formatter(&name)
            .x_desc("predicted class")
            .y_desc("class")
            .draw()?;
        for (class, row) in counts.iter().enumerate() {
            let all = row.iter().sum::<usize>().max(1) as f64;
            for (predicted, &count) in row.iter().enumerate() {
                let (x, y) = (predicted as f64, class as f64);
                let share = count as f64 / all;
                let fill = RGBColor(31, 119, 180).mix(share).filled();
                chart.draw_series([Rectangle::new([(x, y), (x + 1.0, y + 1.0)], fill)])?;
                if classes <= WRITTEN && count > 0 {
                    let ink = if share > 0.5 { WHITE } else { BLACK };
                    let middle = Pos::new(HPos::Center, VPos::Center);
                    let style = ("sans-serif", 13).into_font().color(&ink).pos(middle);
                    let text = Text::new(count.to_string(), (x + 0.5, y + 0.5), style);
                    chart.draw_series([text])?;
                }
            }
        }
        Ok(())
    }

    fn draw_degrees(&self, area: &Area, labels: &[u32], data: &NodeDataset) -> Drawn {
        let degree = |node: u32| data.graph().neighbors(node as usize).len();
        let bins = by_degree(&self.predicted, labels, data.test(), degree);
        let all: usize = bins.iter().map(|bin| bin.nodes).sum();
        let mut chart = ChartBuilder::on(area)
            .caption("test nodes: accuracy by degree", ("sans-serif", 15))
            .margin(10)
            .x_label_area_size(34)
            .y_label_area_size(44)
            .build_cartesian_2d(-0.5..bins.len() as f64 - 0.5, 0.0..1.05)?;
        let name = |place: &f64| {
            let at = place.round();
            match bins.get(at as usize) {
                Some(bin) if at >= 0.0 && (place - at).abs() < 1e-6 => bin.name(),
                _ => String::new(),
            }
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(bins.len() * 2 + 1)
            .x_label_formatter(&name)
            .x_desc("neighbors")
            .y_desc("accuracy (line), share of nodes (bars)")
            .draw()?;
        chart.draw_series(bins.iter().enumerate().map(|(at, bin)| {
            let share = bin.nodes as f64 / all.max(1) as f64;
            let corners = [(at as f64 - 0.35, 0.0), (at as f64 + 0.35, share)];
            Rectangle::new(corners, RGBColor(158, 188, 218).filled())
        }))?;
        let filled = bins.iter().enumerate().filter(|(_, bin)| bin.nodes > 0);
        let points: Vec<(f64, f64)> =
            filled.map(|(at, bin)| (at as f64, bin.right as f64 / bin.nodes as f64)).collect();
        let line = RGBColor(214, 39, 40);
        chart.draw_series(LineSeries::new(points.clone(), line.stroke_width(2)))?;
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, line.filled())))?;
        Ok(())
    }
}

/// Test nodes with degrees in a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    first: usize,
    last: usize,
    nodes: usize,
    right: usize,
}

impl Bin {
    fn name(&self) -> String {
        match self.first == self.last {
            true => self.first.to_string(),
            false => format!("{}–{}", self.first, self.last),
        }
    }
}

/// Bins 0, 1, 2–3, 4–7 and so on, up to the last with nodes.
fn by_degree(
    predicted: &[usize],
    labels: &[u32],
    nodes: &[u32],
    degree: impl Fn(u32) -> usize,
) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    for &node in nodes {
        let at = (usize::BITS - degree(node).leading_zeros()) as usize;
        while bins.len() <= at {
            let next = bins.len();
            let (first, last) = if next == 0 { (0, 0) } else { (1 << (next - 1), (1 << next) - 1) };
            bins.push(Bin { first, last, ..Bin::default() });
        }
        bins[at].nodes += 1;
        bins[at].right += usize::from(predicted[node as usize] == labels[node as usize] as usize);
    }
    bins
}

/// Counts by class, then prediction.
fn confusion(
    predicted: &[usize],
    labels: &[u32],
    nodes: &[u32],
    classes: usize,
) -> Vec<Vec<usize>> {
    let mut counts = vec![vec![0; classes]; classes];
    for &node in nodes {
        counts[labels[node as usize] as usize][predicted[node as usize]] += 1;
    }
    counts
}

/// Hues around the circle.
fn color(class: usize, classes: usize) -> HSLColor {
    HSLColor(class as f64 / classes.max(1) as f64, 0.65, 0.45)
}

fn greatest(row: &[f32]) -> usize {
    let better = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
    (1..row.len()).fold(0, better)
}

fn numbers(tensor: Tensor<2>) -> Drawn<Vec<f32>> {
    let data = tensor.try_into_data().map_err(|error| error.to_string())?;
    Ok(data.try_into_vec_as::<f32>().map_err(|error| error.to_string())?)
}

/// The first two, by subspace iteration on the covariance.
fn principal_components(x: Tensor<2>) -> Drawn<Vec<[f64; 2]>> {
    let x = x.clone() - x.mean_dim(0);
    let [rows, width] = x.dims();
    let covariance = numbers(x.clone().transpose().matmul(x.clone()))?;
    let axes = eigenvectors(&covariance, width);
    let axes = TensorData::new(axes.iter().map(|&v| v as f32).collect(), [2, width]);
    let axes = Tensor::<2>::from_data(axes, &x.device());
    let places = numbers(x.matmul(axes.transpose()))?;
    debug_assert_eq!(places.len(), 2 * rows);
    Ok(places.chunks_exact(2).map(|at| [at[0].into(), at[1].into()]).collect())
}

/// The two greatest, [2, width], of a symmetric matrix without negative eigenvalues.
fn eigenvectors(matrix: &[f32], width: usize) -> Vec<f64> {
    let mut axes: [Vec<f64>; 2] =
        [0, 1].map(|axis| (0..width).map(|at| 1.0 + ((at * (axis + 2)) % 7) as f64).collect());
    for _ in 0..200 {
        axes = axes.map(|axis| {
            let row = |at: usize| {
                let row = &matrix[at * width..][..width];
                row.iter().zip(&axis).map(|(&a, b)| f64::from(a) * b).sum()
            };
            (0..width).map(row).collect()
        });
        let [first, second] = &mut axes;
        scale_to_one(first);
        let along: f64 = first.iter().zip(&*second).map(|(a, b)| a * b).sum();
        second.iter_mut().zip(&*first).for_each(|(b, a)| *b -= along * a);
        scale_to_one(second);
    }
    axes.concat()
}

fn scale_to_one(axis: &mut [f64]) {
    let norm = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
    if norm > 0.0 {
        axis.iter_mut().for_each(|a| *a /= norm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_those_of_the_ellipse() {
        // Variances 9 and 4 along (0.6, 0.8, 0) and (0.8, −0.6, 0), 1 across.
        let (u, v) = ([0.6, 0.8, 0.0], [0.8, -0.6, 0.0]);
        let mut matrix = vec![0f32; 9];
        for (at, element) in matrix.iter_mut().enumerate() {
            let (i, j) = (at / 3, at % 3);
            *element = (9.0 * u[i] * u[j] + 4.0 * v[i] * v[j]) as f32;
        }
        matrix[8] = 1.0;
        let axes = eigenvectors(&matrix, 3);
        let along = |axis: &[f64], wanted: &[f64]| {
            axis.iter().zip(wanted).map(|(a, b)| a * b).sum::<f64>().abs()
        };
        assert!((along(&axes[..3], &u) - 1.0).abs() < 1e-6, "{axes:?}");
        assert!((along(&axes[3..], &v) - 1.0).abs() < 1e-6, "{axes:?}");
    }

    #[test]
    fn nodes_are_counted_by_class_and_degree() {
        let (predicted, labels) = ([0, 1, 1, 0], [0, 1, 0, 1]);
        assert_eq!(confusion(&predicted, &labels, &[0, 1, 2], 2), [[1, 1], [0, 1]]);
        let bins =
            by_degree(&predicted, &labels, &[0, 1, 2, 3], |node| [0, 1, 3, 5][node as usize]);
        let bin = |first, last, right| Bin { first, last, nodes: 1, right };
        assert_eq!(bins, [bin(0, 0, 1), bin(1, 1, 1), bin(2, 3, 0), bin(4, 7, 0)]);
        assert_eq!(bins[2].name(), "2–3");
    }
}
