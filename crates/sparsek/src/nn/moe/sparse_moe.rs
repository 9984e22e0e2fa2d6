use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{
        Device, Tensor,
        activation::{gelu, silu},
    },
};

use super::{
    dispatch::MoeDispatch,
    router::{Routing, TopkRouter, TopkRouterConfig},
};

/// Expert MLP.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum Expert {
    /// `gelu(x W₁) W₂`.
    Gelu,
    /// `(silu(x W₁) ⊙ x W₃) W₂` (Shazeer, 2020).
    SwiGlu,
}

/// Configures [`SparseMoe`].
#[derive(Config, Debug, PartialEq)]
pub struct SparseMoeConfig {
    /// Router, with width and expert count.
    pub router: TopkRouterConfig,
    /// Hidden width.
    pub d_hidden: usize,
    /// Expert MLP. Default: SwiGLU.
    #[config(default = "Expert::SwiGlu")]
    pub expert: Expert,
    /// Rows per expert, as a multiple of `tokens · k / experts`. Default: unlimited.
    pub capacity_factor: Option<f64>,
}

impl SparseMoeConfig {
    /// Initializes weights as `Linear` without bias.
    ///
    /// Panics as [`TopkRouterConfig::init`], or unless the capacity factor is positive and finite.
    pub fn init(&self, device: &Device) -> SparseMoe {
        if let Some(factor) = self.capacity_factor {
            assert!(factor.is_finite() && factor > 0.0, "SparseMoe: a capacity factor of {factor}");
        }
        let (experts, width, hidden) = (self.router.experts, self.router.d_model, self.d_hidden);
        let weight = |from: usize, to: usize| {
            let initializer =
                Initializer::KaimingUniform { gain: 1.0 / 3f64.sqrt(), fan_out_only: false };
            initializer.init_with([experts, from, to], Some(from), Some(to), device)
        };
        SparseMoe {
            router: self.router.init(device),
            w_in: weight(width, hidden),
            w_gated: (self.expert == Expert::SwiGlu).then(|| weight(width, hidden)),
            w_out: weight(hidden, width),
            capacity_factor: self.capacity_factor,
        }
    }
}

/// Mixture of MLPs: `y[t] = Σ_j w[t, j] · mlp_{e[t, j]}(x[t])`.
///
/// Pads experts to equal counts for one batched product. With capacity factor c, experts have
/// `⌈c · tokens · k / experts⌉` rows, ≤ `tokens`; excess copies weigh 0. Otherwise **the host reads
/// the greatest count per call**; skewed routes cost `experts · greatest` rows.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sparsek::nn::{SparseMoeConfig, TopkRouterConfig};
///
/// let device = Device::flex();
/// let moe = SparseMoeConfig::new(TopkRouterConfig::new(8, 4, 2), 16).init(&device);
/// let x = Tensor::<2>::random([10, 8], Distribution::Default, &device);
/// let (y, routing) = moe.forward(x);
/// assert_eq!(y.dims(), [10, 8]);
/// assert_eq!(routing.counts.sum().into_scalar::<i64>(), 20);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct SparseMoe {
    /// Router, for [`TopkRouter::update_bias`].
    pub router: TopkRouter,
    /// W₁: `[experts, d_model, d_hidden]`.
    pub w_in: Param<Tensor<3>>,
    /// W₃ for SwiGLU: `[experts, d_model, d_hidden]`.
    pub w_gated: Option<Param<Tensor<3>>>,
    /// W₂: `[experts, d_hidden, d_model]`.
    pub w_out: Param<Tensor<3>>,
    capacity_factor: Option<f64>,
}

impl SparseMoe {
    /// `[tokens, d_model]` → same shape, and the routing.
    pub fn forward(&self, x: Tensor<2>) -> (Tensor<2>, Routing) {
        let [tokens, width] = x.dims();
        let [experts, ..] = self.w_in.dims();
        let routing = self.router.forward(x.clone());
        let [_, k] = routing.experts.dims();
        let dispatch = match self.capacity_factor {
            None => MoeDispatch::padded(&routing.experts, experts),
            Some(factor) => {
                let capacity = (factor * (tokens * k) as f64 / experts as f64).ceil() as usize;
                // Experts are distinct per token.
                MoeDispatch::with_capacity(&routing.experts, experts, capacity.min(tokens))
            }
        };
        let rows = dispatch.rows();
        if rows == 0 {
            return (x.zeros_like(), routing);
        }
        let rows = dispatch.dispatch(x);
        let [count, _] = rows.dims();
        let rows: Tensor<3> = rows.reshape([experts, count / experts, width]);
        let y = self.experts(rows).reshape([count, width]);
        (dispatch.combine(y, routing.weights.clone()), routing)
    }

    /// `[experts, rows, d_model]` → same shape.
    fn experts(&self, x: Tensor<3>) -> Tensor<3> {
        let hidden = x.clone().matmul(self.w_in.val());
        let hidden = match &self.w_gated {
            Some(gated) => silu(hidden) * x.matmul(gated.val()),
            None => gelu(hidden),
        };
        hidden.matmul(self.w_out.val())
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{
        assert_close, check_gradient, device, double, host, param, probe, random, tensor,
    };

    const TOKENS: usize = 6;
    const WIDTH: usize = 3;
    const HIDDEN: usize = 2;
    const EXPERTS: usize = 4;

    fn moe(device: &Device, expert: Expert, capacity: Option<f64>) -> SparseMoe {
        let config = SparseMoeConfig::new(TopkRouterConfig::new(WIDTH, EXPERTS, 2), HIDDEN)
            .with_expert(expert)
            .with_capacity_factor(capacity);
        double(config.init(device))
    }

    fn normal_cdf(x: f64) -> f64 {
        let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let (steps, mut sum) = (2000, density(0.0) + density(x));
        for i in 1..steps {
            let t = x * i as f64 / steps as f64;
            sum += density(t) * if i % 2 == 1 { 4.0 } else { 2.0 };
        }
        0.5 + sum * x / steps as f64 / 3.0
    }

    #[rstest]
    fn equals_a_loop_over_tokens_and_experts(
        device: Device,
        #[values(Expert::Gelu, Expert::SwiGlu)] expert: Expert,
        #[values(None, Some(0.5), Some(1.0), Some(9.0))] capacity: Option<f64>,
    ) {
        let moe = moe(&device, expert, capacity);
        let values = random(TOKENS * WIDTH, 21);
        let x = tensor(&values, [TOKENS, WIDTH], &device);
        let (y, routing) = moe.forward(x);
        let weights = host(routing.weights);
        let experts = routing.experts.try_into_vec_as::<i64>().unwrap();
        let [w_in, w_out] = [&moe.w_in, &moe.w_out].map(|w| host(w.val()));
        let gated = moe.w_gated.as_ref().map(|w| host(w.val()));
        let rows = match capacity {
            None => TOKENS,
            Some(factor) => (factor * TOKENS as f64 * 2.0 / EXPERTS as f64).ceil() as usize,
        };
        let mut used = [0; EXPERTS];
        let mut expected = vec![0.0; TOKENS * WIDTH];
        for (copy, (&e, weight)) in experts.iter().zip(weights).enumerate() {
            let (t, e) = (copy / 2, e as usize);
            used[e] += 1;
            if used[e] > rows {
                continue;
            }
            for h in 0..HIDDEN {
                let dot = |w: &[f64]| {
                    let terms =
                        (0..WIDTH).map(|i| values[t * WIDTH + i] * w[(e * WIDTH + i) * HIDDEN + h]);
                    terms.sum::<f64>()
                };
                let inner = dot(&w_in);
                let hidden = match &gated {
                    Some(gated) => inner / (1.0 + (-inner).exp()) * dot(gated),
                    None => inner * normal_cdf(inner),
                };
                for i in 0..WIDTH {
                    let factor = w_out[(e * HIDDEN + h) * WIDTH + i];
                    expected[t * WIDTH + i] += weight * hidden * factor;
                }
            }
        }
        assert_close(y, &expected);
    }

    #[rstest]
    fn gradients_of_tokens_experts_and_router(
        device: Device,
        #[values(Expert::Gelu, Expert::SwiGlu)] expert: Expert,
        #[values(None, Some(1.0))] capacity: Option<f64>,
    ) {
        let moe = moe(&device, expert, capacity);
        let x = tensor(&random(TOKENS * WIDTH, 22), [TOKENS, WIDTH], &device);
        let sum = |moe: &SparseMoe, x: Tensor<2>| {
            let (y, routing) = moe.forward(x);
            probe(y) + routing.balance_loss + routing.z_loss
        };
        check_gradient(x.clone(), |x| sum(&moe, x));
        for which in 0..3 {
            let weight = match (which, &moe.w_gated) {
                (0, _) => moe.w_in.val(),
                (1, _) => moe.w_out.val(),
                (_, Some(gated)) => gated.val(),
                (_, None) => continue,
            };
            check_gradient(weight, |weight| {
                let mut moe = moe.clone();
                match which {
                    0 => moe.w_in = param(weight),
                    1 => moe.w_out = param(weight),
                    _ => moe.w_gated = Some(param(weight)),
                }
                sum(&moe, x.clone())
            });
        }
    }
}
