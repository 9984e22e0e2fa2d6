//! CSR products and their gradients, entry by entry in f64.
//!
//! ```text
//! y[i]  = Σ w[e] x[j]      over the entries e = (i, j)
//! dx[j] = Σ w[e] g[i]      g: upstream gradient
//! dw[e] = ⟨g[i], x[j]⟩
//! ```

/// A CSR matrix; columns may be unsorted and repeat.
#[derive(Clone, Debug)]
pub struct Csr {
    pub rows: usize,
    pub cols: usize,
    /// Row offsets, `[rows + 1]`.
    pub indptr: Vec<u32>,
    pub indices: Vec<u32>,
    pub weights: Vec<f64>,
}

/// A result, with what bounds its rounding error.
#[derive(Clone, Debug)]
pub struct Bounded {
    pub values: Vec<f64>,
    /// Sum of the terms' magnitudes.
    pub magnitudes: Vec<f64>,
    pub terms: Vec<usize>,
}

impl Bounded {
    fn zeros(n: usize) -> Self {
        Self { values: vec![0.0; n], magnitudes: vec![0.0; n], terms: vec![0; n] }
    }

    fn add(&mut self, i: usize, term: f64) {
        self.values[i] += term;
        self.magnitudes[i] += term.abs();
        self.terms[i] += 1;
    }

    /// Compares with sums at precision `epsilon`.
    pub fn check(&self, found: &[f64], epsilon: f64) -> Result<(), String> {
        if found.len() != self.values.len() {
            return Err(format!("{} elements instead of {}", found.len(), self.values.len()));
        }
        for (i, &x) in found.iter().enumerate() {
            let bound = (self.terms[i] + 2) as f64 * epsilon * self.magnitudes[i];
            let distance = (x - self.values[i]).abs();
            if distance.is_nan() || distance > bound {
                let expected = self.values[i];
                return Err(format!(
                    "element {i}: {x} instead of {expected}, off by more than {bound:e}"
                ));
            }
        }
        Ok(())
    }
}

impl Csr {
    /// Row, column and weight of each entry.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        (0..self.rows).flat_map(move |i| {
            (self.indptr[i] as usize..self.indptr[i + 1] as usize)
                .map(move |e| (i, self.indices[e] as usize, self.weights[e]))
        })
    }

    /// Dense rows; repeated entries add.
    pub fn dense(&self) -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; self.cols]; self.rows];
        self.entries().for_each(|(i, j, w)| rows[i][j] += w);
        rows
    }

    /// `y`; `x` is `[cols, width]`.
    pub fn spmm(&self, x: &[f64], width: usize) -> Bounded {
        let mut y = Bounded::zeros(self.rows * width);
        for (i, j, w) in self.entries() {
            (0..width).for_each(|c| y.add(i * width + c, w * x[j * width + c]));
        }
        y
    }

    /// `dx`, the gradient of `Σ g y`.
    pub fn grad_x(&self, g: &[f64], width: usize) -> Bounded {
        let mut dx = Bounded::zeros(self.cols * width);
        for (i, j, w) in self.entries() {
            (0..width).for_each(|c| dx.add(j * width + c, w * g[i * width + c]));
        }
        dx
    }

    /// `dw`, the gradient of `Σ g y`.
    pub fn grad_weights(&self, g: &[f64], x: &[f64], width: usize) -> Bounded {
        let mut dw = Bounded::zeros(self.indices.len());
        for (e, (i, j, _)) in self.entries().enumerate() {
            (0..width).for_each(|c| dw.add(e, g[i * width + c] * x[j * width + c]));
        }
        dw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_product_by_hand() {
        let a = Csr {
            rows: 3,
            cols: 2,
            indptr: vec![0, 2, 2, 3],
            indices: vec![1, 1, 0],
            weights: vec![2.0, 3.0, -1.0],
        };
        assert_eq!(a.spmm(&[1.0, 10.0], 1).values, [50.0, 0.0, -1.0]);
        assert_eq!(a.grad_x(&[1.0, 7.0, 2.0], 1).values, [-2.0, 5.0]);
        assert_eq!(a.grad_weights(&[1.0, 7.0, 2.0], &[1.0, 10.0], 1).values, [10.0, 10.0, 2.0]);
        assert!(a.spmm(&[1.0, 10.0], 1).check(&[50.1, 0.0, -1.0], 1e-7).is_err());
    }
}
