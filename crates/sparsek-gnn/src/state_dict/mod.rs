//! Reads and writes `state_dict` files of PyTorch Geometric.
//!
//! [`load_state_dict`] reads what `torch.save` or `safetensors.torch.save_file` wrote from
//! `model.state_dict()`. [`save_state_dict`] writes for `safetensors.torch.load_file`.
//! [`load_state_dict_with`] and [`save_state_dict_with`] map other names.
//!
//! Names, shapes and orientations are PyG's:
//!
//! - your fields: the same, such as `convs.0`
//! - `PlainModel`: models `GCN`, `GraphSAGE`, `GAT`, `GIN`
//! - `GcnConv`, `SgConv`: `lin.weight`, `lin.bias` or `bias`
//! - `SageConv`: `lin_l`, `lin_r`, `lin` for `project`
//! - `GatConv`: `lin` or `lin_src`, `lin_dst`; `att_src`, `att_dst`, `lin_edge`, `att_edge`
//! - `GatV2Conv`: `lin_l`, `lin_r`, `att`, `lin_edge`
//! - `GinConv`: `eps`, `nn.lins.0`, `nn.lins.1` (`MLP`); also reads `nn.0`, `nn.2`
//! - `GraphConv`: `lin_rel`, `lin_root`
//! - `ChebConv`: `lins.0`, …
//! - `TransformerConv`: `lin_key`, `lin_query`, `lin_value`, `lin_edge`, `lin_skip`
//! - `RgcnConv`: `weight`, `comp`, `root`
//! - `GraphNorm`: `weight`, `bias`, `mean_scale`
//! - `TopkPooling`: `select.weight`
//! - `Set2Set`: `lstm`
//! - Burn's layers: torch's
//!
//! PyG's `GAT` has `heads` heads in its last layer too (`output_heads`); its `GIN` ends in a
//! network of hidden width `d_output` (`last_hidden`). Any other `PlainModel` is a `ModuleList`
//! named `convs`.
//!
//! Not mapped:
//!
//! - `HeteroConv`, `PnaConv`, `SagPooling`: [`StateDictError::Layer`].
//! - PyG options that our layers lack, such as `residual`: [`StateDictError::Names`].
//! - `TransformerConv` with `root_weight=False`: remove PyG's unused `lin_skip` before saving
//!   there; load with `strict=False`.
//!
//! Files hold weights only: configure the model as PyG's. The untrained `eps` of `GinConv` is
//! checked.

mod error;
pub(crate) mod file;
mod names;
#[cfg(all(test, feature = "flex"))]
mod tests;

use std::{collections::HashMap, path::Path};

use burn::{
    module::Module,
    store::{
        Applier, BurnToPyTorchAdapter, ModuleAdapter, ModuleContext, ModuleSnapshot,
        PyTorchToBurnAdapter, bridge, burn_pack,
    },
    tensor::TensorData,
};

pub use self::error::StateDictError;
use self::{
    file::{Reading, Writing},
    names::{Contents, Layout, Parameter},
};

/// Reads PyG's weights into a model. `path` ends in `.safetensors`, `.pt` or `.pth`. f64, f32, f16
/// and bf16 become the model's type. Errors when names or shapes differ.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{
///     Graph,
///     nn::{ConvKind, NodeModel, NodeModelConfig, PlainModelConfig},
///     state_dict::{load_state_dict, save_state_dict},
/// };
///
/// # let folder = std::env::temp_dir().join(format!("sparsek-load-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("model.safetensors");
/// let device = Device::flex();
/// // torch_geometric.nn.models.GCN(4, 16, num_layers=2, out_channels=3)
/// let config = PlainModelConfig::new(ConvKind::Gcn, 4, 16, 3);
/// # let saved = config.init(&device).unwrap();
/// # save_state_dict(&saved, &path).unwrap();
/// let model = load_state_dict(config.init(&device).unwrap(), &path).unwrap();
///
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let logits = model.forward(&graph, Tensor::ones([3, 4], &device));
/// # assert_eq!(
/// #     logits.into_data(),
/// #     saved.forward(&graph, Tensor::ones([3, 4], &device)).into_data(),
/// # );
/// # std::fs::remove_dir_all(folder).unwrap();
/// # }
/// ```
pub fn load_state_dict<M: Module>(model: M, path: impl AsRef<Path>) -> Result<M, StateDictError> {
    load_state_dict_with(model, path, str::to_string)
}

/// [`load_state_dict`] with names `rename(name)`.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::{module::Module, tensor::Device};
/// use sparsek_gnn::{
///     nn::{GcnConv, GcnConvConfig},
///     state_dict::{load_state_dict_with, save_state_dict_with},
/// };
///
/// #[derive(Module, Debug)]
/// struct Encoder {
///     first: GcnConv,
///     second: GcnConv,
/// }
///
/// // A checkpoint {"model": model.state_dict(), ..} of a module with conv1 and conv2.
/// fn rename(name: &str) -> String {
///     format!("model.{}", name.replace("first", "conv1").replace("second", "conv2"))
/// }
///
/// # let folder = std::env::temp_dir().join(format!("sparsek-rename-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("model.safetensors");
/// let device = Device::flex();
/// let layer = || GcnConvConfig::new(4, 4).init(&device);
/// let encoder = Encoder { first: layer(), second: layer() };
/// # save_state_dict_with(&encoder, &path, rename).unwrap();
/// let encoder = load_state_dict_with(encoder, &path, rename).unwrap();
/// # std::fs::remove_dir_all(folder).unwrap();
/// # }
/// ```
pub fn load_state_dict_with<M: Module>(
    model: M,
    path: impl AsRef<Path>,
    rename: impl Fn(&str) -> String,
) -> Result<M, StateDictError> {
    let contents = Contents::of(&model)?;
    let mut file = Reading::open(path.as_ref(), &rename)?;
    let parameters: Vec<_> = contents.parameters.iter().map(|p| file.take(&p.names)).collect();
    let constants: Vec<_> = contents.constants.iter().map(|(n, _)| file.take(n)).collect();
    file.skip(&contents.counts);
    let file = file.finish()?;

    let mut tensors = Vec::with_capacity(parameters.len());
    for (parameter, found) in contents.parameters.iter().zip(parameters) {
        let data = file.data(found, &parameter.pyg_shape(), parameter.dtype)?;
        tensors.push(to_burn(parameter, data));
    }
    for ((_, expected), found) in contents.constants.into_iter().zip(constants) {
        file.check_constant(found, expected)?;
    }
    let mut applier = Applier::new(tensors, None, None, false);
    let model = model.map(&mut applier);
    match applier.into_result().errors.first() {
        None => Ok(model),
        Some(error) => Err(file.failed(error.to_string())),
    }
}

/// Writes `.safetensors` weights for PyG, in the model's types. Replaces an existing file once
/// complete.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use sparsek_gnn::{nn::GatConvConfig, state_dict::save_state_dict};
///
/// # let folder = std::env::temp_dir().join(format!("sparsek-save-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("gat.safetensors");
/// let layer = GatConvConfig::new(4, 8).with_heads(2).init(&Device::flex());
/// save_state_dict(&layer, &path).unwrap();
/// // layer = torch_geometric.nn.GATConv(4, 8, heads=2)
/// // layer.load_state_dict(safetensors.torch.load_file("gat.safetensors"))
/// # std::fs::remove_dir_all(folder).unwrap();
/// # }
/// ```
pub fn save_state_dict<M: Module>(model: &M, path: impl AsRef<Path>) -> Result<(), StateDictError> {
    save_state_dict_with(model, path, str::to_string)
}

/// [`save_state_dict`] with names `rename(name)`, here for a `GINConv` over
/// `Sequential(Linear, ReLU, Linear)`:
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::Device;
/// use sparsek_gnn::{
///     nn::{GinConvConfig, GinMlpConfig},
///     state_dict::save_state_dict_with,
/// };
///
/// # let folder = std::env::temp_dir().join(format!("sparsek-gin-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("gin.safetensors");
/// let layer = GinConvConfig::new().with_mlp(Some(GinMlpConfig::new(4, 8, 8)));
/// let layer = layer.init(&Device::flex());
/// let sequential = |name: &str| name.replace("lins.0", "0").replace("lins.1", "2");
/// save_state_dict_with(&layer, &path, sequential).unwrap();
/// # std::fs::remove_dir_all(folder).unwrap();
/// # }
/// ```
pub fn save_state_dict_with<M: Module>(
    model: &M,
    path: impl AsRef<Path>,
    rename: impl Fn(&str) -> String,
) -> Result<(), StateDictError> {
    let mut file = Writing::new(path.as_ref(), &rename)?;
    let contents = Contents::of(model)?;
    let tensors = model.collect(None, None, false);
    let mut tensors: HashMap<_, _> = tensors.into_iter().map(|t| (t.name.clone(), t)).collect();
    for parameter in &contents.parameters {
        let tensor = tensors.remove(&parameter.path);
        let tensor = tensor.ok_or_else(|| file.failed(format!("no {}", parameter.path)))?;
        let data = bridge::into_data(to_pyg(parameter, tensor));
        let data = data.map_err(|error| file.failed(error.to_string()))?;
        file.add(&parameter.names, &parameter.pyg_shape(), &data)?;
    }
    for (names, value) in &contents.constants {
        file.add(names, &[1], &TensorData::from([*value as f32]))?;
    }
    file.add_counts(&contents.counts)?;
    file.finish()
}

/// Burn's adapters transpose in it.
const LINEAR: &str = "Struct:Linear";

/// `data` has PyG's shape.
fn to_burn(parameter: &Parameter, data: TensorData) -> burn_pack::Tensor {
    let path = parameter.path.clone();
    match parameter.layout {
        Layout::Transposed => {
            let tensor = bridge::from_data(data, path, None);
            PyTorchToBurnAdapter.adapt(tensor, ModuleContext::new(&[LINEAR.to_string()]))
        }
        _ => {
            let (bytes, _, dtype) = data.into_parts();
            let data = TensorData::from_bytes(bytes, parameter.shape.clone(), dtype);
            bridge::from_data(data, path, None)
        }
    }
}

/// PyG's data; our shape unless transposed.
fn to_pyg(parameter: &Parameter, tensor: burn_pack::Tensor) -> burn_pack::Tensor {
    match parameter.layout {
        Layout::Transposed => {
            BurnToPyTorchAdapter.adapt(tensor, ModuleContext::new(&[LINEAR.to_string()]))
        }
        _ => tensor,
    }
}
