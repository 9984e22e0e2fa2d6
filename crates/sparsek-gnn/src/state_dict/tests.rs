//! Against tests/pyg/models, which tests/pyg/models.py writes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use burn::{
    module::Module,
    nn::{BatchNorm, BatchNormConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig},
    optim::GradientsParams,
    tensor::{DType, Device, Tensor, TensorData, activation::relu},
};
use rstest::{fixture, rstest};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::Value;

use super::*;
use crate::{
    fixtures::{Alone, alone, device},
    graph::Graph,
    nn::{
        Activation, AppnpConv, AppnpConvConfig, ChebConv, ChebConvConfig, ConvKind, GatConvConfig,
        GatV2Conv, GatV2ConvConfig, GcnConv, GcnConvConfig, GinConv, GinConvConfig, GinMlpConfig,
        GraphConv, GraphConvConfig, GraphNorm, GraphNormConfig, NodeModel, NodeModelConfig,
        PlainModel, PlainModelConfig, PnaConvConfig, RgcnConvConfig, SageConv, SageConvConfig,
        Set2Set, Set2SetConfig, SgConv, SgConvConfig, TopkPooling, TopkPoolingConfig,
        TransformerConv, TransformerConvConfig,
    },
};

const PYG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pyg");
const WIDTH: usize = 4;
const HIDDEN: usize = 6;
const OUT: usize = 3;
const HEADS: usize = 2;

static FILE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(&fs::read_to_string(Path::new(PYG).join("models.json")).unwrap()).unwrap()
});

fn fixture_file(name: &str) -> PathBuf {
    Path::new(PYG).join("models").join(name)
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

fn matrix(value: &Value, width: usize, device: &Device) -> Tensor<2> {
    let numbers = numbers(value);
    let shape = [numbers.len() / width, width];
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

fn edges() -> Vec<(u32, u32)> {
    let pairs = FILE["edges"].as_array().unwrap().iter().map(numbers);
    pairs.map(|pair| (pair[0] as u32, pair[1] as u32)).collect()
}

fn graph(edges: impl IntoIterator<Item = (u32, u32)>) -> Graph {
    Graph::from_edges(FILE["nodes"].as_u64().unwrap() as usize, edges).unwrap()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    let error = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(error < tolerance, "differs by {error}: {found:?} is not {expected:?}");
}

/// Kept where `SPARSEK_PYG_SAVED` names it, for `models.py --check`.
struct Folder {
    path: PathBuf,
    kept: bool,
}

#[fixture]
fn folder() -> Folder {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("sparsek-state-dict-{}-{count}", std::process::id());
    let kept = std::env::var_os("SPARSEK_PYG_SAVED").map(PathBuf::from);
    let folder = Folder {
        kept: kept.is_some(),
        path: kept.unwrap_or_else(|| std::env::temp_dir().join(name)),
    };
    fs::create_dir_all(&folder.path).unwrap();
    folder
}

impl Folder {
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn write(&self, name: &str, tensors: &[(&str, Dtype, &[usize], &[u8])]) -> PathBuf {
        let views = tensors.iter().map(|&(name, dtype, shape, bytes)| {
            (name, TensorView::new(dtype, shape.to_vec(), bytes).unwrap())
        });
        let path = self.file(name);
        fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn plain(conv: ConvKind) -> PlainModelConfig {
    PlainModelConfig::new(conv, WIDTH, HIDDEN, OUT)
}

fn plain_of(name: &str) -> PlainModelConfig {
    match name {
        "gcn" => plain(ConvKind::Gcn),
        "sage" => plain(ConvKind::Sage),
        "gat" => PlainModelConfig::new(ConvKind::Gat, WIDTH, HIDDEN / HEADS, OUT)
            .with_heads(HEADS)
            .with_output_heads(HEADS)
            .with_activation(Activation::Elu),
        "gin" => plain(ConvKind::Gin).with_last_hidden(Some(OUT)),
        "gin-wide" => PlainModelConfig::new(ConvKind::Gin, WIDTH, HIDDEN, HIDDEN).with_layers(3),
        _ => panic!("no model {name}"),
    }
}

fn check<M: Module>(
    name: &str,
    folder: &Folder,
    make: impl Fn() -> M,
    rename: fn(&str) -> String,
    forward: impl Fn(&M) -> Option<Vec<f32>>,
) {
    for extension in ["pt", "safetensors"] {
        let file = fixture_file(&format!("{name}.{extension}"));
        let model = load_state_dict(make(), &file).unwrap();
        if let Some(y) = forward(&model) {
            assert_close(&y, &numbers(&FILE["outputs"][name]), 1e-5);
        }
        let saved = folder.file(&format!("{name}.safetensors"));
        save_state_dict_with(&model, &saved, rename).unwrap();
        assert_same(&saved, &fixture_file(&format!("{name}.safetensors")));
        let again = load_state_dict_with(make(), &saved, rename).unwrap();
        assert_eq!(forward(&again), forward(&model));
    }
}

fn assert_same(found: &Path, expected: &Path) {
    let [found, expected] = [found, expected].map(|path| fs::read(path).unwrap());
    let sorted = |bytes| {
        let mut tensors = SafeTensors::deserialize(bytes).unwrap().tensors();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors
    };
    let (found, expected) = (sorted(&found), sorted(&expected));
    let names = |tensors: &[(String, TensorView<'_>)]| -> Vec<String> {
        tensors.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&found), names(&expected));
    for ((name, found), (_, expected)) in found.iter().zip(&expected) {
        assert_eq!(found.shape(), expected.shape(), "{name}");
        assert_eq!(found.dtype(), expected.dtype(), "{name}");
        assert!(found.data() == expected.data(), "{name}");
    }
}

#[rstest]
fn models_of_pyg(
    _alone: Alone,
    device: Device,
    folder: Folder,
    #[values("gcn", "sage", "gat", "gin", "gin-wide")] name: &str,
) {
    let make = || plain_of(name).init(&device).unwrap();
    check(name, &folder, make, str::to_string, |model: &PlainModel| {
        Some(values(model.forward(&graph(edges()), matrix(&FILE["x"], WIDTH, &device))))
    });
}

#[derive(Module, Debug)]
struct Mixed {
    lin_in: Linear,
    norm: GraphNorm,
    attention: GatV2Conv,
    shared: GatV2Conv,
    transformer: TransformerConv,
    graph: GraphConv,
    sage: SageConv,
    layer_norm: LayerNorm,
    gins: Vec<GinConv>,
    cheb: ChebConv,
    batch_norm: BatchNorm,
    sg: SgConv,
    appnp: AppnpConv,
}

impl Mixed {
    fn new(device: &Device) -> Self {
        let half = HIDDEN / HEADS;
        let mlp = GinConvConfig::new().with_mlp(Some(GinMlpConfig::new(HIDDEN, 5, HIDDEN)));
        let sequential = mlp.clone().with_train_eps(true);
        let shared = GatV2ConvConfig::new(HIDDEN, HIDDEN).with_heads(HEADS).with_concat(false);
        Self {
            lin_in: LinearConfig::new(WIDTH, HIDDEN).init(device),
            norm: GraphNormConfig::new(HIDDEN).init(device),
            attention: GatV2ConvConfig::new(HIDDEN, half).with_heads(HEADS).init(device),
            shared: shared.with_share_weights(true).init(device),
            transformer: TransformerConvConfig::new(HIDDEN, half).with_heads(HEADS).init(device),
            graph: GraphConvConfig::new(HIDDEN, HIDDEN).init(device),
            sage: SageConvConfig::new(HIDDEN, HIDDEN).with_project(true).init(device),
            layer_norm: LayerNormConfig::new(HIDDEN).init(device),
            gins: vec![sequential.init(device), mlp.with_eps(0.5).init(device)],
            cheb: ChebConvConfig::new(HIDDEN, HIDDEN, 3).init(device),
            batch_norm: BatchNormConfig::new(HIDDEN).init(device),
            sg: SgConvConfig::new(HIDDEN, OUT).with_hops(2).init(device),
            appnp: AppnpConvConfig::new(3, 0.1).init(device),
        }
    }

    fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let x = self.norm.forward(self.lin_in.forward(x));
        let x = relu(self.attention.forward(graph, x));
        let x = self.transformer.forward(graph, self.shared.forward(graph, x));
        let x = self.sage.forward(graph, self.graph.forward(graph, x));
        let x = self.layer_norm.forward(x);
        let x = self.gins.iter().fold(x, |x, gin| gin.forward(graph, x).tanh());
        let x = self.batch_norm.forward(self.cheb.forward(graph, x));
        self.appnp.forward(graph, self.sg.forward(graph, x))
    }
}

fn sequential(name: &str) -> String {
    name.replace("gins.0.nn.lins.0", "gins.0.nn.0").replace("gins.0.nn.lins.1", "gins.0.nn.2")
}

#[rstest]
fn own_modules(_alone: Alone, device: Device, folder: Folder) {
    check(
        "mixed",
        &folder,
        || Mixed::new(&device),
        sequential,
        |model| Some(values(model.forward(&graph(edges()), matrix(&FILE["x"], WIDTH, &device)))),
    );
}

#[rstest]
fn layers_alone(_alone: Alone, device: Device, folder: Folder) {
    let x = || matrix(&FILE["x"], WIDTH, &device);
    let gat = GatConvConfig::new(WIDTH, OUT).with_heads(HEADS).with_d_edge(Some(2));
    let gat = gat.with_d_target(Some(WIDTH)).with_self_loops(false);
    check(
        "edges",
        &folder,
        || gat.init(&device),
        str::to_string,
        |layer| {
            let (graph, features) = (graph(edges()), matrix(&FILE["features"], 2, &device));
            let edges = graph.bipartite();
            Some(values(layer.forward_bipartite_with_edges(edges, x(), x(), features)))
        },
    );
    let rgcn = RgcnConvConfig::new(WIDTH, OUT, 2).with_bases(Some(3));
    check(
        "rgcn",
        &folder,
        || rgcn.init(&device),
        str::to_string,
        |layer| {
            let relations =
                [0, 1].map(|relation| graph(edges().into_iter().skip(relation).step_by(2)));
            Some(values(layer.forward(&relations, x())))
        },
    );
}

#[derive(Module, Debug)]
struct Pools {
    topk: TopkPooling,
    readout: Set2Set,
}

#[rstest]
fn pools_and_lstms(_alone: Alone, device: Device, folder: Folder) {
    let make = || Pools {
        topk: TopkPoolingConfig::new(WIDTH).init(&device),
        readout: Set2SetConfig::new(WIDTH, 2).init(&device),
    };
    check("pools", &folder, make, str::to_string, |_| None);
}

#[rstest]
fn older_names_of_gat(_alone: Alone, device: Device) {
    let [old, new] = ["gat-before-2.5.safetensors", "gat.safetensors"].map(|name| {
        let model = plain_of("gat").init(&device).unwrap();
        let model = load_state_dict(model, fixture_file(name)).unwrap();
        values(model.forward(&graph(edges()), matrix(&FILE["x"], WIDTH, &device)))
    });
    assert_eq!(old, new);
}

#[rstest]
#[case("float64", 1e-5)]
#[case("float16", 1e-2)]
#[case("bfloat16", 1e-1)]
fn types_become_the_models(
    _alone: Alone,
    device: Device,
    #[case] dtype: &str,
    #[case] tolerance: f32,
    #[values("pt", "safetensors")] extension: &str,
) {
    let model = plain_of("gcn").init(&device).unwrap();
    let file = fixture_file(&format!("gcn-{dtype}.{extension}"));
    let model = load_state_dict(model, file).unwrap();
    assert!(model.collect(None, None, false).iter().all(|tensor| tensor.dtype == DType::F32));
    let y = model.forward(&graph(edges()), matrix(&FILE["x"], WIDTH, &device));
    assert_close(&values(y), &numbers(&FILE["outputs"]["gcn"]), tolerance);
}

#[rstest]
fn loaded_weights_train(_alone: Alone, device: Device) {
    let device = device.autodiff();
    let model = plain_of("gcn").init(&device).unwrap();
    let model = load_state_dict(model, fixture_file("gcn.pt")).unwrap();
    let y = model.forward(&graph(edges()), matrix(&FILE["x"], WIDTH, &device));
    let gradients = y.sum().backward();
    let gradients = GradientsParams::from_grads(gradients, &model);
    assert_eq!(gradients.len(), 4);
}

#[rstest]
fn fresh_models_are_saved(_alone: Alone, device: Device, folder: Folder) {
    let file = folder.file("fresh.safetensors");
    let [saved, other] = [1, 2].map(|seed| {
        device.seed(seed);
        plain_of("gat").init(&device).unwrap()
    });
    save_state_dict(&saved, &file).unwrap();
    let loaded = load_state_dict(other, &file).unwrap();
    let y = |model: &PlainModel| {
        values(model.forward(&graph(edges()), matrix(&FILE["x"], WIDTH, &device)))
    };
    assert_eq!(y(&loaded), y(&saved));
}

fn gcn(device: &Device) -> GcnConv {
    GcnConvConfig::new(1, 2).init(device)
}

const ZEROS: &[u8] = &[0; 8];

#[rstest]
fn other_extensions_are_refused(_alone: Alone, device: Device, folder: Folder) {
    for name in ["model.bin", "model"] {
        let error = load_state_dict(gcn(&device), folder.file(name)).unwrap_err();
        assert!(matches!(error, StateDictError::Extension { .. }), "{error}");
    }
    let error = save_state_dict(&gcn(&device), folder.file("model.pt")).unwrap_err();
    let expected = "model.pt: expected the extension .safetensors";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[rstest]
fn unreadable_files_are_refused(
    _alone: Alone,
    device: Device,
    folder: Folder,
    #[values("pt", "pth", "safetensors")] extension: &str,
) {
    let file = folder.file(&format!("model.{extension}"));
    let refused = || {
        let error = load_state_dict(gcn(&device), &file).unwrap_err();
        assert!(matches!(&error, StateDictError::Read { file: of, .. } if *of == file), "{error}");
    };
    refused();
    let original = match extension {
        "pth" => "gcn.pt".to_string(),
        _ => format!("gcn.{extension}"),
    };
    let bytes = fs::read(fixture_file(&original)).unwrap();
    for length in [0, 1, 8, 60, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..length]).unwrap();
        refused();
    }
    fs::write(&file, [0xff; 100]).unwrap();
    refused();
}

#[rstest]
fn unwritable_files_are_refused(_alone: Alone, device: Device, folder: Folder) {
    let file = folder.file("no folder").join("model.safetensors");
    let error = save_state_dict(&gcn(&device), &file).unwrap_err();
    assert!(matches!(&error, StateDictError::Write { file: of, .. } if *of == file), "{error}");
}

#[rstest]
fn names_must_match(_alone: Alone, device: Device) {
    let model = plain_of("sage").with_layers(3).init(&device).unwrap();
    let error = load_state_dict(model, fixture_file("gcn.safetensors")).unwrap_err();
    let StateDictError::Names { missing, unused } = &error else {
        panic!("{error}");
    };
    let layer =
        |i| ["lin_l.weight", "lin_l.bias", "lin_r.weight"].map(|n| format!("convs.{i}.{n}"));
    assert_eq!(missing, &[0, 1, 2].map(layer).concat());
    let expected = ["convs.0.bias", "convs.0.lin.weight", "convs.1.bias", "convs.1.lin.weight"];
    assert_eq!(unused, &expected);
    let message = error.to_string();
    assert!(message.starts_with("the file lacks convs.0.lin_l.weight, "), "{message}");
    assert!(message.contains("; the model lacks convs.0.bias, "), "{message}");
}

#[rstest]
fn shapes_must_match(_alone: Alone, device: Device) {
    let model = PlainModelConfig::new(ConvKind::Gcn, WIDTH + 1, HIDDEN, OUT).init(&device).unwrap();
    for extension in ["pt", "safetensors"] {
        let file = fixture_file(&format!("gcn.{extension}"));
        let error = load_state_dict(model.clone(), file).unwrap_err();
        let expected = "convs.0.lin.weight: expected the shape [6, 5], found [6, 4]";
        assert_eq!(error.to_string(), expected);
    }
}

#[rstest]
fn integers_are_no_weights(_alone: Alone, device: Device, folder: Folder) {
    let bias = ("bias", Dtype::I32, &[2][..], ZEROS);
    let weight = ("lin.weight", Dtype::F32, &[2, 1][..], ZEROS);
    let file = folder.write("integers.safetensors", &[bias, weight]);
    let error = load_state_dict(gcn(&device), file).unwrap_err();
    assert_eq!(error.to_string(), "bias: I32 does not convert to F32");
}

#[rstest]
fn constants_must_match(_alone: Alone, device: Device, folder: Folder) {
    let layer = |eps| GinConvConfig::new().with_eps(eps).init(&device);
    let file = folder.file("gin.safetensors");
    save_state_dict(&layer(0.1), &file).unwrap();
    load_state_dict(layer(0.1), &file).unwrap();
    let error = load_state_dict(layer(0.5), &file).unwrap_err();
    let expected = "eps: the model is configured for 0.5, found 0.1";
    assert!(error.to_string().starts_with(expected), "{error}");
    load_state_dict(GinConvConfig::new().with_train_eps(true).init(&device), &file).unwrap();
}

#[rstest]
fn shared_tensors_must_agree(_alone: Alone, device: Device, folder: Folder) {
    let config = GatV2ConvConfig::new(2, 3);
    let file = folder.file("gat-v2.safetensors");
    save_state_dict(&config.init(&device), &file).unwrap();
    let shared = config.with_share_weights(true);
    let error = load_state_dict(shared.init(&device), &file).unwrap_err();
    let expected = "lin_l.weight and lin_r.weight differ, but the model shares them";
    assert_eq!(error.to_string(), expected);

    save_state_dict(&shared.init(&device), &file).unwrap();
    let bytes = fs::read(&file).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
    let once = tensors.into_iter().filter(|(name, _)| !name.starts_with("lin_r"));
    let once = safetensors::serialize(once, None).unwrap();
    fs::write(&file, once).unwrap();
    load_state_dict(shared.init(&device), &file).unwrap();
}

#[rstest]
fn names_must_differ(_alone: Alone, device: Device, folder: Folder) {
    let file = folder.file("gcn.safetensors");
    let error = save_state_dict_with(&gcn(&device), &file, |_| "x".to_string()).unwrap_err();
    assert!(matches!(&error, StateDictError::Duplicate { name } if name == "x"), "{error}");
    assert!(!file.exists());
}

#[rstest]
fn layers_without_a_mapping_are_refused(_alone: Alone, device: Device, folder: Folder) {
    let config = PnaConvConfig::new(WIDTH, OUT, vec![0, 1]);
    let layers = vec![config.init(&device)];
    let error = save_state_dict(&layers, folder.file("pna.safetensors")).unwrap_err();
    let StateDictError::Layer { path, layer } = &error else {
        panic!("{error}");
    };
    assert_eq!((path.as_str(), layer.as_str()), ("0", "PnaConv"));
    let error = load_state_dict(layers, fixture_file("gcn.pt")).unwrap_err();
    assert!(matches!(error, StateDictError::Layer { .. }), "{error}");
}
