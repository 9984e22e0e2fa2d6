use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig},
    tensor::{Device, Tensor},
};
use sparsek::sparse::spmm_with;

use super::{attention::looped, dropout::drop_elements, gcn::GcnConv, sg::hop};
use crate::graph::{Graph, Norm};

/// Configures [`AppnpConv`].
#[derive(Config, Debug, PartialEq)]
pub struct AppnpConvConfig {
    /// Hops K.
    pub hops: usize,
    /// Restart probability α.
    pub alpha: f64,
    /// Edge dropout per hop, under autodiff.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// One self-loop per node.
    #[config(default = true)]
    pub self_loops: bool,
}

impl AppnpConvConfig {
    /// Makes the layer; panics for dropout outside [0, 1).
    pub fn init(&self, device: &Device) -> AppnpConv {
        AppnpConv {
            hop: hop(1, self.self_loops, device),
            dropout: DropoutConfig::new(self.dropout).init(),
            hops: self.hops,
            alpha: self.alpha,
            self_loops: self.self_loops,
        }
    }
}

/// PyG's `APPNP` (Gasteiger et al., 2019), personalized PageRank: `Z₀ = X`,
/// `Zₖ₊₁ = (1 - α) Â Zₖ + α X`, result `Z_K`; Â is [`GcnConv`]'s matrix.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::{Graph, nn::AppnpConvConfig};
///
/// let device = Device::flex();
/// let graph = Graph::from_edges(3, [(0, 1), (1, 2)]).unwrap();
/// let layer = AppnpConvConfig::new(10, 0.1).init(&device);
/// assert_eq!(layer.forward(&graph, Tensor::ones([3, 4], &device)).dims(), [3, 4]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct AppnpConv {
    hop: GcnConv,
    dropout: Dropout,
    #[module(skip)]
    hops: usize,
    #[module(skip)]
    alpha: f64,
    #[module(skip)]
    self_loops: bool,
}

impl AppnpConv {
    /// [nodes, d] → [nodes, d].
    pub fn forward(&self, graph: &Graph, x: Tensor<2>) -> Tensor<2> {
        let looped = looped(graph, self.self_loops);
        self.propagate(x, |z| {
            if self.dropout.prob == 0.0 {
                return self.hop.forward(graph, z);
            }
            let (device, dtype) = (z.device(), z.dtype());
            let ones = Tensor::ones([looped.edges(), 1], (&device, dtype));
            let kept = drop_elements(&self.dropout, ones).reshape([looped.edges()]);
            let scaling = looped.scaling(&device, dtype, Norm::Both, 1.0).with_weights(kept);
            spmm_with(&looped.adjacency(&device), z, &scaling)
        })
    }

    /// Takes `[edges]` weights; no dropout.
    pub fn forward_weighted(&self, graph: &Graph, x: Tensor<2>, weights: Tensor<1>) -> Tensor<2> {
        self.propagate(x, |z| self.hop.forward_weighted(graph, z, weights.clone()))
    }

    fn propagate(&self, x: Tensor<2>, hop: impl Fn(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        let restart = x.clone() * self.alpha;
        (0..self.hops).fold(x, |z, _| hop(z) * (1.0 - self.alpha) + restart.clone())
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::fixtures::{Alone, alone, device};

    /// n equal sources yield multiples of 2 / n.
    #[rstest]
    fn dropped_edges_are_whole(_alone: Alone, device: Device) {
        let sources = 40;
        let graph = Graph::from_edges(41, (0..sources).map(|source| (source, sources))).unwrap();
        let config = AppnpConvConfig::new(1, 0.0).with_self_loops(false);
        let of = |config: &AppnpConvConfig, device: &Device| -> f64 {
            device.seed(5);
            let x = Tensor::ones([41, 1], device);
            let y = config.init(device).forward(&graph.symmetrized(), x);
            y.into_data().iter::<f64>().last().unwrap()
        };
        let whole = of(&config, &device);
        let dropping = config.with_dropout(0.5);
        let kept = of(&dropping, &device.clone().autodiff()) / whole * 20.0;
        assert!((kept - kept.round()).abs() < 1e-3 && (kept - 20.0).abs() < 15.0, "{kept}");
        assert_eq!(of(&dropping, &device), whole);
    }
}
