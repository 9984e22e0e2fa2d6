use burn::{
    config::Config,
    module::Module,
    nn::{Dropout, DropoutConfig, Linear, LinearConfig},
    tensor::{Bool, Device, Int, Tensor, ops::IndexingUpdateOp},
};

use super::support::softmax_or_zero;
use crate::{
    dense::linear,
    topk::{Method, TopkOptions, topk},
};

/// Configures [`TopkAttention`].
#[derive(Config, Debug, PartialEq)]
pub struct TopkAttentionConfig {
    /// Token width, divisible by the heads.
    pub d_model: usize,
    /// Heads.
    pub heads: usize,
    /// Keys per query; all if fewer.
    pub k: usize,
    /// Selection method. Default: exact.
    #[config(default = "Method::Exact")]
    pub method: Method,
    /// Hides later keys. Default: false.
    #[config(default = false)]
    pub causal: bool,
    /// Dropout of selected keys. Default: 0.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Biases of projections. Default: true.
    #[config(default = true)]
    pub bias: bool,
}

impl TopkAttentionConfig {
    /// Initializes the projections.
    ///
    /// Panics unless heads divide the width and dropout is in `[0, 1)`.
    pub fn init(&self, device: &Device) -> TopkAttention {
        let (width, heads) = (self.d_model, self.heads);
        assert!(
            heads > 0 && width.is_multiple_of(heads),
            "TopkAttention: {heads} heads for a width of {width}"
        );
        let config = LinearConfig::new(width, width).with_bias(self.bias);
        TopkAttention {
            query: config.init(device),
            key: config.init(device),
            value: config.init(device),
            output: config.init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
            heads,
            k: self.k,
            method: self.method,
            causal: self.causal,
        }
    }
}

/// Multi-head attention to the k best-scoring keys per query.
///
/// `y = softmax(topk(Q Kᵀ / √d)) V`, as dense attention with −∞ for other keys. Gupta et al., 2021.
///
/// Scores are dense; softmax, dropout and gradients use k per query. Without autodiff, gathers
/// values if `k · d_value < keys`; otherwise multiplies dense weights.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sparsek::nn::TopkAttentionConfig;
///
/// let device = Device::flex();
/// let attention = TopkAttentionConfig::new(8, 2, 3).with_causal(true).init(&device);
/// let x = Tensor::<3>::random([1, 5, 8], Distribution::Default, &device);
/// assert_eq!(attention.forward(x, None).dims(), [1, 5, 8]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct TopkAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    dropout: Dropout,
    heads: usize,
    k: usize,
    #[module(skip)]
    method: Method,
    causal: bool,
}

impl TopkAttention {
    /// Self-attention: `[batch, tokens, d_model]` → same shape.
    ///
    /// `padding`: `[batch, tokens]`, true if hidden.
    pub fn forward(&self, x: Tensor<3>, padding: Option<Tensor<2, Bool>>) -> Tensor<3> {
        let [batch, tokens, width] = x.dims();
        let rows: Tensor<2> = x.reshape([batch * tokens, width]);
        let project = |layer: &Linear, rows: Tensor<2>| {
            linear(rows, layer.weight.val(), layer.bias.as_ref().map(|bias| bias.val()))
        };
        let heads = |layer: &Linear| {
            let rows = project(layer, rows.clone());
            let rows: Tensor<4> = rows.reshape([batch, tokens, self.heads, width / self.heads]);
            rows.swap_dims(1, 2)
        };
        let (query, key, value) = (heads(&self.query), heads(&self.key), heads(&self.value));
        let y = self.attend(query, key, value, padding).swap_dims(1, 2);
        project(&self.output, y.reshape([batch * tokens, width])).reshape([batch, tokens, width])
    }

    /// Attends without projections.
    ///
    /// - `query`: `[batch, heads, queries, d]`, `key`: `[batch, heads, keys, d]`
    /// - `value`: `[batch, heads, keys, d_value]` → `[batch, heads, queries, d_value]`
    /// - `padding`: `[batch, keys]`, true if hidden
    ///
    /// Causal: query i sees keys up to `keys − queries + i`. Queries without keys give 0.
    pub fn attend(
        &self,
        query: Tensor<4>,
        key: Tensor<4>,
        value: Tensor<4>,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<4> {
        let [batch, heads, queries, d] = query.dims();
        let [_, _, keys, d_value] = value.dims();
        assert!(
            key.dims() == [batch, heads, keys, d] && value.dims()[..2] == [batch, heads],
            "TopkAttention: queries {:?}, keys {:?} and values {:?}",
            query.dims(),
            key.dims(),
            value.dims()
        );
        let scale = 1.0 / (d as f64).sqrt();
        let mut scores = (query * scale).matmul(key.transpose());
        let shape = [batch, heads, queries, keys];
        let device = scores.device();
        if self.causal {
            let offset = keys as i64 - queries as i64;
            let later = Tensor::<2, Bool>::tril_mask([queries, keys], offset, &device);
            let later = later.unsqueeze::<4>().expand(shape);
            scores = scores.mask_fill(later, f64::NEG_INFINITY);
        }
        if let Some(padding) = padding {
            assert!(
                padding.dims() == [batch, keys],
                "TopkAttention: padding {:?} instead of {:?}",
                padding.dims(),
                [batch, keys]
            );
            let unseen = padding.reshape([batch, 1, 1, keys]).expand(shape);
            scores = scores.mask_fill(unseen, f64::NEG_INFINITY);
        }
        let k = self.k.min(keys);
        if k == 0 || queries == 0 {
            let options = (&device, value.dtype());
            return Tensor::zeros([batch, heads, queries, d_value], options);
        }
        let options = TopkOptions::new(k).with_method(self.method);
        let (scores, indices) = topk(scores, &options, 3);
        let weights = self.dropout.forward(softmax_or_zero(scores));
        if !device.is_autodiff() && k * d_value < keys {
            gathered(weights, indices, value)
        } else {
            placed(weights, indices, keys).matmul(value)
        }
    }
}

fn gathered(weights: Tensor<4>, indices: Tensor<4, Int>, value: Tensor<4>) -> Tensor<4> {
    let ([batch, heads, queries, k], [.., keys, d]) = (weights.dims(), value.dims());
    let options = (&indices.device(), indices.dtype());
    let all = (batch * heads) as i64;
    let first = Tensor::<1, Int>::arange(0..all, options) * keys as i64;
    let rows = indices + first.reshape([batch, heads, 1, 1]);
    let value: Tensor<2> = value.reshape([batch * heads * keys, d]);
    let chosen = value.select(0, rows.reshape([batch * heads * queries * k]));
    let chosen: Tensor<3> = chosen.reshape([batch * heads * queries, k, d]);
    let weights: Tensor<3> = weights.reshape([batch * heads * queries, 1, k]);
    weights.matmul(chosen).reshape([batch, heads, queries, d])
}

fn placed(weights: Tensor<4>, indices: Tensor<4, Int>, keys: usize) -> Tensor<4> {
    let [batch, heads, queries, _] = weights.dims();
    let options = (&weights.device(), weights.dtype());
    let zeros = Tensor::zeros([batch, heads, queries, keys], options);
    zeros.scatter(3, indices, weights, IndexingUpdateOp::Add)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::TensorData;
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{
        assert_close, check_gradient, device, double, host, param, probe, random, tensor,
    };

    const BATCH: usize = 2;
    const HEADS: usize = 2;
    const QUERIES: usize = 3;
    const KEYS: usize = 7;
    const D: usize = 2;

    fn layer(device: &Device, k: usize, causal: bool) -> TopkAttention {
        let config = TopkAttentionConfig::new(HEADS * D, HEADS, k).with_causal(causal);
        double(config.init(device))
    }

    fn oracle(
        [q, key, value]: [&[f64]; 3],
        k: usize,
        causal: bool,
        padding: Option<&[bool]>,
        d_value: usize,
    ) -> Vec<f64> {
        let mut y = vec![0.0; BATCH * HEADS * QUERIES * d_value];
        for head in 0..BATCH * HEADS {
            for i in 0..QUERIES {
                let score = |j: usize| {
                    let (q, key) = (&q[(head * QUERIES + i) * D..], &key[(head * KEYS + j) * D..]);
                    let dot: f64 = (0..D).map(|d| q[d] * key[d]).sum();
                    dot / (D as f64).sqrt()
                };
                let seen = |j: &usize| {
                    let padded = padding.is_some_and(|padding| padding[head / HEADS * KEYS + j]);
                    !padded && (!causal || *j <= KEYS - QUERIES + i)
                };
                let mut keys: Vec<usize> = (0..KEYS).filter(seen).collect();
                keys.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
                keys.truncate(k);
                let total: f64 = keys.iter().map(|&j| score(j).exp()).sum();
                for &j in &keys {
                    for d in 0..d_value {
                        let share = score(j).exp() / total;
                        y[(head * QUERIES + i) * d_value + d] +=
                            share * value[(head * KEYS + j) * d_value + d];
                    }
                }
            }
        }
        y
    }

    fn padding(device: &Device) -> (Vec<bool>, Tensor<2, Bool>) {
        let hidden: Vec<bool> = (0..BATCH * KEYS).map(|i| i < KEYS || i % 3 == 0).collect();
        let data = TensorData::new(hidden.clone(), [BATCH, KEYS]);
        (hidden, Tensor::from_data(data, device))
    }

    #[rstest]
    fn equals_dense_attention_with_infinities(
        device: Device,
        #[values(0, 1, 3, 7, 100)] k: usize,
        #[values(true, false)] causal: bool,
        #[values(true, false)] padded: bool,
        #[values(1, 3)] d_value: usize,
        #[values(true, false)] tracked: bool,
    ) {
        let device = if tracked { device } else { device.without_autodiff() };
        let layer = layer(&device, k, causal);
        let heads = BATCH * HEADS;
        let q = random(heads * QUERIES * D, 1);
        let key = random(heads * KEYS * D, 2);
        let value = random(heads * KEYS * d_value, 3);
        let (hidden, mask) = padding(&device);
        let (hidden, mask) = match padded {
            true => (Some(&hidden[..]), Some(mask)),
            false => (None, None),
        };
        let expected = oracle([&q, &key, &value], k, causal, hidden, d_value);
        let y = layer.attend(
            tensor(&q, [BATCH, HEADS, QUERIES, D], &device),
            tensor(&key, [BATCH, HEADS, KEYS, D], &device),
            tensor(&value, [BATCH, HEADS, KEYS, d_value], &device),
            mask,
        );
        assert_close(y, &expected);
    }

    #[rstest]
    fn gradients_of_queries_keys_and_values(device: Device, #[values(true, false)] padded: bool) {
        let layer = layer(&device, 3, true);
        let shapes = [QUERIES, KEYS, KEYS].map(|rows| [BATCH, HEADS, rows, D]);
        let inputs: Vec<Tensor<4>> = (0..3)
            .map(|i| tensor(&random(shapes[i].iter().product(), i as u64), shapes[i], &device))
            .collect();
        let mask = padded.then(|| padding(&device).1);
        for which in 0..3 {
            check_gradient(inputs[which].clone(), |x| {
                let mut inputs = inputs.clone();
                inputs[which] = x;
                let [q, k, v] = [0, 1, 2].map(|i| inputs[i].clone());
                probe(layer.attend(q, k, v, mask.clone()))
            });
        }
    }

    #[rstest]
    fn projects_heads_and_their_gradients(device: Device) {
        let layer = layer(&device, 2, false);
        let x = tensor(&random(2 * 5 * 4, 6), [2, 5, 4], &device);
        let split = |layer: &Linear| {
            let rows: Tensor<4> = layer.forward(x.clone()).reshape([2, 5, HEADS, D]);
            rows.swap_dims(1, 2)
        };
        let (q, k, v) = (split(&layer.query), split(&layer.key), split(&layer.value));
        let y = layer.attend(q, k, v, None).swap_dims(1, 2);
        let expected = layer.output.forward(y.reshape([2, 5, 4]));
        assert_close(layer.forward(x.clone(), None), &host::<3>(expected));
        check_gradient(x.clone(), |x| probe(layer.forward(x, None)));
        check_gradient(layer.query.weight.val(), |weight| {
            let mut layer = layer.clone();
            layer.query.weight = param(weight);
            probe(layer.forward(x.clone(), None))
        });
    }

    #[rstest]
    fn dropout_acts_in_training_only(device: Device) {
        let config = TopkAttentionConfig::new(4, 1, 64).with_dropout(0.5);
        let layer = double(config.init(&device));
        let (q, key) = ([1, 1, 100, 4], [1, 1, 64, 4]);
        let like = |shape| tensor(&vec![0.0; 4 * shape], [1, 1, shape, 4], &device);
        let (q, key) = (like(q[2]), like(key[2]));
        let y = layer.attend(q.clone(), key.clone(), key.clone() + 1.0, None);
        let sums = host(y);
        assert!(sums.iter().any(|y| (y - 1.0).abs() > 1e-3));
        let mean = sums.iter().sum::<f64>() / sums.len() as f64;
        // Each of 100 rows has variance 1 / 64.
        assert!((mean - 1.0).abs() < 5.0 / 80.0, "{mean}");
        let valid = layer.valid();
        let y = valid.attend(q.inner(), key.clone().inner(), key.inner() + 1.0, None);
        assert_close(y, &[1.0; 400]);
    }
}
