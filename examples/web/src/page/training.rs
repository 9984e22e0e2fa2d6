//! ReLU and MaxK networks, trained side by side.

use burn::{
    config::Config,
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Device, Tensor, TensorData},
};
use js_sys::{Function, Promise};
use sparsek_gnn::{
    datasets::{
        NodeDataset,
        karate::karate_club,
        sbm::{SbmConfig, block_model},
    },
    nn::{
        Activation, Architecture, MaxKModel, MaxKModelConfig, ModelError, NodeModel,
        NodeModelConfig,
    },
    train::{Epochs, TrainConfig, Trainer},
};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::{
    devices::{flex, webgpu},
    floats, now,
};
use crate::compare::difference;

/// Epochs that Flex trains too.
const CHECKED: usize = 10;
/// Epochs between predictions of all nodes.
const SHOWN: usize = 4;
/// Largest differences that count as rounding: losses of the checked epochs, which training
/// amplifies, and scores.
const TOLERANCES: [f32; 2] = [1e-2, 1e-3];
const SEED: u64 = 1;

/// A graph to draw.
#[wasm_bindgen(getter_with_clone)]
pub struct Network {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of classes.
    pub classes: usize,
    /// Pairs of nodes, each edge once.
    pub edges: Vec<u32>,
    /// Class of each node.
    pub labels: Vec<u32>,
    /// Nodes that are trained on.
    pub train: Vec<u32>,
}

/// A model after an epoch.
#[wasm_bindgen(getter_with_clone)]
pub struct Step {
    /// 0: ReLU, 1: MaxK.
    pub model: usize,
    /// From 1.
    pub epoch: usize,
    /// Mean loss of training nodes after the epoch.
    pub loss: f64,
    /// Accuracy on training nodes.
    pub train: f64,
    /// Accuracy on test nodes.
    pub test: f64,
    /// Milliseconds.
    pub ms: f64,
    /// Predicted classes; empty in most epochs.
    pub predictions: Vec<u32>,
}

/// What Flex says about the training.
#[wasm_bindgen]
pub struct Checked {
    /// Epochs that Flex trained too.
    pub epochs: usize,
    /// Largest difference of their losses.
    pub losses: f32,
    /// Largest difference of the trained models' scores, computed by both.
    pub scores: f32,
    /// Whether both are rounding.
    pub equal: bool,
}

/// `karate` or `blocks`.
#[wasm_bindgen]
pub fn network(name: &str) -> Result<Network, JsError> {
    let data = dataset(name)?;
    let graph = data.graph();
    let edges = (0..graph.nodes()).flat_map(|node| {
        let lower = graph.neighbors(node).iter().filter(move |&&other| (other as usize) < node);
        lower.flat_map(move |&other| [other, node as u32])
    });
    Ok(Network {
        nodes: data.nodes(),
        classes: data.classes(),
        edges: edges.collect(),
        labels: data.labels().classes().unwrap_or_default().to_vec(),
        train: data.train().to_vec(),
    })
}

/// Trains both models of `width` for `epochs` epochs. After each epoch `progress` takes a [`Step`]
/// and returns a promise, true to stop.
#[wasm_bindgen]
pub async fn train(
    name: &str,
    width: usize,
    k: usize,
    epochs: usize,
    progress: Function,
) -> Result<Checked, JsError> {
    let data = dataset(name)?;
    let config = TrainConfig::new().with_lr(0.01).with_seed(SEED);
    let model = |activation| FromFlex {
        model: MaxKModelConfig::new(
            Architecture::Sage,
            data.feature_width(),
            width,
            data.classes(),
        )
        .with_layers(2)
        .with_activation(activation)
        .with_dropout(0.0),
    };
    let models = [model(Activation::Relu), model(Activation::maxk(k))];
    let gpu = webgpu();
    let device = gpu.clone().unwrap_or_else(flex);
    let start = |model, device: &Device| Trainer::new(&config, model, &data)?.start(device);
    let mut running = Vec::new();
    for model in &models {
        running.push((start(model, &device)?, start(model, &flex())?));
    }
    let features = TensorData::new(data.features().to_vec(), [data.nodes(), data.feature_width()]);
    let mut losses = 0f32;
    let mut done = 0;
    'epochs: for epoch in 1..=epochs {
        for (at, (run, on_flex)) in running.iter_mut().enumerate() {
            let begin = now();
            let loss = floats(run.step()).await?;
            let found = run.evaluate_async().await?;
            let ms = now() - begin;
            if gpu.is_some() && epoch <= CHECKED {
                losses = losses.max(difference(&loss, &floats(on_flex.step()).await?));
                done = epoch;
            }
            let predictions = match epoch % SHOWN == 0 || epoch == 1 || epoch == epochs {
                true => {
                    let scores = scores(&run.model().valid(), &data, &features, &device);
                    classes(&floats(scores).await?, data.classes())
                }
                false => Vec::new(),
            };
            let step = Step {
                model: at,
                epoch,
                loss: found.loss,
                train: found.train,
                test: found.test,
                ms,
                predictions,
            };
            if shown(&progress, step).await? {
                break 'epochs;
            }
        }
    }
    let mut score = 0f32;
    if gpu.is_some() {
        for (run, on_flex) in &running {
            let trained = run.model().valid();
            let copy = copied(&trained, on_flex).await?;
            let expected = floats(scores(&copy, &data, &features, &flex())).await?;
            let found = floats(scores(&trained, &data, &features, &device)).await?;
            score = score.max(difference(&found, &expected));
        }
    }
    let equal = losses <= TOLERANCES[0] && score <= TOLERANCES[1];
    Ok(Checked { epochs: done, losses, scores: score, equal })
}

fn dataset(name: &str) -> Result<NodeDataset, JsError> {
    match name {
        "karate" => Ok(karate_club()),
        "blocks" => {
            Ok(block_model(&SbmConfig::new(400).with_blocks(4).with_degree(10.0).with_seed(2))?)
        }
        _ => Err(JsError::new(&format!("no dataset is called {name}"))),
    }
}

/// Whether to stop.
async fn shown(progress: &Function, step: Step) -> Result<bool, JsError> {
    let failed = |error: JsValue| JsError::new(&format!("{error:?}"));
    let answer = progress.call1(&JsValue::NULL, &step.into()).map_err(failed)?;
    let answer = JsFuture::from(Promise::resolve(&answer)).await.map_err(failed)?;
    Ok(answer.is_truthy())
}

fn scores(
    model: &MaxKModel,
    data: &NodeDataset,
    features: &TensorData,
    device: &Device,
) -> Tensor<2> {
    model.forward(data.graph(), Tensor::from_data(features.clone(), device))
}

/// The class of the greatest score of each node.
fn classes(scores: &[f32], classes: usize) -> Vec<u32> {
    let greatest = |row: &[f32]| {
        let better = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
        (1..row.len()).fold(0, better) as u32
    };
    scores.chunks_exact(classes).map(greatest).collect()
}

/// A model that Flex initializes, so that all devices begin with the same parameters.
#[derive(Config, Debug, PartialEq)]
struct FromFlex {
    model: MaxKModelConfig,
}

impl NodeModelConfig for FromFlex {
    type Model = MaxKModel;

    fn validate(&self) -> Result<(), ModelError> {
        self.model.validate()
    }

    fn init(&self, device: &Device) -> Result<MaxKModel, ModelError> {
        let on_flex = flex().autodiff();
        on_flex.seed(SEED);
        let model = self.model.init(&on_flex)?;
        // Parameters are drawn when first visited, here.
        let mut parameters = Parameters(Vec::new());
        model.visit(&mut parameters);
        Ok(model.fork(device))
    }

    fn input_width(&self) -> usize {
        self.model.input_width()
    }

    fn classes(&self) -> usize {
        self.model.classes()
    }
}

/// The parameters of `model` in a copy of Flex's.
async fn copied(model: &MaxKModel, on_flex: &Epochs<'_, FromFlex>) -> Result<MaxKModel, JsError> {
    let mut parameters = Parameters(Vec::new());
    model.visit(&mut parameters);
    let mut read = Vec::new();
    for parameter in parameters.0 {
        read.push(parameter.into_data_async().await?);
    }
    Ok(on_flex.model().valid().map(&mut Replacement(read.into_iter())))
}

/// In the order of the module.
struct Parameters(Vec<Tensor<1>>);

impl ModuleVisitor for Parameters {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.val().reshape([-1]));
    }
}

struct Replacement(std::vec::IntoIter<TensorData>);

impl ModuleMapper for Replacement {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let values = self.0.next().expect("equal models have equally many parameters");
        param.map(|before| Tensor::<1>::from_data(values, &before.device()).reshape(before.dims()))
    }
}
