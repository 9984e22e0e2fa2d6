//! Pooling of batched graphs and scores of pairs, one after another in f64.
//!
//! ```text
//! pool:   y[g] = reduce over the nodes i of graph g of x[i]; 0 without nodes
//! best:   the ⌈ratio n⌉ nodes of greatest score of each graph, the best first
//! scale:  y[r] = s[i] x[i] for the kept node i of row r
//! dots:   y[e] = x[s] · x[t] for each pair e = (s, t)
//! set2set: q, c = LSTM(q ‖ r); a = softmax over the graph of x[i] · q; r = Σ a[i] x[i]
//! ```

use std::ops::Range;

use super::{
    layers::{self, Edges, Matrix},
    messages::Reduce,
};

/// Nodes of each graph, of given sizes.
pub fn ranges(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut first = 0;
    let next = |&size: &usize| {
        let range = first..first + size;
        first += size;
        range
    };
    sizes.iter().map(next).collect()
}

pub fn pool(sizes: &[usize], x: &Matrix, how: Reduce) -> Matrix {
    let of = |nodes: Range<usize>, c: usize| {
        let count = nodes.len() as f64;
        let values = nodes.map(|node| x[node][c]);
        match how {
            _ if count == 0.0 => 0.0,
            Reduce::Sum => values.sum(),
            Reduce::Mean => values.sum::<f64>() / count,
            Reduce::Max => values.fold(f64::NEG_INFINITY, f64::max),
            Reduce::Min => values.fold(f64::INFINITY, f64::min),
        }
    };
    let row = |nodes: Range<usize>| (0..x[0].len()).map(|c| of(nodes.clone(), c)).collect();
    ranges(sizes).into_iter().map(row).collect()
}

/// Ties go to the lower node.
pub fn best(sizes: &[usize], scores: &[f64], ratio: f64) -> Vec<usize> {
    let of = |nodes: Range<usize>| {
        let kept = (ratio * nodes.len() as f64).ceil() as usize;
        let mut nodes: Vec<usize> = nodes.collect();
        nodes.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        nodes.truncate(kept);
        nodes
    };
    ranges(sizes).into_iter().flat_map(of).collect()
}

pub fn scale(x: &Matrix, scores: &[f64], kept: &[usize]) -> Matrix {
    kept.iter().map(|&node| x[node].iter().map(|x| x * scores[node]).collect()).collect()
}

/// The edges between kept nodes, by their places.
pub fn induced(edges: &Edges, kept: &[usize]) -> Edges {
    let place = |node: usize| kept.iter().position(|&other| other == node);
    let moved = |&(s, t, w): &(usize, usize, f64)| Some((place(s)?, place(t)?, w));
    Edges { nodes: kept.len(), list: edges.list.iter().filter_map(moved).collect() }
}

pub fn dots(x: &Matrix, pairs: &[(usize, usize)]) -> Matrix {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    pairs.iter().map(|&(s, t)| vec![dot(&x[s], &x[t])]).collect()
}

/// `parameters`: weight and bias for q ‖ r, then for q; gates in the order input, forget, cell,
/// output.
pub fn set2set(sizes: &[usize], x: &Matrix, parameters: &[Vec<f64>], steps: usize) -> Matrix {
    let width = x[0].len();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let of = |nodes: Range<usize>| {
        let (mut q, mut c, mut r) = (vec![0.0; width], vec![0.0; width], vec![0.0; width]);
        for _ in 0..steps {
            let joined = vec![[&q[..], &r].concat()];
            let input = layers::linear(&joined, &parameters[0], &parameters[1], 4 * width);
            let hidden = layers::linear(&vec![q], &parameters[2], &parameters[3], 4 * width);
            let gates = layers::add(&input, &hidden).concat();
            let gate = |at: usize, column: usize| gates[at * width + column];
            let cell = |(column, c): (usize, &f64)| {
                sigmoid(gate(1, column)) * c + sigmoid(gate(0, column)) * gate(2, column).tanh()
            };
            c = c.iter().enumerate().map(cell).collect();
            q = c.iter().enumerate().map(|(i, c)| sigmoid(gate(3, i)) * c.tanh()).collect();
            let rows = &x[nodes.clone()];
            let dot = |row: &Vec<f64>| row.iter().zip(&q).map(|(x, q)| x * q).sum::<f64>().exp();
            let powers: Vec<f64> = rows.iter().map(dot).collect();
            let sum: f64 = powers.iter().sum();
            let share =
                |i: usize| rows.iter().zip(&powers).map(|(row, power)| power / sum * row[i]).sum();
            r = (0..width).map(share).collect();
        }
        [q, r].concat()
    };
    ranges(sizes).into_iter().map(of).collect()
}
