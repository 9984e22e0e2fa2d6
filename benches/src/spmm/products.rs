//! Products of a graph with dense and compressed rows, and their gradients.

use anyhow::Context;
use bytemuck::cast_slice;
use cubecl::{client::Client, prelude::*, server::Handle};
use serde::Serialize;
use sparsek::sparse::Pattern;
use sparsek_kernels::spmm::{self, ColumnBlocks, Product, column_blocks_pay};

use super::{
    check::Checked,
    graph::longest,
    operands::{FEATURES, Kept, OnDevice, UPSTREAM, numbers, row},
    types::{Bench, Method, Source},
};
use crate::{
    record,
    timing::{Median, Ready, Times},
};

#[derive(Serialize)]
struct ProductRecord {
    bench: &'static str,
    case: String,
    backend: String,
    device: String,
    dtype: &'static str,
    method: &'static str,
    dist: &'static str,
    nodes: usize,
    edges: usize,
    width: usize,
    longest: usize,
    ms: f64,
    spread: f64,
    first_ms: f64,
    /// Every buffer read or written once, at the copy rate.
    floor_ms: f64,
    /// 10^9 bytes that are read if no cache hits: for each entry its column and a row.
    gathered_gb: f64,
    copy_gbps: f64,
    checked: usize,
}

struct Products<'a> {
    bench: &'a Bench<'a>,
    client: &'a Client,
    source: &'a Source,
    problem: Problem<'a>,
}

struct Problem<'a> {
    graph: &'a Pattern,
    matrix: OnDevice,
    /// The transpose, if the graph is not symmetric.
    transposed: Option<OnDevice>,
    /// The entry of the graph behind each entry of the transpose.
    entries: Handle,
    /// The transpose in column blocks, if they pay.
    blocks: Option<ColumnBlocks>,
    checked: Checked<'a>,
    x: Handle,
    upstream: Handle,
    longest: usize,
}

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
    let matrix = OnDevice::new(client, graph)?;
    let transposed = transpose.as_ref();
    let transposed_matrix = transposed.map(|pattern| OnDevice::new(client, pattern)).transpose()?;
    let csr = transposed_matrix.as_ref().unwrap_or(&matrix).csr();
    let most = ColumnBlocks::max_columns(client);
    let blocks = column_blocks_pay([csr.rows, csr.cols, csr.nnz], most)
        .then(|| ColumnBlocks::new(client, &csr, most))
        .transpose()?;
    let products = Products {
        bench,
        client,
        source,
        problem: Problem {
            graph,
            matrix,
            transposed: transposed_matrix,
            entries: client.create_from_slice(cast_slice(&entries)),
            blocks,
            checked: Checked::new(graph, transposed.unwrap_or(graph), width),
            x: numbers(client, elements, FEATURES, f32),
            upstream: numbers(client, elements, UPSTREAM, f32),
            longest: graph.row(longest(graph)).len(),
        },
    };
    let name = &source.name;
    if methods.contains(&Method::Dense) {
        products.one(Method::Dense, None).with_context(|| format!("{name}, dense"))?;
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
        let Bench { backend, arguments, copy_gbps } = self.bench;
        let (nodes, edges) = (problem.graph.rows(), problem.graph.nnz());
        let width = arguments.width;
        let f32 = f32::elem_type_native();
        let transposed = problem.transposed.as_ref().unwrap_or(&problem.matrix);
        let (operand, transposed) = (problem.matrix.operand(), transposed.operand());
        let product = Product {
            operand,
            transposed,
            entries: &problem.entries,
            column_blocks: problem.blocks.as_ref(),
        };
        let compressed = kept.map(Kept::compressed);
        let compressed_rows = || compressed.expect("every method but `dense` has k");
        let run = || -> anyhow::Result<Handle> {
            Ok(match method {
                Method::Topk => {
                    let sizes = [nodes, width, compressed_rows().k];
                    let kept = Kept::new(client, &problem.x, f32, sizes)?;
                    kept.compressed().values.clone()
                }
                Method::Forward => {
                    spmm::spmm_compressed(client, &operand, &compressed_rows(), None)?
                }
                Method::Backward => {
                    spmm::gradient(client, &product, &problem.upstream, &compressed_rows())?
                }
                Method::BackwardTwoPass => {
                    let (product, upstream) = (&product, &problem.upstream);
                    spmm::gradient_two_pass(client, product, upstream, &compressed_rows(), None)?
                }
                Method::BackwardGathered => spmm::gradient_gathered(
                    client,
                    &transposed,
                    &problem.upstream,
                    &compressed_rows(),
                )?,
                Method::Dense => spmm::spmm(client, &operand, &problem.x, f32, width)?,
                Method::Epoch | Method::EpochRelu => unreachable!("not a product"),
            })
        };
        let k = compressed.map_or(width, |x| x.k);
        let ready = Ready::kernels(client, run, |output| {
            let output = &output;
            let found = |width| move |at| row(client, output, at, width);
            match method {
                Method::Topk => problem.checked.compressed(found(k), k),
                Method::Forward | Method::Dense => problem.checked.forward(found(width), k),
                _ => problem.checked.backward(found(k), k),
            }
        })?;
        let Times { median: Median { ms, spread }, first_ms, checked } = ready.measure()?;
        let row_bytes = kept.map_or(4 * width, Kept::row_bytes);
        let dense = 4.0 * (nodes * width) as f64;
        let pattern = 4.0 * (edges + nodes) as f64;
        // `dense` reads and writes dense rows; other methods do one of the two.
        let once = pattern + dense + (nodes * row_bytes) as f64;
        let once = if method == Method::Topk { once - pattern } else { once };
        let record = ProductRecord {
            bench: "spmm",
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
            spread,
            first_ms,
            floor_ms: once / copy_gbps / 1e6,
            gathered_gb: match method {
                Method::Topk => dense / 1e9,
                _ => (edges * (row_bytes + 4)) as f64 / 1e9,
            },
            copy_gbps: *copy_gbps,
            checked,
        };
        say!(
            "{} {}: {ms:.3} ms, {:.2} x floor ({:.3} ms), {:.0} GB/s gathered, first call \
             {first_ms:.0} ms, {checked} rows checked",
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
