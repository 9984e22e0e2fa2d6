//! Cross-entropy, Adam's step, and layer normalization with its gradients, in f64.
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
        Self { values: zeros.clone(), scales: zeros }
    }
}

/// Loss, gradient for an upstream of 1, and hits of class scores; labels below 0 are left out.
pub fn cross_entropy(
    scores: &[f64],
    labels: &[i64],
    classes: usize,
    scale: f64,
) -> (Scaled, Scaled, Vec<f64>) {
    let (mut loss, mut gradient) = (Scaled::zeros(1), Scaled::default());
    let mut hits = Vec::new();
    for (row, &label) in scores.chunks(classes).zip(labels) {
        let greatest = row.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let first = row.iter().position(|&x| x == greatest);
        hits.push(f64::from(label >= 0 && first == Some(label as usize)));
        let sum: f64 = row.iter().map(|x| (x - greatest).exp()).sum();
        let size = row.iter().fold(1.0f64, |a, b| a.max(b.abs()));
        if label >= 0 {
            let own = row[label as usize];
            loss.add(0, scale * (sum.ln() + greatest - own), scale * (size + sum.ln()));
        }
        for (class, x) in row.iter().enumerate() {
            let own = f64::from(class as i64 == label);
            let share = (x - greatest).exp() / sum;
            match label >= 0 {
                true => gradient.push(scale * (share - own), scale * (1.0 + size)),
                false => gradient.push(0.0, 0.0),
            }
        }
    }
    (loss, gradient, hits)
}

/// Parameter and moments after an Adam step, in f64.
///
/// `factors`: beta 1, beta 2, decay, rate, epsilon.
pub fn adam(
    [x, gradient, first, second]: [&[f64]; 4],
    [beta_1, beta_2, decay, rate, epsilon]: [f64; 5],
) -> [Scaled; 3] {
    let mut all = [Scaled::default(), Scaled::default(), Scaled::default()];
    for i in 0..x.len() {
        let g = gradient[i] + decay * x[i];
        let size = gradient[i].abs() + (decay * x[i]).abs();
        let m = beta_1 * first[i] + (1.0 - beta_1) * g;
        let v = beta_2 * second[i] + (1.0 - beta_2) * g * g;
        let m_size = (beta_1 * first[i]).abs() + (1.0 - beta_1) * size;
        let v_size = beta_2 * second[i] + (1.0 - beta_2) * size * size;
        let root = v.sqrt() + epsilon;
        // d(m / √v) = dm / √v - m dv / 2 √v³
        let error = m_size / root + m.abs() * v_size / (root * root * root);
        all[0].push(x[i] - rate * m / root, x[i].abs() + rate * error);
        all[1].push(m, m_size);
        all[2].push(v, v_size);
    }
    all
}

/// Whether dropout keeps an element: two rounds of Wellons' lowbias32 on its place.
pub fn keeps([low, high]: [u32; 2], call: u32, keep: f32, place: u32) -> bool {
    let wrap = |x: u64| x & u64::from(u32::MAX);
    let mix = |x: u64| {
        let x = wrap((x ^ (x >> 16)) * 0x7feb_352d);
        let x = wrap((x ^ (x >> 15)) * 0x846c_a68b);
        x ^ (x >> 16)
    };
    let call = wrap(u64::from(call) * 0x9e37_79b9);
    let (low, high) = (mix(u64::from(low) ^ call), mix(wrap(u64::from(high) + call)));
    let word = mix(mix(u64::from(place) ^ low) ^ high);
    (word as f64) < (f64::from(keep) * 2f64.powi(32)).floor()
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
