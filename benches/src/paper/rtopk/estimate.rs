//! Sample means, and the sampling error between two samples of one quantity.

/// Two figures agree within this many standard errors.
pub const STANDARD_ERRORS: f64 = 3.0;

#[derive(Clone, Copy, Default)]
pub struct Sample {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Sample {
    pub fn with(self, value: f64) -> Self {
        Self {
            count: self.count + 1.0,
            sum: self.sum + value,
            squares: self.squares + value * value,
        }
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Sampling error between this mean and the mean of `others` values.
    pub fn error(&self, others: usize) -> f64 {
        let variance = (self.squares / self.count - self.mean().powi(2)).max(0.0);
        error(variance, self.count, others)
    }
}

/// Sampling error between two percentages: `count` of `rows` here, `percentage` of `others` there.
/// One extra case on each side keeps it above zero.
pub fn error_of_percentage(count: usize, rows: usize, percentage: f64, others: usize) -> f64 {
    let found = count as f64 + percentage / 100.0 * others as f64;
    let share = (found + 1.0) / ((rows + others) as f64 + 2.0);
    100.0 * error(share * (1.0 - share), rows as f64, others)
}

fn error(variance: f64, count: f64, others: usize) -> f64 {
    STANDARD_ERRORS * (variance * (1.0 / count + 1.0 / others as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_follow_the_square_root() {
        let sample = [0.0, 2.0].iter().fold(Sample::default(), |s, &x| s.with(x));
        assert_eq!(sample.mean(), 1.0);
        assert_eq!(sample.error(2), 3.0);
        assert_eq!(sample.and(sample).error(4), 3.0 * 0.5f64.sqrt());
        let half = error_of_percentage(50, 100, 50.0, 100);
        assert!((half - 300.0 * (0.25f64 * 0.02).sqrt()).abs() < 1e-9);
        assert!(error_of_percentage(0, 100, 0.0, 100) > 0.0);
    }
}
