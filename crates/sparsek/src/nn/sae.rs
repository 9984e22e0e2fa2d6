use burn::{
    backend::Dispatch,
    config::Config,
    module::{Flag, Module, Param, RunningState},
    tensor::{Device, Distribution, Tensor, activation::relu},
};

use crate::{
    dense::{add_bias, column_sums, linear, linear_compressed, linear_selected},
    nn::support::mean,
    ops::DenseGradientOps,
    sparse::{Compressed, sparse_topk},
    topk::{Method, TopkOptions, topk_bool_mask},
};

/// Latents to keep.
#[derive(Config, Copy, Debug, PartialEq, Eq)]
pub enum SaeActivation {
    /// k greatest per row (Gao et al., 2024).
    Topk,
    /// `k · rows` greatest per training batch; otherwise ≥ a moving mean of the least kept
    /// (Bussmann et al., 2024).
    BatchTopk,
}

/// Configures [`TopkSae`].
#[derive(Config, Debug, PartialEq)]
pub struct TopkSaeConfig {
    /// Row width.
    pub d_model: usize,
    /// Latents.
    pub latents: usize,
    /// Latents per row; the mean for BatchTopK.
    pub k: usize,
    /// Default: k per row.
    #[config(default = "SaeActivation::Topk")]
    pub activation: SaeActivation,
    /// Dead latents per row in the auxiliary loss. Default: half the width, at most all.
    pub k_auxiliary: Option<usize>,
    /// Inactive training rows until death. Default: 10 million.
    #[config(default = 10_000_000)]
    pub dead_after: usize,
    /// Batch weight in BatchTopK's threshold. Default: 0.01.
    #[config(default = 0.01)]
    pub momentum: f64,
    /// Selection method. Default: exact.
    #[config(default = "Method::Exact")]
    pub method: Method,
}

impl TopkSaeConfig {
    /// Initializes random decoder rows of norm 1, the encoder as transpose, zero biases.
    ///
    /// Panics if k or `k_auxiliary` exceeds the latents, or momentum is outside `[0, 1]`.
    pub fn init(&self, device: &Device) -> TopkSae {
        let (width, latents) = (self.d_model, self.latents);
        let k_auxiliary = self.k_auxiliary.unwrap_or((width / 2).min(latents));
        assert!(
            self.k.max(k_auxiliary) <= latents,
            "TopkSae: k = {} and k_auxiliary = {k_auxiliary} of {latents} latents",
            self.k
        );
        assert!(
            (0.0..=1.0).contains(&self.momentum),
            "TopkSae: a momentum of {} is outside [0, 1]",
            self.momentum
        );
        let normal = Distribution::Normal(0.0, 1.0);
        let rows = unit_rows(Tensor::random([latents, width], normal, device));
        let zeros = |count: usize| Param::from_tensor(Tensor::zeros([count], device));
        TopkSae {
            encoder: Param::from_tensor(rows.clone().transpose()),
            encoder_bias: zeros(latents),
            decoder: Param::from_tensor(rows),
            bias: zeros(width),
            idle: RunningState::new(Tensor::zeros([latents], device)),
            threshold: RunningState::new(Tensor::full([1], UNKNOWN, device)),
            training: Param::from_bool(true),
            k: self.k,
            k_auxiliary,
            dead_after: self.dead_after,
            momentum: self.momentum,
            activation: self.activation,
            method: self.method,
        }
    }
}

/// Threshold before training.
const UNKNOWN: f64 = -1.0;

/// Reconstructs rows from k latents: `x ≈ z V + b`.
///
/// - latents: `z = relu(topk(s))`, with scores `s = (x − b) W + c`
/// - `V`: decoder rows divided by their norm
/// - auxiliary loss: `mean (e − relu(topk_dead(s)) V)²` over dead latents, constant
///   `e = x − z V − b`; 0 if none. The paper weighs it 1/32
///
/// Trains on autodiff devices unless frozen. Saves idle counts and threshold.
///
/// TopK multiplies dense matrices only for scores; see [`linear_compressed`] and
/// [`linear_selected`]. BatchTopK multiplies dense latents and selects from `rows · latents`
/// scores.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Distribution, Tensor};
/// use sparsek::nn::TopkSaeConfig;
///
/// let device = Device::flex().autodiff();
/// let sae = TopkSaeConfig::new(8, 32, 4).init(&device);
/// let x = Tensor::<2>::random([10, 8], Distribution::Default, &device);
/// let output = sae.forward(x.clone());
/// assert_eq!(output.reconstruction.dims(), [10, 8]);
/// let loss = output.loss + output.auxiliary_loss / 32.0;
/// assert!(sae.decoder.grad(&loss.backward()).is_some());
/// let active = sae.encode(x).greater_elem(0.0).int().sum().into_scalar::<i64>();
/// assert!(active <= 40);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct TopkSae {
    /// W: `[d_model, latents]`.
    pub encoder: Param<Tensor<2>>,
    /// c: `[latents]`.
    pub encoder_bias: Param<Tensor<1>>,
    /// Unnormalized V: `[latents, d_model]`.
    pub decoder: Param<Tensor<2>>,
    /// b: `[d_model]`. The paper starts at the data's median.
    pub bias: Param<Tensor<1>>,
    idle: RunningState<Tensor<1>>,
    threshold: RunningState<Tensor<1>>,
    training: Param<Flag>,
    k: usize,
    k_auxiliary: usize,
    dead_after: usize,
    momentum: f64,
    #[module(skip)]
    activation: SaeActivation,
    #[module(skip)]
    method: Method,
}

/// Result of [`TopkSae::forward`].
#[derive(Clone, Debug)]
pub struct SaeOutput {
    /// `z V + b`: `[rows, d_model]`.
    pub reconstruction: Tensor<2>,
    /// Mean squared error: `[1]`. NaN without rows.
    pub loss: Tensor<1>,
    /// Loss of dead latents: `[1]`. 0 outside training.
    pub auxiliary_loss: Tensor<1>,
}

impl TopkSae {
    /// Reconstructs `x`: `[rows, d_model]`.
    pub fn forward(&self, x: Tensor<2>) -> SaeOutput {
        let training = x.device().is_autodiff() && self.training.is_enabled();
        let training = training && x.dims()[0] > 0;
        let (centered, decoder) = (self.centered(x.clone()), self.dictionary());
        let (sum, scores, active) = match self.activation {
            SaeActivation::Topk => {
                let scores = self.detached_scores(&centered);
                let latents = self.select(&centered, scores.clone(), self.k);
                let active = training.then(|| any_of_columns(&latents));
                (linear_compressed(&latents, decoder.clone()), scores, active)
            }
            SaeActivation::BatchTopk => {
                let scores = self.scores(centered.clone());
                let latents = self.select_batch(scores.clone(), training);
                let active = training.then(|| latents.clone().detach().max_dim(0));
                (linear(latents, decoder.clone(), None), scores.detach(), active)
            }
        };
        let reconstruction = add_bias(sum, self.bias.val());
        let error = x - reconstruction.clone();
        let auxiliary_loss = match active {
            Some(active) => {
                self.count(active.reshape([-1]), centered.dims()[0]);
                self.auxiliary_loss(&centered, scores, decoder, error.clone().detach())
            }
            None => Tensor::zeros([1], (&error.device(), error.dtype())),
        };
        SaeOutput { reconstruction, loss: mean(error.square()), auxiliary_loss }
    }

    /// Encodes as outside training: `[rows, d_model]` → `[rows, latents]`. BatchTopK keeps all
    /// positive latents until its threshold is trained.
    pub fn encode(&self, x: Tensor<2>) -> Tensor<2> {
        match self.activation {
            SaeActivation::Topk => self.compress(x).to_dense(),
            SaeActivation::BatchTopk => {
                let scores = self.scores(self.centered(x));
                self.select_batch(scores, false)
            }
        }
    }

    /// k greatest latents per row, with either activation: `[rows, d_model]` → `[rows, latents]`.
    pub fn compress(&self, x: Tensor<2>) -> Compressed {
        let centered = self.centered(x);
        let scores = self.detached_scores(&centered);
        self.select(&centered, scores, self.k)
    }

    /// `[rows, latents]` → `[rows, d_model]`.
    pub fn decode(&self, latents: Tensor<2>) -> Tensor<2> {
        linear(latents, self.dictionary(), Some(self.bias.val()))
    }

    /// Normalized V: `[latents, d_model]`. Differentiable.
    pub fn dictionary(&self) -> Tensor<2> {
        unit_rows(self.decoder.val())
    }

    /// Inactive training rows: `[latents]`.
    pub fn idle(&self) -> Tensor<1> {
        self.idle.value_sync()
    }

    /// BatchTopK's threshold: `[1]`; negative before training.
    pub fn threshold(&self) -> Tensor<1> {
        self.threshold.value_sync()
    }

    fn centered(&self, x: Tensor<2>) -> Tensor<2> {
        let [width, _] = self.encoder.dims();
        assert!(
            x.dims()[1] == width,
            "TopkSae: rows of {} elements for a width of {width}",
            x.dims()[1]
        );
        add_bias(x, -self.bias.val())
    }

    fn scores(&self, centered: Tensor<2>) -> Tensor<2> {
        linear(centered, self.encoder.val(), Some(self.encoder_bias.val()))
    }

    fn detached_scores(&self, centered: &Tensor<2>) -> Tensor<2> {
        let bias = self.encoder_bias.val().detach();
        linear(centered.clone().detach(), self.encoder.val().detach(), Some(bias))
    }

    /// Differentiable in selected scores only.
    fn select(&self, centered: &Tensor<2>, scores: Tensor<2>, k: usize) -> Compressed {
        let kept = sparse_topk(scores, k, self.method);
        let dropped = kept.values().clone().equal_elem(f64::NEG_INFINITY);
        let (rows, device) = (kept.rows(), centered.device());
        let ones = Tensor::ones([rows, 1], (&device, centered.dtype()));
        let encoder = self.encoder.val().transpose();
        let bias = self.encoder_bias.val().unsqueeze_dim(1);
        let biases = linear_selected(ones, bias, &kept).values().clone();
        let latents = linear_selected(centered.clone(), encoder, &kept);
        latents.map(|sums| relu(sums + biases).mask_fill(dropped, 0.0))
    }

    fn select_batch(&self, scores: Tensor<2>, training: bool) -> Tensor<2> {
        let [rows, latents] = scores.dims();
        let positive = relu(scores);
        if rows == 0 {
            return positive;
        }
        if !training {
            let least = self.threshold().to_device(&positive.device()).cast(positive.dtype());
            let least = least.clamp_min(0.0).unsqueeze::<2>().expand([rows, latents]);
            let dropped = positive.clone().lower(least);
            return positive.mask_fill(dropped, 0.0);
        }
        let all: Tensor<2> = positive.clone().detach().reshape([1, rows * latents]);
        let kept =
            topk_bool_mask(all, &TopkOptions::new(rows * self.k), 1).reshape([rows, latents]);
        let latents = positive.mask_fill(kept.bool_not(), 0.0);
        self.update_threshold(latents.clone().detach());
        latents
    }

    /// Skips batches without a positive latent.
    fn update_threshold(&self, latents: Tensor<2>) {
        let before = self.threshold();
        let none = latents.clone().lower_equal_elem(0.0);
        let least = latents.mask_fill(none, f64::INFINITY).min();
        let least = least.to_device(&before.device()).cast(before.dtype());
        let first = before.clone().lower_elem(0.0);
        let moved = before.clone() * (1.0 - self.momentum) + least.clone() * self.momentum;
        let moved = moved.mask_where(first, least.clone());
        let moved = moved.mask_where(least.equal_elem(f64::INFINITY), before);
        self.threshold.update(moved.detach());
    }

    /// Resets latents with `active > 0`.
    fn count(&self, active: Tensor<1>, rows: usize) {
        let idle = self.idle();
        let active = active.to_device(&idle.device()).greater_elem(0.0);
        let idle = (idle + rows as f64).mask_fill(active, 0.0);
        self.idle.update(idle.detach());
    }

    fn auxiliary_loss(
        &self,
        centered: &Tensor<2>,
        scores: Tensor<2>,
        decoder: Tensor<2>,
        error: Tensor<2>,
    ) -> Tensor<1> {
        let (shape, device) = (scores.dims(), scores.device());
        let idle = self.idle().to_device(&device);
        let dead = idle.greater_equal_elem(self.dead_after as f64);
        let count = column_sums(dead.clone().float().unsqueeze_dim(1));
        let any = count.greater_elem(0.0).float().cast(scores.dtype());
        let alive = dead.bool_not().unsqueeze::<2>().expand(shape);
        let scores = scores.mask_fill(alive, f64::NEG_INFINITY);
        let latents = self.select(centered, scores, self.k_auxiliary);
        let missing = error - linear_compressed(&latents, decoder);
        mean(missing.square()) * any
    }
}

fn any_of_columns(latents: &Compressed) -> Tensor<2> {
    let (values, width) = (latents.values().clone().inner(), latents.width());
    let like = (&values.device(), values.dtype());
    let positive = values.clone().greater_elem(0.0).float().cast(values.dtype());
    let counts = <Dispatch as DenseGradientOps>::linear_compressed_weight_gradient(
        positive.into_dispatch(),
        latents.columns().clone().inner().into_dispatch(),
        Tensor::<2>::ones([latents.rows(), 1], like).into_dispatch(),
        width,
    );
    Tensor::from_inner(Tensor::from_dispatch(counts))
}

/// Keeps zero rows.
fn unit_rows(x: Tensor<2>) -> Tensor<2> {
    let norm = x.clone().square().sum_dim(1).sqrt();
    let zero = norm.clone().detach().equal_elem(0.0);
    x / norm.mask_fill(zero, 1.0)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{
        assert_close, check_gradient, device, double, host, param, random, tensor,
    };

    const ROWS: usize = 5;
    const WIDTH: usize = 3;
    const LATENTS: usize = 8;
    /// Others score too low for selection.
    const LIVE: usize = LATENTS - 2;
    const K: usize = 2;
    const MOMENTUM: f64 = 0.25;

    fn sae(device: &Device, activation: SaeActivation, dead: bool) -> TopkSae {
        let config = TopkSaeConfig::new(WIDTH, LATENTS, K)
            .with_activation(activation)
            .with_k_auxiliary(Some(1))
            .with_dead_after(1000)
            .with_momentum(MOMENTUM);
        let mut sae = double(config.init(device));
        let bias: Vec<f64> = (0..LATENTS).map(|i| if i < LIVE { 9.0 } else { 0.3 }).collect();
        sae.encoder_bias = param(tensor(&bias, [LATENTS], device));
        let idle: Vec<f64> =
            (0..LATENTS).map(|i| if dead && i >= LIVE { 1e6 } else { 0.0 }).collect();
        sae.idle = RunningState::new(tensor(&idle, [LATENTS], device));
        sae.threshold = RunningState::new(tensor(&[UNKNOWN], [1], device));
        sae
    }

    struct Oracle {
        encoder: Vec<f64>,
        encoder_bias: Vec<f64>,
        dictionary: Vec<f64>,
        bias: Vec<f64>,
    }

    impl Oracle {
        fn of(sae: &TopkSae) -> Self {
            let mut dictionary = host(sae.decoder.val());
            for row in dictionary.chunks_mut(WIDTH) {
                let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter_mut().for_each(|x| *x /= norm);
            }
            Self {
                encoder: host(sae.encoder.val()),
                encoder_bias: host(sae.encoder_bias.val()),
                dictionary,
                bias: host(sae.bias.val()),
            }
        }

        fn scores(&self, x: &[f64]) -> Vec<f64> {
            let rows = x.len() / WIDTH;
            let at = |place: usize| {
                let (row, latent) = (place / LATENTS, place % LATENTS);
                let terms = (0..WIDTH).map(|i| {
                    (x[row * WIDTH + i] - self.bias[i]) * self.encoder[i * LATENTS + latent]
                });
                terms.sum::<f64>() + self.encoder_bias[latent]
            };
            (0..rows * LATENTS).map(at).collect()
        }

        fn decode(&self, latents: &[f64]) -> Vec<f64> {
            let rows = latents.len() / LATENTS;
            let at = |place: usize| {
                let (row, i) = (place / WIDTH, place % WIDTH);
                let terms = (0..LATENTS)
                    .map(|l| latents[row * LATENTS + l] * self.dictionary[l * WIDTH + i]);
                terms.sum::<f64>()
            };
            (0..rows * WIDTH).map(at).collect()
        }
    }

    fn selected(scores: &[f64], block: usize, k: usize) -> Vec<f64> {
        let mut y = vec![0.0; scores.len()];
        for (scores, y) in scores.chunks(block).zip(y.chunks_mut(block)) {
            let mut order: Vec<usize> = (0..block).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            order[..k].iter().for_each(|&i| y[i] = scores[i].max(0.0));
        }
        y
    }

    fn mean_square(x: impl ExactSizeIterator<Item = f64>) -> f64 {
        let count = x.len() as f64;
        x.map(|x| x * x).sum::<f64>() / count
    }

    #[rstest]
    fn training_is_the_formulas(
        device: Device,
        #[values(SaeActivation::Topk, SaeActivation::BatchTopk)] activation: SaeActivation,
        #[values(true, false)] dead: bool,
    ) {
        let sae = sae(&device, activation, dead);
        let oracle = Oracle::of(&sae);
        let mut idle = host(sae.idle());
        let mut threshold = None;
        for step in 0..3 {
            let x = random(ROWS * WIDTH, step);
            let scores = oracle.scores(&x);
            let latents = match activation {
                SaeActivation::Topk => selected(&scores, LATENTS, K),
                SaeActivation::BatchTopk => selected(&scores, ROWS * LATENTS, ROWS * K),
            };
            let sums = oracle.decode(&latents);
            let y: Vec<f64> =
                sums.iter().enumerate().map(|(i, x)| x + oracle.bias[i % WIDTH]).collect();
            let error: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
            for (latent, idle) in idle.iter_mut().enumerate() {
                let active = (0..ROWS).any(|row| latents[row * LATENTS + latent] > 0.0);
                *idle = if active { 0.0 } else { *idle + ROWS as f64 };
            }
            let only_dead: Vec<f64> = scores
                .iter()
                .enumerate()
                .map(|(i, &s)| if i % LATENTS < LIVE { f64::NEG_INFINITY } else { s })
                .collect();
            let guess = oracle.decode(&selected(&only_dead, LATENTS, 1));
            let auxiliary = mean_square(error.iter().zip(&guess).map(|(e, g)| e - g));

            let output = sae.forward(tensor(&x, [ROWS, WIDTH], &device));
            assert_close(output.reconstruction, &y);
            assert_close(output.loss, &[mean_square(error.iter().copied())]);
            assert_close(output.auxiliary_loss, &[if dead { auxiliary } else { 0.0 }]);
            assert_close(sae.idle(), &idle);
            if activation == SaeActivation::BatchTopk {
                let positive = latents.iter().copied().filter(|&z| z > 0.0);
                let least = positive.fold(f64::INFINITY, f64::min);
                let moved = |t: f64| t * (1.0 - MOMENTUM) + least * MOMENTUM;
                threshold = Some(threshold.map_or(least, moved));
                assert_close(sae.threshold(), &[threshold.unwrap()]);
            }
        }
    }

    #[rstest]
    fn inference_encodes_and_decodes(
        device: Device,
        #[values(SaeActivation::Topk, SaeActivation::BatchTopk)] activation: SaeActivation,
        #[values(UNKNOWN, 9.5)] threshold: f64,
    ) {
        let mut sae = sae(&device, activation, true);
        sae.threshold = RunningState::new(tensor(&[threshold], [1], &device));
        let oracle = Oracle::of(&sae);
        let x = random(ROWS * WIDTH, 6);
        let scores = oracle.scores(&x);
        let rows = selected(&scores, LATENTS, K);
        let latents: Vec<f64> = match activation {
            SaeActivation::Topk => rows.clone(),
            SaeActivation::BatchTopk => {
                let keep = |&s: &f64| if s >= threshold.max(0.0) { s } else { 0.0 };
                scores.iter().map(keep).collect()
            }
        };
        let valid = sae.valid();
        let x = tensor(&x, [ROWS, WIDTH], &device).inner();
        let (idle, before) = (host(valid.idle()), host(valid.threshold()));
        let output = valid.forward(x.clone());
        assert_eq!((host(valid.idle()), host(valid.threshold())), (idle, before));
        assert_eq!(host(output.auxiliary_loss), [0.0]);
        assert_close(valid.encode(x.clone()), &latents);
        assert_close(valid.compress(x).to_dense(), &rows);
        let decoded = valid.decode(tensor(&latents, [ROWS, LATENTS], &device).inner());
        assert_close(decoded, &host(output.reconstruction));
    }

    #[rstest]
    fn gradients_of_rows_and_parameters(
        device: Device,
        #[values(SaeActivation::Topk, SaeActivation::BatchTopk)] activation: SaeActivation,
    ) {
        let sae = sae(&device, activation, true);
        let x = tensor(&random(ROWS * WIDTH, 9), [ROWS, WIDTH], &device);
        let loss = |sae: &TopkSae, x: Tensor<2>| sae.forward(x).loss;
        check_gradient(x.clone(), |x| loss(&sae, x));
        check_gradient(sae.encoder.val(), |w| {
            loss(&TopkSae { encoder: param(w), ..sae.clone() }, x.clone())
        });
        check_gradient(sae.decoder.val(), |v| {
            loss(&TopkSae { decoder: param(v), ..sae.clone() }, x.clone())
        });
        check_gradient(sae.encoder_bias.val(), |c| {
            loss(&TopkSae { encoder_bias: param(c), ..sae.clone() }, x.clone())
        });
        check_gradient(sae.bias.val(), |b| {
            loss(&TopkSae { bias: param(b), ..sae.clone() }, x.clone())
        });
        let error = tensor(&random(ROWS * WIDTH, 10), [ROWS, WIDTH], &device);
        let auxiliary = |sae: &TopkSae| {
            let centered = sae.centered(x.clone());
            let scores = sae.detached_scores(&centered);
            sae.auxiliary_loss(&centered, scores, sae.dictionary(), error.clone())
        };
        check_gradient(sae.encoder.val(), |w| {
            auxiliary(&TopkSae { encoder: param(w), ..sae.clone() })
        });
        check_gradient(sae.decoder.val(), |v| {
            auxiliary(&TopkSae { decoder: param(v), ..sae.clone() })
        });
    }

    #[rstest]
    fn dead_latents_are_moved(device: Device) {
        let mut sae = sae(&device, SaeActivation::Topk, true);
        sae.encoder_bias = sae.encoder_bias.map(Tensor::require_grad);
        let x = tensor(&random(ROWS * WIDTH, 9), [ROWS, WIDTH], &device);
        let gradients = sae.forward(x).auxiliary_loss.backward();
        let gradient = host(sae.encoder_bias.grad(&gradients).unwrap());
        assert!(gradient[..LIVE].iter().all(|&g| g == 0.0), "{gradient:?}");
        assert!(gradient[LIVE..].iter().any(|&g| g != 0.0), "{gradient:?}");
    }

    #[rstest]
    fn no_rows_change_nothing(
        device: Device,
        #[values(SaeActivation::Topk, SaeActivation::BatchTopk)] activation: SaeActivation,
    ) {
        let sae = sae(&device, activation, false);
        let output = sae.forward(tensor(&[], [0, WIDTH], &device));
        assert_eq!(output.reconstruction.dims(), [0, WIDTH]);
        assert_eq!(host(sae.idle()), [0.0; LATENTS]);
        assert_eq!(host(sae.threshold()), [UNKNOWN]);
    }

    #[rstest]
    #[case(TopkSaeConfig::new(3, 4, 5))]
    #[case(TopkSaeConfig::new(3, 4, 1).with_k_auxiliary(Some(5)))]
    #[case(TopkSaeConfig::new(3, 4, 1).with_momentum(2.0))]
    #[should_panic(expected = "TopkSae: ")]
    fn impossible_settings_panic(device: Device, #[case] config: TopkSaeConfig) {
        config.init(&device);
    }
}
