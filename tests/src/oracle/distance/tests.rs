//! Distances against scipy 1.17.1, the values in RAFT's tests, and properties.

use rstest::{fixture, rstest};

use super::*;

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

const ROWS: [[f64; 6]; 8] = [
    [0.0; 6],
    [1.0, 0.0, 2.0, 0.0, 0.0, 0.0],
    [0.0, 0.5, 1.0, 0.0, 2.5, 0.0],
    [0.0, 0.0, 0.0, 4.0, 0.0, 0.0],
    [1.0; 6],
    [-1.5, 0.0, 0.25, 0.0, 0.0, 2.0],
    [0.5, 0.25, 0.0, 0.125, 0.0, 3.0],
    [1.0, 0.0, 2.0, 0.0, -1.0, 0.75],
];

/// The columns of [`SCIPY`].
const PAIRS: [(usize, usize); 13] = [
    (0, 0),
    (0, 1),
    (1, 0),
    (1, 2),
    (1, 3),
    (1, 4),
    (2, 4),
    (2, 2),
    (5, 1),
    (5, 6),
    (6, 2),
    (6, 5),
    (7, 5),
];

/// Values by `cdist` and `rel_entr` of scipy 1.17.1, p = 3; dot and hellinger by NumPy.
#[rustfmt::skip]
const SCIPY: [(&str, [f64; 13]); 22] = [
    ("dot", [0.0, 0.0, 0.0, 2.0, 0.0, 3.0, 4.0, 7.5, -1.0, 5.25, 0.125, 5.25, 0.5]),
    ("euclidean", [
        0.0, 2.2360679775, 2.2360679775, 2.915475947423, 4.582575694956, 2.2360679775,
        2.345207879912, 0.0, 3.648629879832, 2.267294643402, 4.071624368726, 2.267294643402,
        3.446012188023
    ]),
    ("sqeuclidean", [
        0.0, 5.0, 5.0, 8.5, 21.0, 5.0, 5.5, 0.0, 13.3125, 5.140625, 16.578125, 5.140625, 11.875
    ]),
    ("cosine", [
        NAN, NAN, NAN, 0.673401367629, 1.0, 0.452277442495, 0.403715206, 0.0, 1.177997663796,
        0.315834092341, 0.985055472011, 0.315834092341, 0.922315450679
    ]),
    ("correlation", [
        NAN, NAN, NAN, 1.0, 1.292770021885, NAN, NAN, 0.0, 1.294725102185, 0.268523432906,
        1.428005645876, 0.268523432906, 0.972788956141
    ]),
    ("dice", [
        NAN, 1.0, 1.0, 0.6, 1.0, 0.5, 0.333333333333, 0.0, 0.2, 0.428571428571, 0.714285714286,
        0.428571428571, 0.142857142857
    ]),
    ("jaccard", [
        0.0, 1.0, 1.0, 0.75, 1.0, 0.666666666667, 0.5, 0.0, 0.333333333333, 0.6, 0.833333333333,
        0.6, 0.25
    ]),
    ("russell-rao", [
        1.0, 1.0, 1.0, 0.833333333333, 1.0, 0.666666666667, 0.5, 0.5, 0.666666666667,
        0.666666666667, 0.833333333333, 0.666666666667, 0.5
    ]),
    ("hamming", [
        0.0, 0.333333333333, 0.333333333333, 0.666666666667, 0.5, 0.833333333333, 0.833333333333,
        0.0, 0.5, 0.833333333333, 1.0, 0.833333333333, 0.666666666667
    ]),
    ("canberra", [
        0.0, 2.0, 2.0, 3.333333333333, 3.0, 4.333333333333, 3.761904761905, 0.0, 2.777777777778,
        4.2, 5.333333333333, 4.2, 3.232323232323
    ]),
    ("chebyshev", [0.0, 2.0, 2.0, 2.5, 4.0, 1.0, 1.5, 0.0, 2.5, 2.0, 3.0, 2.0, 2.5]),
    ("manhattan", [0.0, 3.0, 3.0, 5.0, 7.0, 5.0, 5.0, 0.0, 6.25, 3.625, 7.375, 3.625, 6.5]),
    ("minkowski", [
        0.0, 2.080083823052, 2.080083823052, 2.608551723138, 4.179339196381, 1.709975946677,
        1.866255578409, 0.0, 3.071764945518, 2.082638657279, 3.524121220169, 2.082638657279,
        2.881993058432
    ]),
    ("hellinger", [
        NAN, NAN, NAN, 0.769253995463, 1.0, 0.656478793466, 0.573401844509, 0.0, NAN, NAN,
        0.954042634785, NAN, NAN
    ]),
    ("jensen-shannon", [
        INFINITY, INFINITY, INFINITY, 0.651602304966, 0.832554611158, 0.570541522309,
        0.499628635437, 0.0, INFINITY, INFINITY, 0.795221473477, INFINITY, INFINITY
    ]),
    ("kl", [
        0.0, 0.0, INFINITY, INFINITY, INFINITY, 1.38629436112, 1.944153239405, 0.0, INFINITY,
        INFINITY, INFINITY, INFINITY, INFINITY
    ]),
    ("symmetric-kl", [
        0.0, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, 0.0, INFINITY, INFINITY,
        INFINITY, INFINITY, INFINITY
    ]),
    ("braycurtis", [
        NAN, 1.0, 1.0, 0.714285714286, 1.0, 0.555555555556, 0.5, 0.0, 1.315789473684,
        0.547169811321, 0.936507936508, 0.547169811321, 1.0
    ]),
    ("rogerstanimoto", [
        0.0, 0.5, 0.5, 0.666666666667, 0.666666666667, 0.8, 0.666666666667, 0.0, 0.285714285714,
        0.666666666667, 0.909090909091, 0.666666666667, 0.285714285714
    ]),
    ("sokalsneath", [
        NAN, 1.0, 1.0, 0.857142857143, 1.0, 0.8, 0.666666666667, 0.0, 0.5, 0.75, 0.909090909091,
        0.75, 0.4
    ]),
    ("yule", [0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 1.0, 0.0]),
    ("matching", [
        0.0, 0.333333333333, 0.333333333333, 0.5, 0.5, 0.666666666667, 0.5, 0.0, 0.166666666667,
        0.5, 0.833333333333, 0.5, 0.166666666667
    ]),
];

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    found == expected
        || (found.is_nan() && expected.is_nan())
        || (found - expected).abs() <= tolerance * expected.abs().max(1.0)
}

#[test]
fn every_metric_as_scipy() {
    assert_eq!(SCIPY.map(|(metric, _)| metric), NAMES);
    for (metric, expected) in SCIPY {
        for ((i, j), expected) in PAIRS.into_iter().zip(expected) {
            let found = distance(metric, 3.0, &ROWS[i], &ROWS[j]);
            assert!(
                close(found, expected, 1e-11),
                "{metric} of {i} and {j}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn columns_of_zeros_count() {
    for metric in NAMES {
        for (x, y) in PAIRS.map(|(i, j)| (ROWS[i], ROWS[j])) {
            let pad = |row: &[f64]| [row, &[0.0; 5]].concat();
            let expected = distance(metric, 3.0, &pad(&x), &pad(&y));
            let found = among_columns(metric, 3.0, &x, &y, 11);
            assert!(close(found, expected, 1e-12), "{metric}: {found}, not {expected}");
        }
    }
}

#[rstest]
#[case::kl("kl", 2.6026896854443837)]
#[case::symmetric_kl("symmetric-kl", 2.8903717578961645)]
#[case::jensen_shannon("jensen-shannon", 0.3004101727641995)]
fn divergences_of_positive_rows(#[case] metric: &str, #[case] expected: f64) {
    let found = distance(metric, 0.0, &[1.0, 3.0], &[2.0, 1.0]);
    assert!(close(found, expected, 1e-12), "{found}");
}

#[rstest]
#[case(1, 2, INFINITY)]
#[case(1, 3, INFINITY)]
#[case(1, 4, 1.155245)]
#[case(2, 4, 0.891503)]
fn divergences_of_normalized_rows(#[case] i: usize, #[case] j: usize, #[case] expected: f64) {
    let [x, y] = [i, j].map(|row| {
        let sum: f64 = ROWS[row].iter().sum();
        ROWS[row].map(|x| x / sum)
    });
    assert!(close(kl(&x, &y), expected, 1e-6));
    assert_eq!(kl(&y, &x), INFINITY);
}

// The numbers of RAFT's tests.

#[rstest]
#[case(0, 1, 4.0)]
#[case(0, 2, 3026.0)]
#[case(0, 3, 226.0)]
#[case(1, 2, 2930.0)]
#[case(1, 3, 234.0)]
#[case(2, 3, 1832.0)]
fn sqeuclidean_as_raft(#[case] i: usize, #[case] j: usize, #[case] expected: f64) {
    let rows = [[1.0, 3.0], [1.0, 5.0], [50.0, 28.0], [16.0, 2.0]];
    assert_eq!(sqeuclidean(&rows[i], &rows[j]), expected);
}

#[rstest]
#[case(0, 1, 0.99296)]
#[case(0, 2, 1.41476)]
#[case(0, 3, 1.415699)]
#[case(1, 2, 0.4218)]
#[case(1, 3, 0.422739)]
#[case(2, 3, 0.844539)]
fn manhattan_as_raft(#[case] i: usize, #[case] j: usize, #[case] expected: f64) {
    let rows = [
        [0.0, 0.0, 0.0, 0.99296],
        [0.0; 4],
        [0.0, 0.0, 0.4218, 0.0],
        [0.11687, 0.305869, 0.0, 0.0],
    ];
    assert!(close(manhattan(&rows[i], &rows[j]), expected, 1e-9));
}

#[rstest]
#[case::overlapping([0.5, 0.5], 0.4645014, 1e-7)]
#[case::apart([0.0, 3.0], std::f64::consts::LN_2.sqrt(), 1e-15)]
fn jensen_shannon_as_raft(#[case] y: [f64; 2], #[case] expected: f64, #[case] tolerance: f64) {
    let found = jensen_shannon(&[1.0, 0.0], &y);
    assert!(close(found, expected, tolerance));
}

#[rstest]
#[case(0, [0, 3])]
#[case(1, [1, 0])]
#[case(2, [2, 0])]
#[case(3, [3, 0])]
fn two_nearest_rows_as_raft(#[case] query: usize, #[case] expected: [usize; 2]) {
    let row = |entries: &[(usize, f64)]| {
        let mut row = vec![0.0; 9];
        entries.iter().for_each(|&(column, value)| row[column] = value);
        row
    };
    let index = [
        row(&[(0, 0.0), (4, 1.0)]),
        row(&[(0, 5.0), (3, 6.0)]),
        row(&[(0, 5.0), (2, 6.0)]),
        row(&[(0, 0.0), (8, 1.0)]),
    ];
    let found = nearest("euclidean", 0.0, &index[query], &index, 2, None);
    assert_eq!(rows(found), expected);
}

#[test]
fn properties() {
    let not_symmetric = ["kl"];
    let not_zero = ["dot", "russell-rao"];
    for metric in NAMES {
        for x in &ROWS {
            for y in &ROWS {
                let (there, back) = (distance(metric, 3.0, x, y), distance(metric, 3.0, y, x));
                assert!(close(there, back, 1e-15) || not_symmetric.contains(&metric));
            }
            let own = distance(metric, 3.0, x, x);
            let undefined = own.is_nan() || own == INFINITY;
            assert!(own.abs() < 1e-7 || undefined || not_zero.contains(&metric));
        }
    }
    for (x, y) in PAIRS.map(|(i, j)| (ROWS[i], ROWS[j])) {
        assert!(close(minkowski(1.0, &x, &y), manhattan(&x, &y), 1e-14));
        assert!(close(minkowski(2.0, &x, &y), euclidean(&x, &y), 1e-14));
    }
}

#[fixture]
fn index() -> Vec<Vec<f64>> {
    ROWS.map(Vec::from).into()
}

fn rows(found: Vec<Neighbor>) -> Vec<usize> {
    found.into_iter().map(|(row, _)| row).collect()
}

/// The cosine to the zero row is NaN.
#[rstest]
fn nan_is_farthest(index: Vec<Vec<f64>>) {
    let all = nearest("cosine", 0.0, &ROWS[1], &index, 9, None);
    assert_eq!((all.len(), all[7].0), (8, 0));
    assert!(all[7].1.is_nan());
}

// The dot products of row 1 with itself and with row 4 are 5 and 3.
#[rstest]
#[case::all(3, None, &[1, 7, 4])]
#[case::excluded(2, Some(1), &[7, 4])]
#[case::none(0, None, &[])]
fn nearest_rows(
    index: Vec<Vec<f64>>,
    #[case] k: usize,
    #[case] excluded: Option<usize>,
    #[case] expected: &[usize],
) {
    let found = nearest("dot", 0.0, &ROWS[1], &index, k, excluded);
    assert_eq!(rows(found), expected);
}

#[rstest]
#[case::manhattan("manhattan", &[0, 1, 7])]
#[case::dot("dot", &[1, 4, 7])]
fn rows_within_a_radius(index: Vec<Vec<f64>>, #[case] metric: &str, #[case] expected: &[usize]) {
    let found = within_radius(metric, 0.0, &ROWS[1], &index, 3.0);
    assert_eq!(rows(found), expected);
}

#[rstest]
fn nan_is_in_no_radius(index: Vec<Vec<f64>>) {
    let found = within_radius("cosine", 0.0, &ROWS[1], &index, 2.0);
    assert_eq!(found.len(), 7);
}

#[test]
fn other_semirings() {
    let x = [(0, 1.0), (2, -2.0), (5, 4.0)];
    let y = [(2, 3.0), (3, 9.0), (5, 0.0)];
    assert_eq!(min_plus(&x, &y), 1.0);
    assert_eq!(max_times(&x, &y), 0.0);
    assert_eq!(or_and(&x, &y), 1.0);
    assert_eq!(or_and(&x[2..], &y), 0.0);
    assert_eq!(min_plus(&x, &[]), INFINITY);
    assert_eq!(max_times(&x[..1], &y), f64::NEG_INFINITY);
}

/// `cdist(X, Y, metric, w=[1, 0.25, 4, 2])`, SciPy 1.17, of X = [[1, 0, 2, 0], [0, 3, 1, 0.5]] and
/// Y = [[1, 1, 0, 0], [0, 0, 2, 4], [2, 1, 0, 1]].
#[rstest]
#[case("manhattan", 0.0, [8.25, 9.0, 11.25, 6.5, 11.75, 7.5])]
#[case("euclidean", 0.0, [
    4.031128874149275, 5.744562646538029, 4.387482193696061,
    2.5495097567963922, 5.545268253204709, 3.082207001484488,
])]
#[case("sqeuclidean", 0.0, [16.25, 33.0, 19.25, 6.5, 30.75, 9.5])]
#[case("cosine", 0.0, [
    0.7830695421813438, 0.439887966388796, 0.8059714999709336,
    0.7418011102528388, 0.33333333333333337, 0.7305698743781746,
])]
#[case("minkowski", 3.0, [
    3.183048380208446, 5.05277434720856, 3.2788360930848555,
    1.9354383203138983, 4.586792613421551, 2.4244037929199393,
])]
#[case("minkowski", 1.5, [
    5.113654990188607, 6.611489018457944, 5.9636843918158755,
    3.452197315446387, 6.9683612983401595, 4.080476794067487,
])]
#[case("braycurtis", 0.0, [
    0.8048780487804879, 0.36, 0.8490566037735849,
    0.9285714285714286, 0.5402298850574713, 0.75,
])]
#[case("chebyshev", 0.0, [2.0, 4.0, 2.0, 2.0, 3.5, 2.0])]
fn weights_are_those_of_scipy(#[case] metric: &str, #[case] p: f64, #[case] expected: [f64; 6]) {
    let w = [1.0, 0.25, 4.0, 2.0];
    let x = [[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 1.0, 0.5]];
    let y = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 4.0], [2.0, 1.0, 0.0, 1.0]];
    let pairs = x.iter().flat_map(|x| y.iter().map(move |y| (x, y)));
    for ((x, y), expected) in pairs.zip(expected) {
        let found = weighted(metric, p, &w, x, y).unwrap();
        assert!((found - expected).abs() <= 1e-14 * expected, "{found}, {expected}");
    }
}
