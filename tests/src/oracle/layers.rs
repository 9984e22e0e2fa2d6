//! Graph layers as PyG defines them, edge by edge in f64.
//!
//! ```text
//! join:      y[t] = reduce over edges (s, t) of x[s]         reduce: mean, sum or max
//! propagate: y[t] = Σ over edges (s, t) of w(s, t) · norm(s, t) · x[s]
//! Both:      norm = 1 / √(in(s) in(t))       in(n): sum of the weights into n
//! Left:      norm = 1 / out(s)               out(n): sum of the weights out of n
//! Right:     norm = 1 / in(t)
//! ```

#[derive(Clone, Debug)]
pub struct Edges {
    pub nodes: usize,
    /// Source, target and weight of each edge.
    pub list: Vec<(usize, usize, f64)>,
}

pub type Matrix = Vec<Vec<f64>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    Mean,
    Sum,
    Max,
}

/// Normalization of a message by sums of edge weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// 1 / √(in(source) in(target)).
    Both,
    /// 1 / out(source).
    Left,
    /// 1 / in(target).
    Right,
    /// 1.
    None,
}

/// `x w + b`; `w` is `[columns of x, width]`.
pub fn linear(x: &Matrix, w: &[f64], b: &[f64], width: usize) -> Matrix {
    let of = |row: &Vec<f64>, c: usize| -> f64 {
        let products = row.iter().enumerate().map(|(i, x)| x * w[i * width + c]);
        products.sum::<f64>() + b.get(c).copied().unwrap_or(0.0)
    };
    x.iter().map(|row| (0..width).map(|c| of(row, c)).collect()).collect()
}

pub fn relu(x: &Matrix) -> Matrix {
    x.iter().map(|row| row.iter().map(|x| x.max(0.0)).collect()).collect()
}

pub fn add(a: &Matrix, b: &Matrix) -> Matrix {
    let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + b).collect();
    a.iter().zip(b).map(row).collect()
}

pub fn scale(x: &Matrix, factor: f64) -> Matrix {
    x.iter().map(|row| row.iter().map(|x| x * factor).collect()).collect()
}

/// Each row over its Euclidean norm, which is at least 1e-12.
pub fn normalize(x: &Matrix) -> Matrix {
    let length = |row: &Vec<f64>| row.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
    x.iter().map(|row| row.iter().map(|x| x / length(row)).collect()).collect()
}

/// The k greatest of each row, ties to the lowest column; zero elsewhere.
pub fn keep(x: &Matrix, k: usize) -> Matrix {
    let kept = |row: &Vec<f64>| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        let mut kept = vec![0.0; row.len()];
        order[..k].iter().for_each(|&at| kept[at] = row[at]);
        kept
    };
    x.iter().map(kept).collect()
}

/// Reduces unweighted messages; zero without messages.
pub fn join(edges: &Edges, x: &Matrix, how: Join) -> Matrix {
    let width = x[0].len();
    let of = |node: usize, c: usize| {
        let messages = edges.list.iter().filter(|edge| edge.1 == node);
        let values: Vec<f64> = messages.map(|edge| x[edge.0][c]).collect();
        match how {
            _ if values.is_empty() => 0.0,
            Join::Sum => values.iter().sum(),
            Join::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Join::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    };
    (0..edges.nodes).map(|node| (0..width).map(|c| of(node, c)).collect()).collect()
}

/// Adds a self-loop to each node that has none, with weight `fill`; of several the last stays.
pub fn with_loops(edges: &Edges, fill: f64) -> Edges {
    let self_loop = |node| {
        let mut loops = edges.list.iter().rev().filter(|edge| edge.0 == node && edge.1 == node);
        loops.next().map_or(fill, |edge| edge.2)
    };
    let others = edges.list.iter().filter(|edge| edge.0 != edge.1).copied();
    let loops = (0..edges.nodes).map(|node| (node, node, self_loop(node)));
    Edges { nodes: edges.nodes, list: others.chain(loops).collect() }
}

pub fn propagate(edges: &Edges, x: &Matrix, norm: Norm) -> Matrix {
    let into = |node| -> f64 { edges.list.iter().filter(|e| e.1 == node).map(|e| e.2).sum() };
    let out = |node| -> f64 { edges.list.iter().filter(|e| e.0 == node).map(|e| e.2).sum() };
    let power = |sum: f64, exponent: f64| match sum.powf(exponent) {
        factor if factor.is_infinite() => 0.0,
        factor => factor,
    };
    let mut y = vec![vec![0.0; x[0].len()]; edges.nodes];
    for &(source, target, weight) in &edges.list {
        let factor = match norm {
            Norm::Both => power(into(source), -0.5) * power(into(target), -0.5),
            Norm::Left => power(out(source), -1.0),
            Norm::Right => power(into(target), -1.0),
            Norm::None => 1.0,
        };
        for (y, x) in y[target].iter_mut().zip(&x[source]) {
            *y += weight * factor * x;
        }
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PyG 2.6's `gcn_norm` of 0 → 1 → 2 with weights 2 and 3: degrees with loops are 1, 3 and 4.
    #[test]
    fn gcn_on_a_path() {
        let path = Edges { nodes: 3, list: vec![(0, 1, 2.0), (1, 2, 3.0)] };
        let x = vec![vec![1.0], vec![10.0], vec![100.0]];
        let y = propagate(&with_loops(&path, 1.0), &x, Norm::Both);
        let expected = [1.0, 2.0 / 3f64.sqrt() + 10.0 / 3.0, 30.0 / 12f64.sqrt() + 25.0];
        for (found, expected) in y.iter().zip(expected) {
            assert!((found[0] - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn messages_by_hand() {
        let edges = Edges { nodes: 3, list: vec![(0, 2, 1.0), (1, 2, 1.0), (1, 2, 1.0)] };
        let x = vec![vec![3.0, -1.0], vec![0.0, -4.0], vec![7.0, 7.0]];
        assert_eq!(join(&edges, &x, Join::Mean)[2], [1.0, -3.0]);
        assert_eq!(join(&edges, &x, Join::Max), [[0.0, 0.0], [0.0, 0.0], [3.0, -1.0]]);
        assert_eq!(keep(&x, 1), [[3.0, 0.0], [0.0, 0.0], [7.0, 0.0]]);
        assert_eq!(propagate(&edges, &x, Norm::Left)[2], [3.0, -5.0]);
        assert_eq!(normalize(&vec![vec![3.0, 4.0], vec![0.0, 0.0]]), [[0.6, 0.8], [0.0, 0.0]]);
    }
}
