//! Seeded random numbers: SplitMix64.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Equal seeds give equal streams.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    pub fn uniform(&mut self) -> f32 {
        ((self.next() >> 40) + 1) as f32 / (1 << 24) as f32
    }

    /// Standard normal, by Box and Muller.
    pub fn normals(&mut self, count: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(count + 1);
        while values.len() < count {
            let radius = (-2.0 * self.uniform().ln()).sqrt();
            let (sin, cos) = (std::f32::consts::TAU * self.uniform()).sin_cos();
            values.extend([radius * cos, radius * sin]);
        }
        values.truncate(count);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_have_mean_0_and_variance_1() {
        let values = Random::new(3).normals(40_001);
        let count = values.len() as f32;
        let mean = values.iter().sum::<f32>() / count;
        let variance = values.iter().map(|x| x * x).sum::<f32>() / count;
        assert_eq!(values.len(), 40_001);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        assert_eq!(values[..9], Random::new(3).normals(9));
        assert_ne!(values[..9], Random::new(4).normals(9));
    }
}
