//! Sorting and model layers on tensors: time of one of many queued calls.

use std::{collections::HashMap, fmt, path::PathBuf, str::FromStr};

use anyhow::{Context, bail, ensure};
use burn::{
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Distribution as Random, Tensor, TensorData},
};
use serde::{Deserialize, Serialize};
use sparsek::{
    dense::linear_compressed,
    nn::{SamplerConfig, TopkRouterConfig, TopkSaeConfig},
    sparse::sparse_topk,
    topk::{Method, TopkOptions, sort},
};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Distribution,
    oracle::topk::select,
};

use crate::{
    case::size,
    record,
    timing::{Ready, wall_clock},
    topk::seeded_rows,
};

const CASES: [&str; 8] = [
    "sort:1x2**20",
    "sort:4096x4096",
    "sort:16x65536",
    "router:16384x256x8",
    "sampler:64x151936x50",
    "sae:4096x768x24576x32",
    "decoder:4096x768x32768x32",
    "dense-decoder:4096x768x32768x32",
];
const CHECKED_ROWS: usize = 64;
/// Rows of products that the host computes too.
const RECONSTRUCTED: usize = 4;

/// Checks and times sorting, a router, a sampler, a training step of a sparse autoencoder, and its
/// decoder with gradients, from compressed and from dense rows, f32.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// sort:ROWSxCOLS, router:TOKENSxEXPERTSxK, sampler:ROWSxTOKENSxK, or sae,
    /// decoder or dense-decoder:ROWSxWIDTHxLATENTSxK; may be repeated.
    #[arg(long = "case", default_values = CASES)]
    cases: Vec<LayerCase>,
    /// PyTorch's times of the same cases on the same card: JSON lines of `case` and `ms`.
    #[arg(long, value_name = "FILE")]
    torch: Option<PathBuf>,
    /// Appends one JSON line for each case.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
pub struct LayerRecord {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    pub ms: f64,
    pub spread: f64,
    pub first_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch_peak_bytes: Option<u64>,
    pub checked: usize,
}

#[derive(Deserialize)]
struct Peer {
    case: String,
    ms: f64,
}

#[derive(Clone, Debug)]
enum Layer {
    Sort { rows: usize, cols: usize },
    Router { tokens: usize, experts: usize, k: usize },
    Sampler { rows: usize, tokens: usize, k: usize },
    Sae { rows: usize, width: usize, latents: usize, k: usize },
    Decoder { rows: usize, width: usize, latents: usize, k: usize, dense: bool },
}

#[derive(Clone, Debug)]
struct LayerCase {
    text: String,
    layer: Layer,
}

impl FromStr for LayerCase {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, sizes) = text.split_once(':').with_context(|| format!("{text}: no layer"))?;
        let sizes: Vec<usize> = sizes.split('x').map(size).collect::<anyhow::Result<_>>()?;
        let layer = match (name, &sizes[..]) {
            ("sort", &[rows, cols]) => Layer::Sort { rows, cols },
            ("router", &[tokens, experts, k]) => Layer::Router { tokens, experts, k },
            ("sampler", &[rows, tokens, k]) => Layer::Sampler { rows, tokens, k },
            ("sae", &[rows, width, latents, k]) => Layer::Sae { rows, width, latents, k },
            ("decoder" | "dense-decoder", &[rows, width, latents, k]) => {
                Layer::Decoder { rows, width, latents, k, dense: name == "dense-decoder" }
            }
            _ => bail!("{text}: unknown layer, or another number of sizes"),
        };
        Ok(Self { text: text.into(), layer })
    }
}

impl fmt::Display for LayerCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let peers = record::read_torch::<Peer>(arguments.torch.as_deref())?;
    let peers: HashMap<String, f64> = peers.into_iter().map(|peer| (peer.case, peer.ms)).collect();
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    for case in &arguments.cases {
        let times = case.ready(&backend).with_context(|| case.to_string())?.measure()?;
        let record = LayerRecord {
            bench: "layers".into(),
            case: case.text.clone(),
            backend: arguments.backend.to_string(),
            device: backend.label.clone(),
            ms: times.median.ms,
            spread: times.median.spread,
            first_ms: times.first_ms,
            torch_ms: peers.get(&case.text).copied(),
            peak_bytes: None,
            torch_peak_bytes: None,
            checked: times.checked,
        };
        let peer = record.torch_ms.map(|ms| format!(", PyTorch {ms:.4} ms"));
        say!(
            "{case}: {:.4} ms{}, first call {:.0} ms, {} rows checked",
            record.ms,
            peer.unwrap_or_default(),
            record.first_ms,
            record.checked
        );
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
    }
    Ok(())
}

impl LayerCase {
    fn ready(&self, backend: &Backend) -> anyhow::Result<Ready<'static>> {
        let device = &backend.device;
        match self.layer {
            Layer::Sort { rows, cols } => sorted(device, rows, cols),
            Layer::Router { tokens, experts, k } => routed(device, tokens, experts, k),
            Layer::Sampler { rows, tokens, k } => sampled(device, rows, tokens, k),
            Layer::Sae { rows, width, latents, k } => trained(device, rows, [width, latents], k),
            Layer::Decoder { rows, width, latents, k, dense } => {
                decoded(device, rows, [width, latents], k, dense)
            }
        }
    }
}

/// Normal values, on the host and on the device.
fn normal_rows(device: &Device, rows: usize, cols: usize) -> (Vec<f32>, Tensor<2>) {
    let input = seeded_rows::<f32>(rows, cols, Distribution::Normal, 0);
    let x = Tensor::from_data(TensorData::new(input.clone(), [rows, cols]), device);
    (input, x)
}

/// Times the first call, checks the second, then leaves the operation to be timed.
fn ready<O>(
    device: &Device,
    mut run: impl FnMut() -> O + 'static,
    check: impl FnOnce(O) -> anyhow::Result<usize>,
) -> anyhow::Result<Ready<'static>> {
    device.sync()?;
    let first_ms = wall_clock(|| {
        drop(run());
        Ok(device.sync()?)
    })?;
    let checked = check(run())?;
    Ok(Ready::ahead(device, first_ms, checked, move || drop(run())))
}

/// Ascending, values and indices.
fn sorted(device: &Device, rows: usize, cols: usize) -> anyhow::Result<Ready<'static>> {
    let (input, x) = normal_rows(device, rows, cols);
    let run = move || sort(x.clone(), 1, false);
    ready(device, run, |(values, indices)| {
        let values: Vec<f32> = values.into_data().iter::<f32>().collect();
        let indices: Vec<usize> = indices.into_data().iter::<i64>().map(|i| i as usize).collect();
        let options = TopkOptions::new(cols).with_largest(false).with_sorted(true);
        let checked = rows.min(CHECKED_ROWS);
        for row in 0..checked {
            let range = row * cols..(row + 1) * cols;
            let wanted = select(&input[range.clone()], &options);
            let found = &indices[range.clone()];
            let wrong = (0..cols).find(|&place| found[place] != wanted[place]);
            if let Some(place) = wrong {
                bail!("row {row}: index {} instead of {} at {place}", found[place], wanted[place]);
            }
            let moved = wanted.iter().map(|&place| input[range.start + place]);
            ensure!(values[range.clone()].iter().copied().eq(moved), "row {row}: other values");
        }
        Ok(checked)
    })
}

/// Experts, weights and losses of logits.
fn routed(
    device: &Device,
    tokens: usize,
    experts: usize,
    k: usize,
) -> anyhow::Result<Ready<'static>> {
    let (input, logits) = normal_rows(device, tokens, experts);
    let router = TopkRouterConfig::new(1, experts, k).init(device);
    let run = move || router.route(logits.clone());
    ready(device, run, |routing| {
        let chosen: Vec<usize> =
            routing.experts.into_data().iter::<i64>().map(|expert| expert as usize).collect();
        let weights: Vec<f32> = routing.weights.into_data().iter::<f32>().collect();
        let checked = tokens.min(CHECKED_ROWS);
        for token in 0..checked {
            let row = &input[token * experts..][..experts];
            let chosen = &chosen[token * k..][..k];
            let best = select(row, &TopkOptions::new(k).with_sorted(true));
            let total: f32 = best.iter().map(|&expert| row[expert].exp()).sum();
            for ((&expert, &wanted), weight) in chosen.iter().zip(&best).zip(&weights[token * k..])
            {
                // Scores may round to equal ones.
                ensure!((row[expert] - row[wanted]).abs() < 1e-5, "token {token}: {chosen:?}");
                ensure!(
                    (weight - row[expert].exp() / total).abs() < 1e-4,
                    "token {token}: weights"
                );
            }
        }
        Ok(checked)
    })
}

/// Tokens of temperature 0.8 among the k best, with top-p 0.95.
fn sampled(
    device: &Device,
    rows: usize,
    tokens: usize,
    k: usize,
) -> anyhow::Result<Ready<'static>> {
    let (input, logits) = normal_rows(device, rows, tokens);
    let config = SamplerConfig::new().with_temperature(0.8).with_top_k(k).with_top_p(0.95);
    let sampler = config.init();
    let mut step = 0;
    let run = move || {
        step += 1;
        sampler.sample(logits.clone(), 7, step)
    };
    ready(device, run, |drawn| {
        let drawn: Vec<i64> = drawn.into_data().iter::<i64>().collect();
        ensure!(drawn.len() == rows, "{} tokens for {rows} rows", drawn.len());
        for (row, &token) in drawn.iter().enumerate() {
            let best = select(&input[row * tokens..][..tokens], &TopkOptions::new(k));
            ensure!(best.contains(&(token as usize)), "row {row}: token {token}");
        }
        Ok(rows)
    })
}

/// A step of training: forward, both losses, backward, Adam.
fn trained(
    device: &Device,
    rows: usize,
    [width, latents]: [usize; 2],
    k: usize,
) -> anyhow::Result<Ready<'static>> {
    let (input, x) = normal_rows(device, rows, width);
    let device = device.clone().autodiff();
    device.seed(1);
    let config = TopkSaeConfig::new(width, latents, k);
    let mut sae = config.init(&device);
    let decoder: Vec<f32> = sae.decoder.val().into_data().iter::<f32>().collect();
    let checked = rows.min(RECONSTRUCTED);
    let few = x.clone().narrow(0, 0, checked);
    let found = sae.forward(Tensor::from_inner(few)).loss.into_scalar::<f32>();
    let wanted = reconstruction_error(&input[..checked * width], &decoder, width, k);
    ensure!(
        (f64::from(found) / wanted - 1.0).abs() < 0.02,
        "a loss of {found} instead of {wanted}"
    );
    let x = Tensor::<2>::from_inner(x);
    let mut adam = AdamConfig::new().init();
    let mut step = move || {
        let output = sae.forward(x.clone());
        let loss = output.loss + output.auxiliary_loss / 32.0;
        let gradients = GradientsParams::from_grads(loss.clone().backward(), &sae);
        sae = adam.step(1e-4, sae.clone(), gradients);
        loss
    };
    let first: f32 = step().into_scalar();
    ready(&device, step, |loss| {
        let last: f32 = loss.into_scalar();
        ensure!(last < first, "a loss of {last} after {first}");
        Ok(checked)
    })
}

/// Product of latents and a dictionary, and gradients of both.
fn decoded(
    device: &Device,
    rows: usize,
    [width, latents]: [usize; 2],
    k: usize,
    dense: bool,
) -> anyhow::Result<Ready<'static>> {
    let (dictionary, weight) = normal_rows(device, latents, width);
    let (upstream, weights_of_loss) = normal_rows(device, rows, width);
    let device = device.clone().autodiff();
    device.seed(1);
    let scores = Tensor::random([rows, latents], Random::Normal(0.0, 1.0), &device);
    let kept = sparse_topk(scores, k, Method::Exact);
    let values: Vec<f32> = kept.values().clone().into_data().iter::<f32>().collect();
    let columns = kept.columns().clone().into_data();
    let columns: Vec<usize> = columns.iter::<i64>().map(|column| column as usize).collect();
    let dense_latents = dense.then(|| kept.to_dense().detach());
    let [weight, weights_of_loss] = [weight, weights_of_loss].map(Tensor::<2>::from_inner);
    let step = move || {
        let weight = weight.clone().detach().require_grad();
        let (y, latents) = match &dense_latents {
            Some(latents) => {
                let latents = latents.clone().detach().require_grad();
                (latents.clone().matmul(weight.clone()), latents)
            }
            None => {
                let kept = kept.clone().map(|values| values.detach().require_grad());
                (linear_compressed(&kept, weight.clone()), kept.values().clone())
            }
        };
        let gradients = (y.clone() * weights_of_loss.clone()).sum().backward();
        let gradient = |x: Tensor<2>| x.grad(&gradients).expect("a gradient");
        [y.inner(), gradient(weight), gradient(latents)]
    };
    ready(&device, step, move |results| {
        let [y, of_weight, of_latents] =
            results.map(|x| x.into_data().iter::<f32>().collect::<Vec<f32>>());
        let checked = rows.min(RECONSTRUCTED);
        // Products may round to TF32.
        let close = |found: f32, wanted: f64, scale: f64| {
            ensure!(
                (f64::from(found) - wanted).abs() < 5e-3 * scale,
                "{found} instead of {wanted}"
            );
            Ok(())
        };
        for row in 0..checked {
            let own = row * k..(row + 1) * k;
            for column in 0..width {
                let of_entry = |i: usize| {
                    f64::from(values[i]) * f64::from(dictionary[columns[i] * width + column])
                };
                let wanted: f64 = own.clone().map(of_entry).sum();
                let scale: f64 = own.clone().map(|i| of_entry(i).abs()).sum();
                close(y[row * width + column], wanted, scale)?;
            }
            for i in own {
                let of_column = |column: usize| {
                    let dictionary = dictionary[columns[i] * width + column];
                    f64::from(upstream[row * width + column]) * f64::from(dictionary)
                };
                let wanted: f64 = (0..width).map(of_column).sum();
                let scale: f64 = (0..width).map(|column| of_column(column).abs()).sum();
                let at = if dense { row * latents + columns[i] } else { i };
                close(of_latents[at], wanted, scale)?;
            }
            let latent = columns[row * k];
            for column in 0..width {
                let entries = (0..rows * k).filter(|&i| columns[i] == latent);
                let terms = entries
                    .map(|i| f64::from(values[i]) * f64::from(upstream[i / k * width + column]));
                let terms: Vec<f64> = terms.collect();
                let scale = terms.iter().map(|term| term.abs()).sum();
                close(of_weight[latent * width + column], terms.iter().sum(), scale)?;
            }
        }
        Ok(checked)
    })
}

/// Mean squared error of fresh weights: the encoder is the transposed decoder, biases are 0.
fn reconstruction_error(input: &[f32], decoder: &[f32], width: usize, k: usize) -> f64 {
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = decoder.chunks(width).map(wide).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut total = 0.0;
    for x in input.chunks(width).map(wide) {
        let scores: Vec<f64> = rows.iter().map(|row| dot(row, &x)).collect();
        let mut rest = x;
        for latent in select(&scores, &TopkOptions::new(k)) {
            let strength = scores[latent].max(0.0);
            rest.iter_mut().zip(&rows[latent]).for_each(|(x, v)| *x -= strength * v);
        }
        total += dot(&rest, &rest);
    }
    total / input.len() as f64
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("sort:3x5000")]
    #[case("router:70x16x4")]
    #[case("sampler:5x300x20")]
    #[case("sae:64x12x48x4")]
    #[case("decoder:20x12x64x2")]
    #[case("dense-decoder:20x12x64x2")]
    fn layers_are_checked(#[case] text: &str) {
        let backend = Kind::Flex.open().expect("Flex");
        let case: LayerCase = text.parse().expect("a case");
        assert!(case.ready(&backend).expect("a right result").checked > 0);
    }

    #[rstest]
    #[case("sort:3")]
    #[case("pool:3x4")]
    #[case("sort")]
    fn other_cases_are_refused(#[case] text: &str) {
        assert!(text.parse::<LayerCase>().is_err());
    }
}
