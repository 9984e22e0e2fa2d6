//! The layers of graph networks as PyG defines them, edge by edge in f64.

/// A directed graph.
#[derive(Clone, Debug)]
pub struct Edges {
    /// Number of nodes.
    pub nodes: usize,
    /// Source, target and weight of each edge.
    pub list: Vec<(usize, usize, f64)>,
}

/// Rows of numbers.
pub type Matrix = Vec<Vec<f64>>;

/// How messages are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Sum over the number of messages.
    Mean,
    /// Sum.
    Sum,
    /// Greatest, element by element.
    Max,
}

/// What a message is divided by, of the sums of weights into and out of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Roots of both sums into.
    Both,
    /// The source's sum out.
    Left,
    /// The target's sum into.
    Right,
    /// Nothing.
    None,
}

/// `x w + b`; `w` has a row for each column of `x`.
pub fn linear(x: &Matrix, w: &[f64], b: &[f64], width: usize) -> Matrix {
    let of = |row: &Vec<f64>, c: usize| -> f64 {
        let products = row.iter().enumerate().map(|(i, x)| x * w[i * width + c]);
        products.sum::<f64>() + b.get(c).copied().unwrap_or(0.0)
    };
    x.iter()
        .map(|row| (0..width).map(|c| of(row, c)).collect())
        .collect()
}

/// The greatest of zero and each element.
pub fn relu(x: &Matrix) -> Matrix {
    x.iter()
        .map(|row| row.iter().map(|x| x.max(0.0)).collect())
        .collect()
}

/// The sum of two matrices.
pub fn add(a: &Matrix, b: &Matrix) -> Matrix {
    let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + b).collect();
    a.iter().zip(b).map(row).collect()
}

/// Every element times a number.
pub fn scale(x: &Matrix, factor: f64) -> Matrix {
    x.iter()
        .map(|row| row.iter().map(|x| x * factor).collect())
        .collect()
}

/// Each row over its Euclidean length.
pub fn normalise(x: &Matrix) -> Matrix {
    let length = |row: &Vec<f64>| row.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
    x.iter()
        .map(|row| row.iter().map(|x| x / length(row)).collect())
        .collect()
}

/// The k greatest of each row, the first of equals; zero elsewhere.
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

/// Messages joined without weights; zero where there are none.
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
    (0..edges.nodes)
        .map(|node| (0..width).map(|c| of(node, c)).collect())
        .collect()
}

/// The graph with one loop of every node, that of the graph (the last of several) or one that weighs `fill`.
pub fn with_loops(edges: &Edges, fill: f64) -> Edges {
    let own = |node| {
        let mut loops = edges
            .list
            .iter()
            .rev()
            .filter(|edge| edge.0 == node && edge.1 == node);
        loops.next().map_or(fill, |edge| edge.2)
    };
    let others = edges.list.iter().filter(|edge| edge.0 != edge.1).copied();
    let loops = (0..edges.nodes).map(|node| (node, node, own(node)));
    Edges {
        nodes: edges.nodes,
        list: others.chain(loops).collect(),
    }
}

/// Weighted messages, normalised, summed.
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

    /// PyG 2.6's `gcn_norm` of the path 0 → 1 → 2 with weights 2 and 3: degrees with loops are 1, 3 and 4.
    #[test]
    fn gcn_on_a_path() {
        let path = Edges {
            nodes: 3,
            list: vec![(0, 1, 2.0), (1, 2, 3.0)],
        };
        let x = vec![vec![1.0], vec![10.0], vec![100.0]];
        let y = propagate(&with_loops(&path, 1.0), &x, Norm::Both);
        let expected = [
            1.0,
            2.0 / 3f64.sqrt() + 10.0 / 3.0,
            30.0 / 12f64.sqrt() + 25.0,
        ];
        for (found, expected) in y.iter().zip(expected) {
            assert!((found[0] - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn messages_by_hand() {
        let edges = Edges {
            nodes: 3,
            list: vec![(0, 2, 1.0), (1, 2, 1.0), (1, 2, 1.0)],
        };
        let x = vec![vec![3.0, -1.0], vec![0.0, -4.0], vec![7.0, 7.0]];
        assert_eq!(join(&edges, &x, Join::Mean)[2], [1.0, -3.0]);
        assert_eq!(
            join(&edges, &x, Join::Max),
            [[0.0, 0.0], [0.0, 0.0], [3.0, -1.0]]
        );
        assert_eq!(keep(&x, 1), [[3.0, 0.0], [0.0, 0.0], [7.0, 0.0]]);
        assert_eq!(propagate(&edges, &x, Norm::Left)[2], [3.0, -5.0]);
        assert_eq!(
            normalise(&vec![vec![3.0, 4.0], vec![0.0, 0.0]]),
            [[0.6, 0.8], [0.0, 0.0]]
        );
    }
}
