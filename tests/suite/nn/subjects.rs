//! Layers under test: what each computes on a device, in a dtype.

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Bool, DType, Device, Gradients, Int, Tensor, TensorData},
};
use sparsek::nn::{
    Expert, Gate, KWinnersConfig, Kept, MaxKConfig, Routing, SaeActivation, Sampler, SamplerConfig,
    SparseMoeConfig, TopkAttentionConfig, TopkCompressorConfig, TopkRouterConfig, TopkSaeConfig,
    magnitude_mask, magnitude_mask_rows, n_of_m_mask,
};
use sparsek_tests::data::Random;

/// Results of a layer: outputs, then gradients.
#[derive(Default, PartialEq)]
pub struct Run {
    pub floats: Vec<Vec<f64>>,
    /// Selections, which must be equal.
    pub integers: Vec<Vec<i64>>,
}

#[derive(Clone, Copy)]
pub struct Subject {
    pub name: &'static str,
    /// Whether it runs matrix products.
    pub products: bool,
    /// Whether bf16 selects as f64.
    pub bf16: bool,
    pub run: fn(&Device, DType) -> Run,
}

const fn plain(name: &'static str, run: fn(&Device, DType) -> Run) -> Subject {
    Subject { name, products: false, bf16: true, run }
}

const fn product(name: &'static str, run: fn(&Device, DType) -> Run) -> Subject {
    Subject { name, products: true, bf16: true, run }
}

pub const SUBJECTS: [Subject; 15] = [
    plain("maxk", maxk),
    plain("kwinners", kwinners),
    plain("router/softmax", |device, dtype| router(device, dtype, Gate::Softmax, 1)),
    plain("router/sigmoid", |device, dtype| router(device, dtype, Gate::Sigmoid, 1)),
    // Rounded to bf16, sums of the best scores of two groups tie.
    Subject {
        bf16: false,
        ..plain("router/groups", |device, dtype| router(device, dtype, Gate::Sigmoid, 4))
    },
    product("moe/gelu", |device, dtype| moe(device, dtype, Expert::Gelu, None)),
    product("moe/swiglu", |device, dtype| moe(device, dtype, Expert::SwiGlu, None)),
    product("moe/capacity", |device, dtype| moe(device, dtype, Expert::SwiGlu, Some(0.75))),
    product("attention/causal", |device, dtype| attention(device, dtype, true)),
    product("attention/padded", |device, dtype| attention(device, dtype, false)),
    product("sae/topk", |device, dtype| sae(device, dtype, SaeActivation::Topk)),
    product("sae/batch", |device, dtype| sae(device, dtype, SaeActivation::BatchTopk)),
    plain("sampler", sampler),
    plain("masks", masks),
    plain("compressor", compressor),
];

/// Integers from −most to most.
fn integers<const D: usize>(
    shape: [usize; D],
    most: usize,
    seed: u64,
    options: (&Device, DType),
) -> Tensor<D> {
    let mut random = Random::new(seed);
    let mut draw = || random.below(2 * most + 1) as f64 - most as f64;
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| draw()).collect();
    Tensor::from_data(TensorData::new(values, shape), options)
}

/// Distinct numbers in a row, in steps of 1/4.
fn distinct(rows: usize, width: usize, seed: u64, options: (&Device, DType)) -> Tensor<2> {
    let mut random = Random::new(seed);
    let mut values = Vec::new();
    for _ in 0..rows {
        let mut row: Vec<f64> =
            (0..width).map(|i| 0.25 * (i as f64 - width as f64 / 2.0)).collect();
        for i in (1..width).rev() {
            row.swap(i, random.below(i + 1));
        }
        values.extend(row);
    }
    Tensor::from_data(TensorData::new(values, [rows, width]), options)
}

fn floats<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn numbers<const D: usize>(x: Tensor<D, Int>) -> Vec<i64> {
    x.into_data().iter::<i64>().collect()
}

/// A sum with unequal weights.
fn probe<const D: usize>(y: &Tensor<D>) -> Tensor<1> {
    let weights = integers(y.dims(), 2, 99, (&y.device(), y.dtype()));
    (y.clone() * weights).sum()
}

/// Sets parameters, not running states, to integers from −1 to 1.
fn filled<M: Module>(module: M, dtype: DType) -> M {
    struct Fill(u64, DType);

    impl ModuleMapper for Fill {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            if !param.val().is_require_grad() {
                return param;
            }
            self.0 += 1;
            let (seed, dtype) = (self.0, self.1);
            param.map(|x| integers(x.dims(), 1, seed, (&x.device(), dtype)).require_grad())
        }
    }

    module.map(&mut Fill(200, dtype))
}

/// Gradients of parameters, in order.
fn parameter_gradients<M: Module>(module: &M, gradients: &Gradients) -> Vec<Vec<f64>> {
    struct Collect<'a>(&'a Gradients, Vec<Vec<f64>>);

    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = param.val().grad(self.0) {
                self.1.push(floats(gradient));
            }
        }
    }

    let mut collect = Collect(gradients, Vec::new());
    module.visit(&mut collect);
    collect.1
}

/// Adds the gradients of a loss by `x` and by parameters.
fn differentiate<M: Module, const D: usize>(
    run: &mut Run,
    loss: Tensor<1>,
    x: &Tensor<D>,
    module: &M,
) {
    let gradients = loss.backward();
    run.floats.push(floats(x.grad(&gradients).expect("the input has a gradient")));
    run.floats.extend(parameter_gradients(module, &gradients));
}

fn maxk(device: &Device, dtype: DType) -> Run {
    let layer = MaxKConfig::new(9).init();
    let x = integers([40, 70], 30, 1, (device, dtype)).require_grad();
    let (masked, dense) = (layer.forward(x.clone()), layer.compress(x.clone()).to_dense());
    let mut run = Run::default();
    run.floats.extend([floats(masked.clone()), floats(dense.clone())]);
    let loss = probe(&masked) + probe(&(dense * 3.0));
    differentiate(&mut run, loss, &x, &layer);
    run
}

fn kwinners(device: &Device, dtype: DType) -> Run {
    let layer = KWinnersConfig::new(24, 5).with_momentum(0.5).init(device);
    let x = integers([16, 24], 12, 2, (device, dtype)).require_grad();
    let y = layer.forward(x.clone());
    let mut run = Run::default();
    run.floats.extend([floats(y.clone()), floats(layer.duty_cycle())]);
    differentiate(&mut run, probe(&y), &x, &layer);
    run
}

fn routed(run: &mut Run, routing: &Routing) {
    run.integers.extend([numbers(routing.experts.clone()), numbers(routing.counts.clone())]);
    run.floats.push(floats(routing.weights.clone()));
    run.floats.extend([&routing.balance_loss, &routing.z_loss].map(|x| floats(x.clone())));
}

fn router(device: &Device, dtype: DType, gate: Gate, groups: usize) -> Run {
    let config = TopkRouterConfig::new(4, 16, 3).with_gate(gate).with_groups(groups);
    let router = config.with_kept_groups(groups.div_ceil(2)).with_scale(1.5).init(device);
    let logits = distinct(20, 16, 3, (device, dtype)).require_grad();
    let routing = router.route(logits.clone());
    let mut run = Run::default();
    routed(&mut run, &routing);
    let loss = probe(&routing.weights) + routing.balance_loss + routing.z_loss;
    differentiate(&mut run, loss, &logits, &router);
    run
}

fn moe(device: &Device, dtype: DType, expert: Expert, capacity: Option<f64>) -> Run {
    let config = SparseMoeConfig::new(TopkRouterConfig::new(8, 5, 2), 6).with_expert(expert);
    let moe = filled(config.with_capacity_factor(capacity).init(device), dtype);
    let x = integers([19, 8], 1, 4, (device, dtype)).require_grad();
    let (y, routing) = moe.forward(x.clone());
    let mut run = Run::default();
    routed(&mut run, &routing);
    run.floats.push(floats(y.clone()));
    differentiate(&mut run, probe(&y) + routing.balance_loss, &x, &moe);
    run
}

fn attention(device: &Device, dtype: DType, causal: bool) -> Run {
    // The gradient of a key's bias is 0, so its error has no scale to be compared with.
    let config = TopkAttentionConfig::new(8, 2, 3).with_causal(causal).with_bias(false);
    let layer = filled(config.init(device), dtype);
    let x = integers([2, 7, 8], 1, 5, (device, dtype)).require_grad();
    let padding: Vec<bool> = (0..14).map(|i| i % 7 > 4 && i > 6).collect();
    let padding = TensorData::new(padding, [2, 7]);
    let padding = (!causal).then(|| Tensor::<2, Bool>::from_data(padding, device));
    let y = layer.forward(x.clone(), padding.clone());
    let mut run = Run::default();
    run.floats.push(floats(y.clone()));
    // Without autodiff, values may be gathered instead of placed.
    let inner = x.clone().without_autodiff();
    let padding = padding.map(|padding| padding.without_autodiff());
    run.floats.push(floats(layer.valid().forward(inner, padding)));
    differentiate(&mut run, probe(&y), &x, &layer);
    run
}

fn sae(device: &Device, dtype: DType, activation: SaeActivation) -> Run {
    let config = TopkSaeConfig::new(6, 20, 3).with_activation(activation).with_dead_after(1);
    let layer = filled(config.init(device), dtype);
    let x = integers([12, 6], 1, 6, (device, dtype)).require_grad();
    let output = layer.forward(x.clone());
    let mut run = Run::default();
    let results = [&output.loss, &output.auxiliary_loss].map(|x| floats(x.clone()));
    run.floats.push(floats(output.reconstruction.clone()));
    run.floats.extend(results);
    run.floats.extend([floats(layer.idle()), floats(layer.threshold())]);
    run.floats.push(floats(layer.encode(x.clone())));
    let loss = probe(&output.reconstruction) + output.loss + output.auxiliary_loss;
    differentiate(&mut run, loss, &x, &layer);
    run
}

fn sampler(device: &Device, dtype: DType) -> Run {
    let logits = distinct(64, 100, 7, (device, dtype));
    let settings = SamplerConfig::new().with_top_k(40).with_top_p(0.9).with_min_p(0.01);
    let greedy = SamplerConfig::new().with_temperature(0.0);
    let rows = (0..64).map(|row| if row % 8 == 0 { greedy } else { settings });
    let samplers = [settings.init(), Sampler::per_row(rows.collect())];
    let draws = samplers.iter().enumerate();
    let draws = draws.map(|(step, sampler)| sampler.sample(logits.clone(), 11, step as u64));
    let mut run = Run { integers: draws.map(numbers).collect(), floats: Vec::new() };
    // All tokens, by many units.
    let broad = SamplerConfig::new().with_temperature(20.0);
    let logits = integers([9, 9000], 30, 8, (device, dtype));
    let all = [broad, broad.with_top_p(0.6), broad.with_min_p(0.2)];
    // Equal logits, which short rows of candidates are ranked by in the drawing kernel.
    let some = [5000, 257, 256, 250, 33, 1].map(|k| broad.with_top_k(k));
    for settings in all.into_iter().chain(some) {
        run.integers.push(numbers(settings.init().sample(logits.clone(), 12, 3)));
    }
    run
}

fn masks(device: &Device, dtype: DType) -> Run {
    let weight = integers([24, 36], 9, 8, (device, dtype));
    let share = Kept::Share(0.3);
    let masks = [
        magnitude_mask(weight.clone(), share),
        magnitude_mask_rows(weight.clone(), share, 0),
        magnitude_mask_rows(weight.clone(), Kept::Count(5), 1),
        n_of_m_mask(weight.clone(), 2, 4, 0),
        n_of_m_mask(weight, 1, 3, 1),
    ];
    Run { integers: masks.map(|mask| numbers(mask.int())).into(), floats: Vec::new() }
}

fn compressor(device: &Device, dtype: DType) -> Run {
    let config = TopkCompressorConfig::new(0.1).with_momentum(Some(0.5));
    let mut compressor = config.init();
    let mut run = Run::default();
    for step in 0..3 {
        let gradient = integers([15, 12], 8, 20 + step, (device, dtype));
        let sent = compressor.compress(gradient);
        run.integers.push(numbers(sent.indices.clone()));
        run.floats.push(floats(sent.decompress::<2>()));
        run.floats.push(floats(compressor.residual().expect("a gradient was compressed")));
    }
    run
}
