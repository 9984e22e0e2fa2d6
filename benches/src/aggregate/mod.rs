//! Products of a graph with dense and with compressed rows, and their gradients.

mod check;
mod device;
mod graph;

use std::path::PathBuf;

use anyhow::{Context, bail};
use cubecl::{client::Client, prelude::*, server::Handle};
use serde::Serialize;
use sparsek_kernels::aggregate;
use sparsek_tests::backend::{Backend, Kind};

use self::{
    check::Checked,
    device::{Kept, OnDevice, numbers},
    graph::{Graph, Synthetic},
};
use crate::{
    copy, record,
    timing::{measure, wall_clock},
};

/// Seeds of the matrices.
pub const FEATURES: u32 = 17;
pub const UPSTREAM: u32 = 23;

/// Checks and times products of a graph with rows of features, dense and compressed, and their gradients.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// A synthetic graph: reddit-size or products-size, perhaps divided: reddit-size/100; may be repeated.
    #[arg(long = "graph")]
    graphs: Vec<String>,
    /// A graph of one's own: raw int32 PREFIX.indptr and PREFIX.indices; may be repeated.
    #[arg(long = "csr", value_name = "PREFIX")]
    files: Vec<PathBuf>,
    /// Writes the last graph as PREFIX.indptr and PREFIX.indices.
    #[arg(long, value_name = "PREFIX")]
    dump: Option<PathBuf>,
    /// Elements kept of each row.
    #[arg(long, value_delimiter = ',', default_value = "16,32,64")]
    k: Vec<usize>,
    /// Elements of a row.
    #[arg(long, default_value_t = 256)]
    width: usize,
    /// topk, forward, backward, backward-atomic or dense; may be repeated.
    #[arg(long = "method", value_enum, value_delimiter = ',', default_values_t = Method::ALL)]
    methods: Vec<Method>,
    /// Seed of synthetic graphs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Appends one JSON line for each graph, k and method.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// Compression of dense rows.
    Topk,
    /// The product with compressed rows.
    Forward,
    /// Its gradient.
    Backward,
    /// Its gradient by atomics, not deterministic.
    BackwardAtomic,
    /// The product with dense rows.
    Dense,
}

impl Method {
    const ALL: [Self; 5] = [
        Self::Topk,
        Self::Forward,
        Self::Backward,
        Self::BackwardAtomic,
        Self::Dense,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Topk => "topk",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::BackwardAtomic => "backward-atomic",
            Self::Dense => "dense",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// One line of a record of `aggregate`.
#[derive(Serialize)]
struct AggregateRecord {
    bench: &'static str,
    /// The graph, and k where rows are compressed.
    case: String,
    backend: String,
    device: String,
    dtype: &'static str,
    method: &'static str,
    /// `synthetic` or `data`.
    dist: &'static str,
    nodes: usize,
    edges: usize,
    width: usize,
    /// Entries of the longest row.
    longest: usize,
    ms: f64,
    first_ms: f64,
    /// Every buffer read and written once, at the rate of a copy.
    floor_ms: f64,
    /// What is read where nothing is read twice from a cache, in 10^9 bytes: for each entry its column and a row.
    gathered_gb: f64,
    copy_gbps: f64,
    /// Rows that were compared with the oracle.
    checked: usize,
}

/// Runs every graph with every k and method.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let Some(client) = backend.client.clone() else {
        bail!("{}: the kernels run on devices", arguments.backend);
    };
    let copy_gbps = copy::rate(&client, copy::elements(&backend))?;
    println!(
        "{} ({}): copy {copy_gbps:.0} GB/s",
        arguments.backend, backend.label
    );
    let bench = Bench {
        backend,
        client,
        arguments,
        copy_gbps,
    };
    for name in &arguments.graphs {
        let synthetic: Synthetic = name.parse()?;
        let mut graph = None;
        let ms = wall_clock(|| {
            graph = Some(synthetic.graph(arguments.seed));
            Ok(())
        })?;
        let graph = graph.expect("made");
        println!("{name} (synthetic): made in {:.1} s", ms / 1e3);
        bench.graph(name, &graph, true)?;
    }
    for prefix in &arguments.files {
        let graph = Graph::read(prefix)?;
        bench.graph(&prefix.display().to_string(), &graph, false)?;
    }
    Ok(())
}

/// Where and how the cases run.
struct Bench<'a> {
    backend: Backend,
    client: Client,
    arguments: &'a Arguments,
    copy_gbps: f64,
}

/// A graph on the device, and the matrices.
struct Problem<'a> {
    name: &'a str,
    graph: &'a Graph,
    synthetic: bool,
    matrix: OnDevice,
    /// The transpose, where it is another.
    turned: Option<OnDevice>,
    checked: Checked<'a>,
    x: Handle,
    upstream: Handle,
    longest: usize,
}

impl Bench<'_> {
    fn graph(&self, name: &str, graph: &Graph, synthetic: bool) -> anyhow::Result<()> {
        if let Some(prefix) = &self.arguments.dump {
            graph.write(prefix)?;
        }
        if self.arguments.methods.is_empty() {
            return Ok(());
        }
        let client = &self.client;
        let f32 = f32::elem_type_native();
        let transpose = (!synthetic).then(|| graph.transpose());
        let elements = graph.nodes() * self.arguments.width;
        let problem = Problem {
            name,
            graph,
            synthetic,
            matrix: OnDevice::new(client, graph)?,
            turned: transpose
                .as_ref()
                .map(|turned| OnDevice::new(client, turned))
                .transpose()?,
            checked: Checked::new(
                graph,
                transpose.as_ref().unwrap_or(graph),
                self.arguments.width,
            ),
            x: numbers(client, elements, FEATURES, f32),
            upstream: numbers(client, elements, UPSTREAM, f32),
            longest: graph.row(graph.longest()).len(),
        };
        if self.arguments.methods.contains(&Method::Dense) {
            self.one(&problem, Method::Dense, None)
                .with_context(|| format!("{name}, dense"))?;
        }
        for &k in &self.arguments.k {
            let sizes = [graph.nodes(), self.arguments.width, k];
            let kept = Kept::new(client, &problem.x, f32, sizes)?;
            let methods = self.arguments.methods.iter();
            for &method in methods.filter(|&&method| method != Method::Dense) {
                self.one(&problem, method, Some(&kept))
                    .with_context(|| format!("{name}, k={k}, {method}"))?;
            }
        }
        Ok(())
    }

    fn one(&self, problem: &Problem, method: Method, kept: Option<&Kept>) -> anyhow::Result<()> {
        let client = &self.client;
        let (nodes, edges) = (problem.graph.nodes(), problem.graph.indices.len());
        let width = self.arguments.width;
        let f32 = f32::elem_type_native();
        let turned = problem.turned.as_ref().unwrap_or(&problem.matrix);
        let (own, turned) = (problem.matrix.operand(), turned.operand());
        let compressed = kept.map(Kept::compressed);
        let members = || compressed.expect("only dense rows are without");
        let run = || -> anyhow::Result<Handle> {
            Ok(match method {
                Method::Topk => {
                    let sizes = [nodes, width, members().k];
                    let kept = Kept::new(client, &problem.x, f32, sizes)?;
                    kept.compressed().values.clone()
                }
                Method::Forward => aggregate::spmm_compressed(client, &own, &members(), None)?,
                Method::Backward => {
                    aggregate::gradient(client, &turned, &problem.upstream, &members())?
                }
                Method::BackwardAtomic => {
                    aggregate::gradient_atomic(client, &own, &problem.upstream, &members())?
                }
                Method::Dense => aggregate::spmm(client, &own, &problem.x, f32, width)?,
            })
        };
        let mut output = None;
        let first_ms = wall_clock(|| {
            output = Some(run()?);
            Ok(cubecl::future::block_on(client.sync())?)
        })?;
        let output = output.expect("it ran");
        let k = compressed.map_or(width, |x| x.k);
        let checked = match method {
            Method::Topk => 0,
            Method::Forward => problem.checked.forward(client, &output, k)?,
            Method::Dense => problem.checked.forward(client, &output, width)?,
            Method::Backward | Method::BackwardAtomic => {
                problem.checked.backward(client, &output, k)?
            }
        };
        drop(output);
        let ms = measure(client, || drop(run().expect("it ran before")))?;
        let row = kept.map_or(4 * width, Kept::row_bytes);
        let dense = 4.0 * (nodes * width) as f64;
        let pattern = 4.0 * (edges + nodes) as f64;
        // Dense rows are read or written but for the product with dense ones, which does both.
        let once = pattern + dense + (nodes * row) as f64;
        let once = if method == Method::Topk {
            once - pattern
        } else {
            once
        };
        let record = AggregateRecord {
            bench: "aggregate",
            case: match compressed {
                Some(x) => format!("{} k={}", problem.name, x.k),
                None => problem.name.into(),
            },
            backend: self.arguments.backend.to_string(),
            device: self.backend.label.clone(),
            dtype: "f32",
            method: method.name(),
            dist: if problem.synthetic {
                "synthetic"
            } else {
                "data"
            },
            nodes,
            edges,
            width,
            longest: problem.longest,
            ms,
            first_ms,
            floor_ms: once / self.copy_gbps / 1e6,
            gathered_gb: match method {
                Method::Topk => dense / 1e9,
                _ => (edges * (row + 4)) as f64 / 1e9,
            },
            copy_gbps: self.copy_gbps,
            checked,
        };
        println!(
            "{} {}: {ms:.3} ms, {:.2} x floor ({:.3} ms), {:.0} GB/s gathered, first call {first_ms:.0} ms, {checked} rows checked",
            record.case,
            record.method,
            ms / record.floor_ms,
            record.floor_ms,
            record.gathered_gb / ms * 1e3,
        );
        if let Some(path) = &self.arguments.json {
            record::append(path, &record)?;
        }
        Ok(())
    }
}
