use burn::{
    backend::Dispatch,
    config::Config,
    tensor::{Int, Tensor},
};
use sparsek_kernels::topk::DrawSettings;

use super::support::halves;
use crate::{
    ops::{DrawSpec, TopkOps},
    topk::{LongRows, TopkOptions, check, or_panic},
};

/// Settings of [`Sampler`] for a row.
#[derive(Config, Copy, Debug, PartialEq)]
pub struct SamplerConfig {
    /// Divides logits. Default: 1; 0 takes the greatest.
    #[config(default = 1.0)]
    pub temperature: f64,
    /// Keeps k greatest logits. Default: 0, all.
    #[config(default = 0)]
    pub top_k: usize,
    /// Keeps the fewest best tokens that reach this probability. Default: 1, all.
    #[config(default = 1.0)]
    pub top_p: f64,
    /// Least kept probability, as a share of the greatest. Default: 0, all.
    #[config(default = 0.0)]
    pub min_p: f64,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl SamplerConfig {
    /// Uses these settings for every row.
    pub fn init(&self) -> Sampler {
        Sampler::per_row(vec![*self])
    }

    fn check(&self) {
        assert!(
            self.temperature.is_finite() && self.temperature >= 0.0,
            "Sampler: a temperature of {}",
            self.temperature
        );
        assert!(
            self.top_p > 0.0 && self.top_p <= 1.0,
            "Sampler: top_p = {} is outside (0, 1]",
            self.top_p
        );
        assert!(
            (0.0..=1.0).contains(&self.min_p),
            "Sampler: min_p = {} is outside [0, 1]",
            self.min_p
        );
    }

    fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    fn of_draw(&self, k: usize) -> DrawSettings {
        DrawSettings {
            temperature: if self.is_greedy() { 1.0 } else { self.temperature as f32 },
            // Keeps all even if sums round up.
            top_p: if self.top_p < 1.0 { self.top_p as f32 } else { 2.0 },
            min_p: self.min_p as f32,
            count: u32::try_from(self.candidates(k)).unwrap_or(u32::MAX),
        }
    }

    fn candidates(&self, width: usize) -> usize {
        match self.top_k {
            _ if self.is_greedy() => width.min(1),
            0 => width,
            k => k.min(width),
        }
    }
}

/// Draws tokens by temperature, top-k, top-p and min-p, in this order.
///
/// Each filter renormalizes; the best token stays. −∞ is drawn only if all are. Top-p: Holtzman
/// et al., 2020; min-p: Nguyen et al., 2024.
///
/// The host reads nothing. The device selects max `top_k` candidates and inverts their cumulative
/// distribution at a 24-bit hash of `seed`, `step` and row: reproducible, across backends up to
/// rounding. A row without top-k sorts all rows.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek::nn::SamplerConfig;
///
/// let logits = Tensor::<2>::from_floats([[0.0, 3.0, 2.9, 1.0]], &Device::flex());
/// let sampler = SamplerConfig::new().with_temperature(0.8).with_top_k(2).init();
/// let token = sampler.sample(logits, 42, 0).into_scalar::<i64>();
/// assert!(token == 1 || token == 2);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    rows: Vec<SamplerConfig>,
}

impl Sampler {
    /// Uses settings per row, or one for all.
    ///
    /// Panics without settings, or if temperature is negative or not finite, `top_p` outside (0,
    /// 1], or `min_p` outside `[0, 1]`.
    pub fn per_row(rows: Vec<SamplerConfig>) -> Self {
        assert!(!rows.is_empty(), "Sampler: no settings");
        rows.iter().for_each(SamplerConfig::check);
        Self { rows }
    }

    /// Draws tokens: `[rows, tokens]` → `[rows]`. No gradient.
    ///
    /// Increment `step` along a text. Panics without tokens, or unless there are one or `rows`
    /// settings.
    pub fn sample(&self, logits: Tensor<2>, seed: u64, step: u64) -> Tensor<1, Int> {
        let [rows, width] = logits.dims();
        assert!(width > 0, "Sampler: rows of no token");
        assert!(
            self.rows.len() == 1 || self.rows.len() == rows,
            "Sampler: settings of {} rows for {rows} rows of logits",
            self.rows.len()
        );
        let settings = self.rows.iter();
        let k = settings.map(|row| row.candidates(width)).max().unwrap_or(0);
        let checked = check(&logits, &TopkOptions::new(k), 1, LongRows::One);
        let (_, selection) = or_panic("Sampler", checked);
        let spec = DrawSpec {
            k,
            index: selection.index,
            settings: self.rows.iter().map(|row| row.of_draw(k)).collect(),
            seed: halves(seed, step),
        };
        let logits = logits.detach().into_dispatch();
        Tensor::from_dispatch(<Dispatch as TopkOps>::draw(logits, spec))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use rstest::rstest;

    use super::*;
    use crate::nn::fixtures::{device, random, tensor};

    fn oracle(logits: &[f64], config: &SamplerConfig) -> Vec<f64> {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
        let mut y = vec![0.0; logits.len()];
        if config.temperature == 0.0 {
            y[order[0]] = 1.0;
            return y;
        }
        if config.top_k > 0 {
            order.truncate(config.top_k);
        }
        let weight = |&i: &usize| ((logits[i] - logits[order[0]]) / config.temperature).exp();
        let weights: Vec<f64> = order.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let (mut sum, mut kept) = (0.0, Vec::new());
        for (&i, weight) in order.iter().zip(&weights) {
            let p = weight / total;
            if kept.is_empty() || (sum < config.top_p && p >= config.min_p / total) {
                kept.push((i, p));
            }
            sum += p;
        }
        let total: f64 = kept.iter().map(|(_, p)| p).sum();
        for (i, p) in kept {
            y[i] = p / total;
        }
        y
    }

    const WIDTH: usize = 90;

    fn settings() -> Vec<SamplerConfig> {
        let config = SamplerConfig::new;
        vec![
            config(),
            config().with_temperature(0.0),
            config().with_temperature(0.5).with_top_k(7),
            config().with_top_p(0.4),
            config().with_top_p(1e-6),
            config().with_min_p(0.3),
            config().with_top_k(30).with_top_p(0.6).with_min_p(0.2).with_temperature(1.7),
            config().with_top_k(1000),
        ]
    }

    #[rstest]
    fn supports_are_exact_and_frequencies_pass_chi_square(
        device: Device,
        #[values(true, false)] together: bool,
    ) {
        let settings = settings();
        let logits = random(settings.len() * WIDTH, 5);
        let draws = 4000;
        let mut counts = vec![vec![0_u32; WIDTH]; settings.len()];
        if together {
            let x = tensor(&logits, [settings.len(), WIDTH], &device);
            let sampler = Sampler::per_row(settings.clone());
            for step in 0..draws {
                let tokens = sampler.sample(x.clone(), 9, step);
                let tokens = tokens.try_into_vec_as::<i64>().unwrap();
                for (counts, token) in counts.iter_mut().zip(tokens) {
                    counts[token as usize] += 1;
                }
            }
        } else {
            for (row, config) in settings.iter().enumerate() {
                let x = tensor::<2>(&logits[row * WIDTH..][..WIDTH], [1, WIDTH], &device);
                let x = x.expand([draws as usize, WIDTH]);
                let tokens = config.init().sample(x, 8, row as u64);
                for token in tokens.try_into_vec_as::<i64>().unwrap() {
                    counts[row][token as usize] += 1;
                }
            }
        }
        for (row, config) in settings.iter().enumerate() {
            let expected = oracle(&logits[row * WIDTH..][..WIDTH], config);
            let (mut chi, mut cells) = (0.0, 0.0);
            for (&count, p) in counts[row].iter().zip(expected) {
                assert!(p > 0.0 || count == 0, "row {row}: a token outside the support");
                if p > 0.0 {
                    let mean = p * draws as f64;
                    chi += (f64::from(count) - mean).powi(2) / mean;
                    cells += 1.0;
                }
            }
            let freedom: f64 = cells - 1.0;
            let limit = freedom + 5.0 * (2.0 * freedom).sqrt() + 1e-9;
            assert!(chi <= limit, "row {row}: chi-square {chi} over {limit}");
        }
    }

    #[rstest]
    fn seed_and_step_decide(device: Device) {
        let x = tensor(&random(64 * WIDTH, 3), [64, WIDTH], &device);
        let run = |seed, step| {
            let tokens = SamplerConfig::new().init().sample(x.clone(), seed, step);
            tokens.try_into_vec_as::<i64>().unwrap()
        };
        assert_eq!(run(1, 2), run(1, 2));
        assert_ne!(run(1, 2), run(2, 2));
        assert_ne!(run(1, 2), run(1, 3));
    }

    #[rstest]
    fn infinite_logits_are_never_drawn(device: Device) {
        let mut row = vec![f64::NEG_INFINITY; WIDTH];
        (row[7], row[70]) = (0.0, 0.5);
        let x = tensor::<2>(&row, [1, WIDTH], &device).expand([500, WIDTH]);
        let tokens = SamplerConfig::new().init().sample(x, 1, 1);
        let mut tokens = tokens.try_into_vec_as::<i64>().unwrap();
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens, [7, 70]);
    }

    #[rstest]
    #[case(SamplerConfig::new().with_temperature(-1.0))]
    #[case(SamplerConfig::new().with_temperature(f64::NAN))]
    #[case(SamplerConfig::new().with_top_p(0.0))]
    #[case(SamplerConfig::new().with_min_p(1.5))]
    #[should_panic(expected = "Sampler: ")]
    fn impossible_settings_panic(#[case] config: SamplerConfig) {
        config.init();
    }
}
