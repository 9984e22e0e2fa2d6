//! Nolet et al., Table 3 as published: seconds of 14 distances on four data sets, on a V100.

/// The data sets: parts of the names of our cases, and the paper's name.
pub const SETS: [(&[&str], &str); 4] = [
    (&["movielens"], "MovieLens"),
    (&["scrna"], "scRNA"),
    (&["nytimes", "kos"], "NY Times"),
    (&["edgar"], "SEC Edgar"),
];

/// A distance: our name, the paper's name, whether inner products suffice, and the published
/// seconds of baseline and RAFT for each data set on a V100.
pub struct Row {
    pub method: &'static str,
    pub name: &'static str,
    pub products: bool,
    pub seconds: [[f64; 2]; 4],
}

const fn row(
    method: &'static str,
    name: &'static str,
    products: bool,
    seconds: [[f64; 2]; 4],
) -> Row {
    Row { method, name, products, seconds }
}

#[rustfmt::skip]
pub const ROWS: [Row; 14] = [
    row("correlation", "Correlation", true,
        [[130.57, 111.20], [207.00, 235.00], [257.36, 337.11], [134.79, 87.99]]),
    row("cosine", "Cosine", true,
        [[131.39, 110.01], [206.00, 233.00], [257.73, 334.86], [127.63, 87.96]]),
    row("dice", "Dice", true,
        [[130.52, 110.94], [206.00, 233.00], [130.35, 335.49], [134.36, 88.19]]),
    row("euclidean", "Euclidean", true,
        [[131.93, 111.38], [206.00, 233.00], [258.38, 336.63], [134.75, 87.77]]),
    row("hellinger", "Hellinger", true,
        [[129.79, 110.82], [205.00, 232.00], [258.22, 334.80], [134.11, 87.83]]),
    row("jaccard", "Jaccard", true,
        [[130.51, 110.67], [206.00, 233.00], [258.24, 336.01], [134.55, 87.73]]),
    row("russell-rao", "Russel-Rao", true,
        [[130.35, 109.68], [206.00, 232.00], [257.58, 332.93], [134.31, 87.94]]),
    row("canberra", "Canberra", false,
        [[3014.34, 268.11], [4027.00, 598.00], [4164.98, 819.80], [505.71, 102.79]]),
    row("chebyshev", "Chebyshev", false,
        [[1621.00, 336.05], [3907.00, 546.00], [2709.30, 1072.35], [253.00, 146.41]]),
    row("hamming", "Hamming", false,
        [[1635.30, 229.59], [3902.00, 481.00], [2724.86, 728.05], [258.27, 97.65]]),
    row("jensen-shannon", "Jensen-Shannon", false,
        [[7187.27, 415.12], [4257.00, 1052.00], [10869.32, 1331.37], [1248.83, 142.96]]),
    row("kl", "KL Divergence", false,
        [[5013.65, 170.06], [4117.00, 409.00], [7099.08, 525.32], [753.56, 87.72]]),
    row("manhattan", "Manhattan", false,
        [[1632.05, 227.98], [3904.00, 477.00], [2699.91, 715.78], [254.69, 98.05]]),
    row("minkowski:3", "Minkowski", false,
        [[1632.05, 367.17], [4051.00, 838.00], [5855.79, 1161.31], [646.71, 129.47]]),
];
