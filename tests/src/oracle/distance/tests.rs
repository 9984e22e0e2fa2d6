//! Distances against scipy 1.17.1, the values in RAFT's tests, and properties.

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
            assert!(
                close(found, expected, 1e-12),
                "{metric}: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn divergences_of_positive_rows() {
    let (x, y) = ([1.0, 3.0], [2.0, 1.0]);
    for (metric, expected) in [
        ("kl", 2.6026896854443837),
        ("symmetric-kl", 2.8903717578961645),
        ("jensen-shannon", 0.3004101727641995),
    ] {
        let found = distance(metric, 0.0, &x, &y);
        assert!(close(found, expected, 1e-12), "{metric}: {found}");
    }
    // Rows divided by their sums.
    let normalized = |row: &[f64]| -> Vec<f64> {
        let sum: f64 = row.iter().sum();
        row.iter().map(|x| x / sum).collect()
    };
    let rows = ROWS.map(|row| normalized(&row));
    for ((i, j), expected) in [(1, 2), (1, 3), (1, 4), (2, 4)]
        .into_iter()
        .zip([INFINITY, INFINITY, 1.155245, 0.891503])
    {
        assert!(close(kl(&rows[i], &rows[j]), expected, 1e-6));
        assert_eq!(kl(&rows[j], &rows[i]), INFINITY);
    }
}

#[test]
fn the_numbers_of_rafts_tests() {
    let rows = [[1.0, 3.0], [1.0, 5.0], [50.0, 28.0], [16.0, 2.0]];
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let expected = [4.0, 3026.0, 226.0, 2930.0, 234.0, 1832.0];
    assert_eq!(
        pairs.map(|(i, j)| sqeuclidean(&rows[i], &rows[j])),
        expected
    );

    let rows = [
        [0.0, 0.0, 0.0, 0.99296],
        [0.0; 4],
        [0.0, 0.0, 0.4218, 0.0],
        [0.11687, 0.305869, 0.0, 0.0],
    ];
    let expected = [0.99296, 1.41476, 1.415699, 0.4218, 0.422739, 0.844539];
    for ((i, j), expected) in pairs.into_iter().zip(expected) {
        assert!(close(manhattan(&rows[i], &rows[j]), expected, 1e-9));
    }

    assert!(close(
        jensen_shannon(&[1.0, 0.0], &[0.5, 0.5]),
        0.4645014,
        1e-7
    ));
    let apart = jensen_shannon(&[1.0, 0.0], &[0.0, 3.0]);
    assert!(close(apart, std::f64::consts::LN_2.sqrt(), 1e-15));

    let row = |entries: &[(usize, f64)]| {
        let mut row = vec![0.0; 9];
        entries
            .iter()
            .for_each(|&(column, value)| row[column] = value);
        row
    };
    let rows = [
        row(&[(0, 0.0), (4, 1.0)]),
        row(&[(0, 5.0), (3, 6.0)]),
        row(&[(0, 5.0), (2, 6.0)]),
        row(&[(0, 0.0), (8, 1.0)]),
    ];
    let two = |i: usize| {
        nearest("euclidean", 0.0, &rows[i], &rows, 2, None)
            .into_iter()
            .map(|(row, _)| row)
            .collect::<Vec<_>>()
    };
    assert_eq!([0, 1, 2, 3].map(two), [[0, 3], [1, 0], [2, 0], [3, 0]]);
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

#[test]
fn neighbors() {
    let index: Vec<Vec<f64>> = ROWS.map(Vec::from).into();
    let rows = |found: Vec<Neighbor>| found.into_iter().map(|(row, _)| row).collect::<Vec<_>>();
    let query = &ROWS[1];
    // Cosine to the zero row is NaN: last. Dot of rows 1 and 4: 5 and 3.
    let all = nearest("cosine", 0.0, query, &index, 9, None);
    assert_eq!((all.len(), all[7].0), (8, 0));
    assert!(all[7].1.is_nan());
    assert_eq!(rows(nearest("dot", 0.0, query, &index, 3, None)), [1, 7, 4]);
    assert_eq!(rows(nearest("dot", 0.0, query, &index, 2, Some(1))), [7, 4]);
    assert!(nearest("dot", 0.0, query, &index, 0, None).is_empty());
    assert_eq!(
        rows(within_radius("manhattan", 0.0, query, &index, 3.0)),
        [0, 1, 7]
    );
    assert_eq!(
        rows(within_radius("dot", 0.0, query, &index, 3.0)),
        [1, 4, 7]
    );
    assert_eq!(
        rows(within_radius("cosine", 0.0, query, &index, 2.0)).len(),
        7
    );
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
