//! Graph convolutions, forward and backward: device time.

use std::{collections::HashMap, fmt, path::PathBuf, str::FromStr};

use anyhow::{Context, bail, ensure};
use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use serde::Deserialize;
use sparsek::{dense::column_sums, sparse::Pattern};
use sparsek_gnn::{
    Graph,
    datasets::power_law::PowerLawConfig,
    nn::{GatConvConfig, GcnConvConfig, GinConvConfig, GinMlpConfig, SageConvConfig},
};
use sparsek_tests::backend::{Backend, Kind};

use crate::{
    case::size,
    layers::LayerRecord,
    record,
    spmm::{Source, graph, longest, number},
    timing::Ready,
};

const CASES: [&str; 6] = [
    "sage:reddit-size:256",
    "gcn:reddit-size:256",
    "gin:reddit-size:256",
    "gat:reddit-size:64",
    "sage:products-size:256",
    "gat:products-size:64",
];
const HEADS: usize = 4;
/// Nodes whose rows are checked, besides that with most neighbors.
const CHECKED: usize = 4;
/// Of a row's greatest element: tensor cores round factors to TF32.
const TOLERANCE: f32 = 5e-3;

/// Checks and times a graph convolution and its gradients of features and parameters, f32.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// sage, gcn, gin or gat (4 heads), a graph and the width of input and output: GRAPH is
    /// reddit-size, products-size or a fraction, reddit-size/100; may be repeated. A single case
    /// also has the peak of memory.
    #[arg(long = "case", value_name = "LAYER:GRAPH:WIDTH", default_values = CASES)]
    cases: Vec<Case>,
    /// PyG's times of the same cases on the same card, by benches/peers/pyg_convolutions.py: JSON
    /// lines of `case`, `ms` and `peak_bytes`.
    #[arg(long, value_name = "FILE")]
    torch: Option<PathBuf>,
    /// Writes the last graph as PREFIX.indptr and PREFIX.indices, and times nothing.
    #[arg(long, value_name = "PREFIX")]
    dump: Option<PathBuf>,
    /// Appends one JSON line for each case.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Sage,
    Gcn,
    Gin,
    Gat,
}

#[derive(Clone, Debug)]
struct Case {
    text: String,
    layer: Layer,
    graph: PowerLawConfig,
    width: usize,
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let [layer, graph, width] = text.split(':').collect::<Vec<_>>()[..] else {
            bail!("{text}: a case is LAYER:GRAPH:WIDTH, for example sage:reddit-size:256");
        };
        let layer = match layer {
            "sage" => Layer::Sage,
            "gcn" => Layer::Gcn,
            "gin" => Layer::Gin,
            "gat" => Layer::Gat,
            _ => bail!("{layer}: expected sage, gcn, gin or gat"),
        };
        let width = size(width)?;
        ensure!(width > 0 && width.is_multiple_of(HEADS), "{width}: no multiple of {HEADS}");
        Ok(Self { text: text.into(), layer, graph: graph.parse()?, width })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Deserialize)]
struct Peer {
    case: String,
    ms: f64,
    peak_bytes: u64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let peers = record::read_torch::<Peer>(arguments.torch.as_deref())?;
    let peers: HashMap<&str, &Peer> = peers.iter().map(|peer| (peer.case.as_str(), peer)).collect();
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    for case in &arguments.cases {
        let graph = Source::synthetic(&case.graph, 0)?.graph;
        if let Some(prefix) = &arguments.dump {
            graph::write(graph.pattern(), prefix)?;
            continue;
        }
        let times = case.ready(&backend, graph).with_context(|| case.to_string())?.measure()?;
        // Pools never shrink, so this is the peak of all cases.
        let peak = backend.device.memory_pool_usage().map(|usage| usage.bytes_reserved);
        let peak = peak.filter(|_| arguments.cases.len() == 1);
        let peer = peers.get(case.text.as_str());
        let record = LayerRecord {
            bench: "convolutions".into(),
            case: case.text.clone(),
            backend: arguments.backend.to_string(),
            device: backend.label.clone(),
            ms: times.median.ms,
            spread: times.median.spread,
            first_ms: times.first_ms,
            torch_ms: peer.map(|peer| peer.ms),
            peak_bytes: peak,
            torch_peak_bytes: peer.map(|peer| peer.peak_bytes),
            checked: times.checked,
        };
        say!(
            "{case}: {:.3} ms{}, first call {:.0} ms{}, {} rows checked",
            record.ms,
            record.torch_ms.map(|ms| format!(", PyG {ms:.3} ms")).unwrap_or_default(),
            record.first_ms,
            peak.map(|bytes| format!(", {:.2} GiB", bytes as f64 / f64::from(1 << 30)))
                .unwrap_or_default(),
            record.checked
        );
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
    }
    Ok(())
}

/// A layer's forward pass.
type Forward = Box<dyn Fn(&Graph, Tensor<2>) -> Tensor<2> + Send>;

impl Case {
    /// Equal layers on a device and, for the check, on Flex.
    fn layers(&self, device: &Device, flex: &Device) -> [Forward; 2] {
        macro_rules! both {
            ($config:expr) => {{
                let layer = $config.init(device);
                let copy = layer.clone().to_device(flex);
                [
                    Box::new(move |graph: &Graph, x| layer.forward(graph, x)),
                    Box::new(move |graph: &Graph, x| copy.forward(graph, x)),
                ]
            }};
        }
        let width = self.width;
        match self.layer {
            Layer::Sage => both!(SageConvConfig::new(width, width)),
            Layer::Gcn => both!(GcnConvConfig::new(width, width)),
            Layer::Gin => {
                let mlp = GinMlpConfig::new(width, width, width);
                both!(GinConvConfig::new().with_mlp(Some(mlp)))
            }
            Layer::Gat => both!(GatConvConfig::new(width, width / HEADS).with_heads(HEADS)),
        }
    }

    /// The check compares rows with those of Flex in the part of the graph that they depend on.
    fn ready(&self, backend: &Backend, graph: Graph) -> anyhow::Result<Ready<'static>> {
        let tracked = backend.device.clone().autodiff();
        let flex = Kind::Flex.open().map_err(anyhow::Error::msg)?.device;
        tracked.seed(1);
        let [layer, copy] = self.layers(&tracked, &flex.clone().autodiff());
        let (nodes, width) = (graph.nodes(), self.width);
        let numbers: Vec<f32> = (0..nodes * width).map(|place| number(place, 1)).collect();
        let part = Part::new(graph.pattern());
        let rows = part.rows(&numbers, width);
        let rows = Tensor::from_data(rows, &flex.autodiff());
        let wanted: Vec<f32> = copy(&part.graph, rows).into_data().iter().collect();
        let x = Tensor::<2>::from_data(TensorData::new(numbers, [nodes, width]), &tracked);
        let upstream = x.clone() * 0.5;
        let output = layer(&graph, x.clone());
        for (at, &node) in part.checked.iter().enumerate() {
            let row = output.clone().slice([node..node + 1, 0..width]);
            let found: Vec<f32> = row.into_data().iter().collect();
            let wanted = &wanted[at * width..][..width];
            let most = wanted.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= TOLERANCE * most;
            ensure!(found.iter().zip(wanted).all(near), "node {node}: {found:?}, not {wanted:?}");
        }
        drop(output);
        let run = move || {
            let x = x.clone().require_grad();
            let y = layer(&graph, x.clone());
            // Burn adds all elements in one cube.
            let gradients = column_sums(y * upstream.clone()).sum().backward();
            x.grad(&gradients).expect("the features are tracked")
        };
        let checked = part.checked.len();
        Ready::tensors(&backend.device, run, |gradient| {
            let sum: f32 = gradient.abs().sum().into_scalar();
            ensure!(sum.is_finite() && sum > 0.0, "the gradients sum up to {sum}");
            Ok(checked)
        })
    }
}

/// Checked nodes, then their neighbors, then a node of zeros. That is as many times a neighbor of
/// these neighbors as gives them their degrees; loops stay loops.
struct Part {
    checked: Vec<usize>,
    /// Of the whole graph.
    nodes: Vec<usize>,
    graph: Graph,
}

impl Part {
    fn new(whole: &Pattern) -> Self {
        let step = whole.rows().div_ceil(CHECKED);
        let mut checked: Vec<usize> = (0..whole.rows()).step_by(step).collect();
        let most = longest(whole);
        if !checked.contains(&most) {
            checked.push(most);
        }
        let mut nodes = checked.clone();
        let mut places: HashMap<usize, u32> = (0..).zip(&nodes).map(|(i, &n)| (n, i)).collect();
        let (mut indptr, mut indices) = (vec![0], Vec::new());
        for &node in &checked {
            for &neighbor in whole.row(node) {
                let neighbor = neighbor as usize;
                let place = *places.entry(neighbor).or_insert_with(|| {
                    nodes.push(neighbor);
                    nodes.len() as u32 - 1
                });
                indices.push(place);
            }
            indptr.push(indices.len() as u32);
        }
        let zeros = nodes.len() as u32;
        for (place, &node) in (0..).zip(&nodes).skip(checked.len()) {
            let degree = whole.row(node).iter();
            indices.extend(degree.map(|&from| if from as usize == node { place } else { zeros }));
            indptr.push(indices.len() as u32);
        }
        indptr.push(indices.len() as u32);
        let count = nodes.len() + 1;
        let pattern = Pattern::new(count, count, indptr, indices).expect("places are nodes");
        Self { checked, nodes, graph: Graph::try_from(pattern).expect("a square matrix") }
    }

    fn rows(&self, numbers: &[f32], width: usize) -> TensorData {
        let rows = self.nodes.iter().flat_map(|node| &numbers[node * width..][..width]);
        let mut rows: Vec<f32> = rows.copied().collect();
        rows.resize(rows.len() + width, 0.0);
        TensorData::new(rows, [self.nodes.len() + 1, width])
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("sage:reddit-size/2000:8")]
    #[case("gcn:reddit-size/2000:8")]
    #[case("gin:products-size/2000:8")]
    #[case("gat:products-size/2000:8")]
    fn layers_are_checked(#[case] text: &str) {
        let backend = Kind::Flex.open().expect("Flex");
        let case: Case = text.parse().expect("a case");
        let graph = Source::synthetic(&case.graph, 0).expect("a graph").graph;
        assert!(case.ready(&backend, graph).expect("a right result").checked > CHECKED / 2);
    }

    #[rstest]
    #[case("sage:reddit-size")]
    #[case("mean:reddit-size:8")]
    #[case("gat:reddit-size:6")]
    #[case("gat:cora:8")]
    fn other_cases_are_refused(#[case] text: &str) {
        assert!(text.parse::<Case>().is_err());
    }
}
