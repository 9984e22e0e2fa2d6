//! Layer normalization and its gradients in f64, row by row.
//!
//! ```text
//! h     = (x - mean(x)) / √(var(x) + ε)        y = γ h + β
//! dx    = (g - mean(g) - h mean(g h)) / √(var(x) + ε)     g = γ · upstream
//! dγ    = Σ upstream · h                       dβ = Σ upstream
//! ```

/// Results, each with the magnitude that bounds its rounding error.
#[derive(Clone, Debug, Default)]
pub struct Scaled {
    pub values: Vec<f64>,
    /// Magnitudes to compare errors with.
    pub scales: Vec<f64>,
}

impl Scaled {
    fn push(&mut self, value: f64, scale: f64) {
        self.values.push(value);
        self.scales.push(scale);
    }

    fn add(&mut self, at: usize, term: f64, scale: f64) {
        self.values[at] += term;
        self.scales[at] += scale;
    }

    fn zeros(n: usize) -> Self {
        let zeros = vec![0.0; n];
        Self {
            values: zeros.clone(),
            scales: zeros,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Normalization {
    /// `[rows, width]`.
    pub x: Vec<f64>,
    /// `[width]`.
    pub gamma: Vec<f64>,
    /// `[width]`.
    pub beta: Vec<f64>,
    /// `[rows, width]`.
    pub upstream: Vec<f64>,
    /// Added to the variance.
    pub epsilon: f64,
}

#[derive(Clone, Debug)]
pub struct Normalized {
    /// `[rows, width]`.
    pub y: Scaled,
    pub dx: Scaled,
    pub gamma: Scaled,
    pub beta: Scaled,
}

impl Normalization {
    pub fn solve(&self) -> Normalized {
        let width = self.gamma.len();
        let mut all = Normalized {
            y: Scaled::default(),
            dx: Scaled::default(),
            gamma: Scaled::zeros(width),
            beta: Scaled::zeros(width),
        };
        for (x, upstream) in self.x.chunks(width).zip(self.upstream.chunks(width)) {
            let n = width as f64;
            let mean = x.iter().sum::<f64>() / n;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            let largest = x.iter().fold(0f64, |a, &b| a.max(b.abs()));
            let hat: Vec<f64> = x.iter().map(|x| (x - mean) * inverse).collect();
            let g: Vec<f64> = (0..width).map(|c| upstream[c] * self.gamma[c]).collect();
            let mean_g = g.iter().sum::<f64>() / n;
            let mean_gh = g.iter().zip(&hat).map(|(g, h)| g * h).sum::<f64>() / n;
            let most = g.iter().fold(0f64, |a, &b| a.max(b.abs()));
            for c in 0..width {
                // Magnitude of the normalized element.
                let off = inverse * largest + hat[c].abs();
                all.y.push(
                    hat[c] * self.gamma[c] + self.beta[c],
                    off * self.gamma[c].abs() + self.beta[c].abs(),
                );
                all.dx.push(
                    inverse * (g[c] - mean_g - hat[c] * mean_gh),
                    inverse * most * (1.0 + off * (1.0 + off)),
                );
                let scale = upstream[c].abs() * off;
                all.gamma.add(c, upstream[c] * hat[c], scale);
                all.beta.add(c, upstream[c], upstream[c].abs());
            }
        }
        all
    }
}
