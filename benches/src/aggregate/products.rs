//! Products of a graph with dense and with compressed rows, and their gradients.

use anyhow::Context;
use bytemuck::cast_slice;
use cubecl::{client::Client, prelude::*, server::Handle};
use serde::Serialize;
use sparsek::sparse::Pattern;
use sparsek_kernels::aggregate::{self, Product, Stretches};

use super::{
    Bench, Method, Source,
    check::Checked,
    device::{Kept, OnDevice, numbers},
    graph::longest,
};
use crate::{
    record,
    timing::{measure, wall_clock},
};

/// Seeds of the matrices.
pub const FEATURES: u32 = 17;
pub const UPSTREAM: u32 = 23;

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

/// The cases of a graph, and where they run.
struct Products<'a> {
    bench: &'a Bench<'a>,
    client: &'a Client,
    source: &'a Source,
    problem: Problem<'a>,
}

/// A graph on the device, and the matrices.
struct Problem<'a> {
    graph: &'a Pattern,
    matrix: OnDevice,
    /// The transpose, where it is another.
    turned: Option<OnDevice>,
    /// Which entry each of the transpose is.
    entries: Handle,
    /// The entries of the transpose by stretches, where that pays.
    stretches: Option<Stretches>,
    checked: Checked<'a>,
    x: Handle,
    upstream: Handle,
    longest: usize,
}

/// Runs the products that are asked for, with every k.
pub fn run(bench: &Bench, client: &Client, source: &Source) -> anyhow::Result<()> {
    let mut methods = bench.arguments.methods.clone();
    methods.retain(|method| Method::PRODUCTS.contains(method));
    if methods.is_empty() {
        return Ok(());
    }
    let f32 = f32::elem_type_native();
    let (graph, width) = (source.graph.pattern(), bench.arguments.width);
    let (transpose, entries) = graph.transpose();
    let transpose = (source.dist != "synthetic").then_some(transpose);
    let elements = graph.rows() * width;
    let turned = transpose.as_ref();
    let matrix = OnDevice::new(client, graph)?;
    let turned_matrix = turned
        .map(|turned| OnDevice::new(client, turned))
        .transpose()?;
    let csr = turned_matrix.as_ref().unwrap_or(&matrix).csr();
    let most = Stretches::most_columns(client);
    let stretches = Stretches::pays([csr.rows, csr.cols, csr.nnz], most)
        .then(|| Stretches::new(client, &csr, most))
        .transpose()?;
    let products = Products {
        bench,
        client,
        source,
        problem: Problem {
            graph,
            matrix,
            turned: turned_matrix,
            entries: client.create_from_slice(cast_slice(&entries)),
            stretches,
            checked: Checked::new(graph, turned.unwrap_or(graph), width),
            x: numbers(client, elements, FEATURES, f32),
            upstream: numbers(client, elements, UPSTREAM, f32),
            longest: graph.row(longest(graph)).len(),
        },
    };
    let name = &source.name;
    if methods.contains(&Method::Dense) {
        products
            .one(Method::Dense, None)
            .with_context(|| format!("{name}, dense"))?;
    }
    for &k in &bench.arguments.k {
        let kept = Kept::new(client, &products.problem.x, f32, [graph.rows(), width, k])?;
        for &method in methods.iter().filter(|&&method| method != Method::Dense) {
            products
                .one(method, Some(&kept))
                .with_context(|| format!("{name}, k={k}, {method}"))?;
        }
    }
    Ok(())
}

impl Products<'_> {
    fn one(&self, method: Method, kept: Option<&Kept>) -> anyhow::Result<()> {
        let (client, problem, source) = (self.client, &self.problem, self.source);
        let Bench {
            backend,
            arguments,
            copy_gbps,
        } = self.bench;
        let (nodes, edges) = (problem.graph.rows(), problem.graph.nnz());
        let width = arguments.width;
        let f32 = f32::elem_type_native();
        let turned = problem.turned.as_ref().unwrap_or(&problem.matrix);
        let (own, turned) = (problem.matrix.operand(), turned.operand());
        let product = Product {
            operand: own,
            turned,
            entries: &problem.entries,
            stretches: problem.stretches.as_ref(),
        };
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
                    aggregate::gradient(client, &product, &problem.upstream, &members())?
                }
                Method::BackwardTerms => {
                    let (product, upstream) = (&product, &problem.upstream);
                    aggregate::gradient_terms(client, product, upstream, &members(), None)?
                }
                Method::BackwardGathered => {
                    aggregate::gradient_gathered(client, &turned, &problem.upstream, &members())?
                }
                Method::BackwardAtomic => {
                    aggregate::gradient_atomic(client, &own, &problem.upstream, &members())?
                }
                Method::Dense => aggregate::spmm(client, &own, &problem.x, f32, width)?,
                Method::Epoch | Method::EpochAtomic | Method::EpochRelu => {
                    unreachable!("no product")
                }
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
            Method::Topk | Method::Epoch | Method::EpochAtomic | Method::EpochRelu => 0,
            Method::Forward => problem.checked.forward(client, &output, k)?,
            Method::Dense => problem.checked.forward(client, &output, width)?,
            Method::Backward
            | Method::BackwardTerms
            | Method::BackwardGathered
            | Method::BackwardAtomic => problem.checked.backward(client, &output, k)?,
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
                Some(x) => format!("{} k={}", source.name, x.k),
                None => source.name.clone(),
            },
            backend: arguments.backend.to_string(),
            device: backend.label.clone(),
            dtype: "f32",
            method: method.name(),
            dist: source.dist,
            nodes,
            edges,
            width,
            longest: problem.longest,
            ms,
            first_ms,
            floor_ms: once / copy_gbps / 1e6,
            gathered_gb: match method {
                Method::Topk => dense / 1e9,
                _ => (edges * (row + 4)) as f64 / 1e9,
            },
            copy_gbps: *copy_gbps,
            checked,
        };
        say!(
            "{} {}: {ms:.3} ms, {:.2} x floor ({:.3} ms), {:.0} GB/s gathered, first call {first_ms:.0} ms, {checked} rows checked",
            record.case,
            record.method,
            ms / record.floor_ms,
            record.floor_ms,
            record.gathered_gb / ms * 1e3,
        );
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
        Ok(())
    }
}
