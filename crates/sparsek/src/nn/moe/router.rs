use burn::{
    config::Config,
    module::{Module, RunningState},
    nn::{Linear, LinearConfig},
    tensor::{
        Device, Int, Tensor,
        activation::{sigmoid, softmax},
    },
};

use super::dispatch::expert_counts;
use crate::{
    dense::linear,
    nn::support::{column_means, log_sum_exp},
    topk::{TopkOptions, argtopk, topk, topk_bool_mask},
};

/// Maps logits to scores.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `softmax` over experts.
    Softmax,
    /// `sigmoid` per expert.
    Sigmoid,
}

/// Configures [`TopkRouter`].
///
/// DeepSeek-V3: `TopkRouterConfig::new(7168, 256, 8).with_gate(Gate::Sigmoid)
/// .with_selection_bias(true).with_groups(8).with_kept_groups(4).with_scale(2.5)`.
#[derive(Config, Debug, PartialEq)]
pub struct TopkRouterConfig {
    /// Token width.
    pub d_model: usize,
    /// Experts.
    pub experts: usize,
    /// Experts per token.
    pub k: usize,
    /// Score function. Default: softmax.
    #[config(default = "Gate::Softmax")]
    pub gate: Gate,
    /// Biases selection only, not weights. Default: false.
    #[config(default = false)]
    pub selection_bias: bool,
    /// Equal groups of neighboring experts. Default: 1.
    #[config(default = 1)]
    pub groups: usize,
    /// Groups per token. Default: 1.
    #[config(default = 1)]
    pub kept_groups: usize,
    /// Divides weights by their sum. Default: true.
    #[config(default = true)]
    pub renormalize: bool,
    /// Weight factor. Default: 1.
    #[config(default = 1.0)]
    pub scale: f64,
}

impl TopkRouterConfig {
    /// Initializes a `Linear` without bias and a zero selection bias.
    ///
    /// Panics unless groups divide the experts, `kept_groups ≤ groups`, and k is positive and
    /// within kept experts.
    pub fn init(&self, device: &Device) -> TopkRouter {
        let Self { experts, k, groups, .. } = *self;
        assert!(
            groups > 0 && experts.is_multiple_of(groups),
            "TopkRouter: {experts} experts in {groups} groups"
        );
        assert!(
            self.kept_groups <= groups,
            "TopkRouter: {} of {groups} groups are kept",
            self.kept_groups
        );
        let reachable = experts / groups * self.kept_groups;
        assert!(
            (1..=reachable).contains(&k),
            "TopkRouter: k = {k} of {reachable} experts in kept groups"
        );
        let config = LinearConfig::new(self.d_model, experts).with_bias(false);
        let bias = || RunningState::new(Tensor::zeros([experts], device));
        TopkRouter {
            projection: config.init(device),
            bias: self.selection_bias.then(bias),
            experts,
            k,
            groups,
            kept_groups: self.kept_groups,
            gate: self.gate,
            renormalize: self.renormalize,
            scale: self.scale,
        }
    }
}

/// Routes each token to k experts.
///
/// - `scores = gate(x · W)`
/// - `experts = topk(scores + bias)` within the `kept_groups` groups whose two best biased scores
///   have the greatest sum
/// - `weights = scale · scores[experts]`, divided by their sum if `renormalize`
///
/// Gradients reach x and W through weights and losses. Shazeer et al., 2017; balance loss: Fedus et
/// al., 2022; z loss: Zoph et al., 2022; bias and groups: DeepSeek-V3, 2024.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::nn::TopkRouterConfig;
///
/// let device = Device::flex();
/// let router = TopkRouterConfig::new(4, 3, 2).init(&device);
/// let logits = Tensor::<2>::from_data([[0.0, 2.0, 2.0]], &device);
/// let routing = router.route(logits);
/// routing.experts.into_data().assert_eq(&TensorData::from([[1, 2]]), false);
/// routing.weights.into_data().assert_eq(&TensorData::from([[0.5, 0.5]]), false);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct TopkRouter {
    projection: Linear,
    bias: Option<RunningState<Tensor<1>>>,
    experts: usize,
    k: usize,
    groups: usize,
    kept_groups: usize,
    #[module(skip)]
    gate: Gate,
    renormalize: bool,
    scale: f64,
}

/// Experts, weights and losses.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Expert weights: `[tokens, k]`.
    pub weights: Tensor<2>,
    /// Experts, best first: `[tokens, k]`.
    pub experts: Tensor<2, Int>,
    /// Tokens per expert: `[experts]`.
    pub counts: Tensor<1, Int>,
    /// `E Σ_e f[e] P[e]`: `[1]`, with shares of copies f and mean normalized scores P. NaN without
    /// tokens.
    pub balance_loss: Tensor<1>,
    /// Mean of `(log Σ exp(logits))²`: `[1]`. NaN without tokens.
    pub z_loss: Tensor<1>,
}

impl TopkRouter {
    /// Routes tokens, `[tokens, d_model]`.
    pub fn forward(&self, x: Tensor<2>) -> Routing {
        self.route(linear(x, self.projection.weight.val(), None))
    }

    /// Routes by logits, `[tokens, experts]`.
    pub fn route(&self, logits: Tensor<2>) -> Routing {
        let [tokens, width] = logits.dims();
        assert!(
            width == self.experts,
            "TopkRouter: logits of {width} experts instead of {}",
            self.experts
        );
        let scores = match self.gate {
            Gate::Softmax => softmax(logits.clone(), 1),
            Gate::Sigmoid => sigmoid(logits.clone()),
        };
        let experts = self.select(scores.clone().detach());
        let mut weights = scores.clone().gather(1, experts.clone());
        if self.renormalize {
            weights = weights.clone() / weights.sum_dim(1).clamp_min(TINY);
        }
        let counts = expert_counts(&experts, self.experts);

        let probabilities = match self.gate {
            Gate::Softmax => scores,
            Gate::Sigmoid => scores.clone() / scores.sum_dim(1).clamp_min(TINY),
        };
        let copies = (tokens * self.k) as f64;
        let share = counts.clone().float().cast(logits.dtype()) / copies;
        let mean = column_means(probabilities);
        let balance_loss = (mean * share).sum() * self.experts as f64;
        let z_loss = column_means(log_sum_exp(logits).square());
        Routing { weights: weights * self.scale, experts, counts, balance_loss, z_loss }
    }

    /// Moves biases by `rate` towards the mean load. Call after each training step.
    ///
    /// `counts`: `[experts]`, from [`Routing`]. Panics without selection bias. Wang et al., 2024.
    pub fn update_bias(&self, counts: Tensor<1, Int>, rate: f64) {
        let state = self.bias.as_ref();
        let state = state.expect("TopkRouter::update_bias: the router has no selection bias");
        let bias = state.value_sync();
        let counts = counts.float().cast(bias.dtype()).to_device(&bias.device());
        let surplus = counts.clone() - counts.mean();
        state.update((bias - surplus.sign() * rate).detach());
    }

    /// Selection bias, if any: `[experts]`.
    pub fn selection_bias(&self) -> Option<Tensor<1>> {
        self.bias.as_ref().map(RunningState::value_sync)
    }

    fn select(&self, mut scores: Tensor<2>) -> Tensor<2, Int> {
        let [tokens, experts] = scores.dims();
        if let Some(bias) = self.selection_bias() {
            let bias = bias.to_device(&scores.device()).cast(scores.dtype());
            scores = scores + bias.unsqueeze();
        }
        if self.kept_groups < self.groups {
            let size = experts / self.groups;
            let grouped: Tensor<3> = scores.reshape([tokens, self.groups, size]);
            let (best, _) = topk(grouped.clone(), &TopkOptions::new(size.min(2)), 2);
            let best: Tensor<2> = best.sum_dim(2).squeeze_dim(2);
            let kept = topk_bool_mask(best, &TopkOptions::new(self.kept_groups), 1);
            let dropped = kept.bool_not();
            let dropped = dropped.unsqueeze_dim::<3>(2).expand(grouped.shape());
            let kept = grouped.mask_fill(dropped, f64::NEG_INFINITY);
            scores = kept.reshape([tokens, experts]);
        }
        argtopk(scores, &TopkOptions::new(self.k).with_sorted(true), 1)
    }
}

/// Least divisor: sigmoid sums may underflow. Exists in f16.
const TINY: f64 = 1e-7;

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{
        assert_close, check_gradient, device, double, host, param, probe, random, tensor,
    };

    const EXPERTS: usize = 6;

    fn config(gate: Gate, groups: usize, kept: usize, k: usize) -> TopkRouterConfig {
        TopkRouterConfig::new(4, EXPERTS, k)
            .with_gate(gate)
            .with_groups(groups)
            .with_kept_groups(kept)
            .with_selection_bias(true)
    }

    fn oracle(
        logits: &[f64],
        bias: &[f64],
        config: &TopkRouterConfig,
    ) -> (Vec<i64>, Vec<f64>, Vec<f64>, f64) {
        let exp: Vec<f64> = logits.iter().map(|x| x.exp()).collect();
        let total: f64 = exp.iter().sum();
        let scores: Vec<f64> = match config.gate {
            Gate::Softmax => exp.iter().map(|x| x / total).collect(),
            Gate::Sigmoid => exp.iter().map(|x| x / (1.0 + x)).collect(),
        };
        let size = EXPERTS / config.groups;
        let biased: Vec<f64> = scores.iter().zip(bias).map(|(x, b)| x + b).collect();
        let group = |g: usize| {
            let mut members = biased[g * size..][..size].to_vec();
            members.sort_by(|a, b| b.total_cmp(a));
            members.iter().take(2).sum::<f64>()
        };
        let mut groups: Vec<usize> = (0..config.groups).collect();
        groups.sort_by(|&a, &b| group(b).total_cmp(&group(a)));
        groups.truncate(config.kept_groups);
        let mut experts: Vec<usize> =
            (0..EXPERTS).filter(|e| groups.contains(&(e / size))).collect();
        experts.sort_by(|&a, &b| biased[b].total_cmp(&biased[a]));
        experts.truncate(config.k);
        let sum: f64 = experts.iter().map(|&e| scores[e]).sum();
        let divisor = if config.renormalize { sum.max(TINY) } else { 1.0 };
        let weights = experts.iter().map(|&e| config.scale * scores[e] / divisor);
        let norm: f64 = match config.gate {
            Gate::Softmax => 1.0,
            Gate::Sigmoid => scores.iter().sum::<f64>().max(TINY),
        };
        (
            experts.iter().map(|&e| e as i64).collect(),
            weights.collect(),
            scores.iter().map(|x| x / norm).collect(),
            total.ln().powi(2),
        )
    }

    #[rstest]
    fn routes_as_the_formulas(
        device: Device,
        #[values(Gate::Softmax, Gate::Sigmoid)] gate: Gate,
        #[values((1, 1, 2), (3, 2, 3), (2, 1, 3), (6, 3, 1))] shape: (usize, usize, usize),
        #[values(true, false)] renormalize: bool,
    ) {
        let (groups, kept, k) = shape;
        let config = config(gate, groups, kept, k).with_renormalize(renormalize).with_scale(1.5);
        let tokens = 7;
        let logits = random(tokens * EXPERTS, 11);
        let bias = random(EXPERTS, 12);
        let mut router = config.init(&device);
        router.bias = Some(RunningState::new(tensor(&bias, [EXPERTS], &device)));
        let routing = router.route(tensor(&logits, [tokens, EXPERTS], &device));

        let rows: Vec<_> = logits.chunks(EXPERTS).map(|row| oracle(row, &bias, &config)).collect();
        let experts: Vec<i64> = rows.iter().flat_map(|row| row.0.clone()).collect();
        let found = routing.experts.try_into_vec_as::<i64>().unwrap();
        assert_eq!(found, experts);
        let weights: Vec<f64> = rows.iter().flat_map(|row| row.1.clone()).collect();
        assert_close(routing.weights, &weights);
        let mut counts = vec![0; EXPERTS];
        for &e in &experts {
            counts[e as usize] += 1;
        }
        assert_eq!(routing.counts.try_into_vec_as::<i64>().unwrap(), counts);
        let balance: f64 = (0..EXPERTS)
            .map(|e| {
                let mean = rows.iter().map(|row| row.2[e]).sum::<f64>() / tokens as f64;
                mean * counts[e] as f64 / (tokens * k) as f64 * EXPERTS as f64
            })
            .sum();
        assert_close(routing.balance_loss, &[balance]);
        let z = rows.iter().map(|row| row.3).sum::<f64>() / tokens as f64;
        assert_close(routing.z_loss, &[z]);
    }

    #[rstest]
    fn gradients_of_tokens_and_weights(
        device: Device,
        #[values(Gate::Softmax, Gate::Sigmoid)] gate: Gate,
    ) {
        let router = double(config(gate, 3, 2, 3).init(&device));
        let sum = |routing: Routing| {
            probe(routing.weights) + routing.balance_loss * 0.7 + routing.z_loss * 0.3
        };
        let x = tensor(&random(20, 5), [5, 4], &device);
        check_gradient(x.clone(), |x| sum(router.forward(x)));
        check_gradient(router.projection.weight.val(), |weight| {
            let mut router = router.clone();
            router.projection.weight = param(weight);
            sum(router.forward(x.clone()))
        });
    }

    #[rstest]
    fn the_bias_moves_towards_the_mean_load(device: Device) {
        let router = config(Gate::Sigmoid, 1, 1, 2).init(&device);
        let counts = Tensor::<1, Int>::from_data([4, 0, 2, 2, 3, 1], &device);
        router.update_bias(counts.clone(), 0.25);
        router.update_bias(counts, 0.25);
        let bias = host(router.selection_bias().unwrap());
        assert_eq!(bias, [-0.5, 0.5, 0.0, 0.0, -0.5, 0.5]);
    }

    #[rstest]
    #[case(TopkRouterConfig::new(4, 6, 0))]
    #[case(TopkRouterConfig::new(4, 6, 7))]
    #[case(TopkRouterConfig::new(4, 6, 2).with_groups(4))]
    #[case(TopkRouterConfig::new(4, 6, 2).with_groups(2).with_kept_groups(3))]
    #[case(TopkRouterConfig::new(4, 6, 4).with_groups(2).with_kept_groups(1))]
    #[should_panic(expected = "TopkRouter: ")]
    fn impossible_settings_panic(device: Device, #[case] config: TopkRouterConfig) {
        config.init(&device);
    }
}
