//! Top-k of one vector at kernel level: every way to cut it and to select from its parts, against the oracle.

use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{
    Filter, Routine, Selection, Subrange, TopkOptions, TopkStream, VectorOptions, WorkloadStats,
    topk, topk_vector, topk_vector_stats,
};
use sparsek_tests::backend::{Backend, Kind};
use sparsek_tests::data::{Distribution, Matrix};
use sparsek_tests::element::{Dtype, Element};
use sparsek_tests::runner::{Cases, Outcome};
use sparsek_tests::{verify, with_dtype};

use crate::kernels::{Check, I64, Layout, U32, read, read_positions};

/// Lengths on both sides of the boundaries of loads, planes, tiles and stretches.
const LENGTHS: [usize; 14] = [
    1, 2, 7, 31, 100, 1023, 4096, 4097, 16_384, 16_385, 65_537, 99_999, 262_144, 1_048_577,
];

const SELECTIONS: [(&str, Selection); 5] = [
    ("auto", Selection::Auto),
    ("rows", Selection::Rows),
    ("radix", Selection::Radix),
    ("bucket", Selection::Bucket),
    ("bitonic", Selection::Bitonic),
];

/// Distributions with many ties, many candidates, infinities and NaN.
const HARD: [Distribution; 7] = [
    Distribution::Normal,
    Distribution::Equal,
    Distribution::Eight,
    Distribution::Special,
    Distribution::Ascending,
    Distribution::Worst,
    Distribution::Best,
];

const SUBRANGES: [(&str, Subrange); 5] = [
    ("auto", Subrange::Auto),
    ("whole", Subrange::Whole),
    ("0", Subrange::Exponent(0)),
    ("4", Subrange::Exponent(4)),
    ("9", Subrange::Exponent(9)),
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    cases.check(backend, "kernel/vector/errors", errors);
    cases.add(backend, "kernel/vector/workload", workload);
    for (rows, cols, k) in [
        (1, 40_000, 300),
        (1, 1 << 20, 5000),
        (2, 1 << 21, 33),
        (3, 3 << 20, 1),
    ] {
        let case = format!("kernel/vector/long-rows/{rows}x{cols}x{k}");
        cases.add(backend, case, move |b| long_rows(b, rows, cols, k));
    }
    for part in [1, 7, 999, 4096, 30_000] {
        cases.add(backend, format!("kernel/vector/stream/{part}"), move |b| {
            streams(b, part)
        });
    }
    cases.check(backend, "kernel/vector/stream/errors", stream_errors);
    for (selection, how) in SELECTIONS {
        let at = |group: String| format!("kernel/vector/{selection}/{group}");
        // Barriers of sorting networks take their time on a CPU.
        let long = if how == Selection::Bitonic {
            5000
        } else {
            usize::MAX
        };
        for length in LENGTHS
            .into_iter()
            .filter(|&length| length < long || backend.kind != Kind::Cpu)
        {
            cases.add(backend, at(format!("f32/lengths/{length}")), move |b| {
                lengths(b, how, length)
            });
        }
        for (name, subrange) in SUBRANGES {
            cases.add(backend, at(format!("f32/subranges/{name}")), move |b| {
                let mut check = Vectors::new(b);
                for largest in [true, false] {
                    check.distributions::<f32>(long.min(40_000), &[1, 77, 700], |k| {
                        VectorOptions {
                            largest,
                            subrange,
                            selection: how,
                            ..VectorOptions::new(k)
                        }
                    })?;
                }
                check.end()
            });
        }
        for delegates in [1, 2, 3, 4] {
            // Several delegates are for automatic selections; one other shows that selections can be forced.
            if delegates > 1 && !["auto", "radix"].contains(&selection) {
                continue;
            }
            for (name, filter) in [("on", Filter::On), ("off", Filter::Off)] {
                let case = at(format!("f32/delegates-{delegates}/filter-{name}"));
                cases.add(backend, case, move |b| {
                    let mut check = Vectors::new(b);
                    let all = [
                        (901, 4, &[1, 20, 50][..]),
                        (30_001, 4, &[1, 33, 500]),
                        (100_001, 9, &[1, 40, 190]),
                        (300_000, 13, &[1, 17, 37]),
                    ];
                    for (length, exponent, ks) in all.into_iter().filter(|case| case.0 < long) {
                        check.some::<f32>(&HARD, length, ks, |k| VectorOptions {
                            largest: k % 2 == 1,
                            subrange: Subrange::Exponent(exponent),
                            delegates,
                            selection: how,
                            filter,
                            ..VectorOptions::new(k)
                        })?;
                    }
                    check.end()
                });
            }
        }
        cases.add(backend, at("f32/sorted".into()), move |b| {
            let mut check = Vectors::new(b);
            check.distributions::<f32>(20_000, &[1, 50, 600], |k| VectorOptions {
                sorted: true,
                selection: how,
                ..VectorOptions::new(k)
            })?;
            check.end()
        });
        for dtype in Dtype::ALL {
            with_dtype!(dtype, T => cases.add(
                backend,
                at(format!("{}/dtype", T::NAME)),
                move |b| dtypes::<T>(b, how, long.min(30_000)),
            ));
        }
    }
}

/// What is refused before anything is launched.
fn errors(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().ok_or("kernels")?;
    let input =
        Layout::Contiguous.upload(client, &Matrix::<f32>::of(Distribution::Normal, 1, 64, 0));
    let of = |length: usize, options: VectorOptions| {
        let f32 = input.dtype;
        topk_vector(client, &input.handle, f32, length, &options, I64).map(|_| ())
    };
    let too_many = of(64, VectorOptions::new(65));
    let too_short = of(65, VectorOptions::new(1));
    let too_few = of(
        64,
        VectorOptions {
            subrange: Subrange::Exponent(4),
            ..VectorOptions::new(5)
        },
    );
    match (&too_many, &too_short, &too_few) {
        (
            Err(KernelError::KTooLarge { k: 65, cols: 64 }),
            Err(KernelError::BufferTooShort { needed: 65, .. }),
            Err(KernelError::Routine { .. }),
        ) => Ok(()),
        found => Err(format!("{found:?}")),
    }
}

/// What a selection worked on: all of it by hand.
fn workload(backend: &Backend) -> Outcome {
    let mut check = Vectors::new(backend);
    let client = check.check.client();
    // Eight subranges of four: the three best elements lie in two of them.
    let mut data = vec![0.0f32; 32];
    (data[5], data[6], data[20]) = (3.0, 2.0, 4.0);
    let input = client.create_from_slice(bytemuck::cast_slice(&data));
    for (delegates, subranges, concatenated) in [(1, 3, 12), (2, 1, 3)] {
        let options = VectorOptions {
            subrange: Subrange::Exponent(2),
            delegates,
            filter: Filter::On,
            ..VectorOptions::new(3)
        };
        let found = topk_vector_stats(client, &input, f32::elem_type(), 32, &options, I64);
        let (selected, stats) = match found {
            Ok(found) => found,
            Err(error) => {
                check.check.refuse(error)?;
                continue;
            }
        };
        let positions = read_positions(client, selected.indices, I64, 3);
        if positions != [5, 6, 20] {
            return Err(format!("members {positions:?}"));
        }
        // With one delegate, the third best is a zero: the first subrange of those without a member.
        let wanted = WorkloadStats {
            length: 32,
            delegates: 8 * delegates,
            subranges,
            concatenated,
        };
        if stats != wanted {
            return Err(format!("{stats:?} instead of {wanted:?}"));
        }
        check.check.passed += 1;
    }
    check.end()
}

/// Rows that are vectors where the device is a GPU.
fn long_rows(backend: &Backend, rows: usize, cols: usize, k: usize) -> Outcome {
    let mut check = Vectors::new(backend);
    let client = check.check.client();
    for distribution in [Distribution::Normal, Distribution::Eight] {
        let matrix = Matrix::<f32>::of(distribution, rows, cols, 7);
        let input = Layout::Contiguous.upload(client, &matrix);
        for sorted in [false, true] {
            let options = TopkOptions {
                sorted,
                ..TopkOptions::new(k)
            };
            match topk(client, &input, &options, I64, None) {
                Ok(selected) => {
                    let values = read::<f32>(client, selected.values, rows * k);
                    let positions = read_positions(client, selected.indices, I64, rows * k);
                    verify::selection(&matrix, &options, Some(&values), &positions)?;
                    check.check.passed += 1;
                }
                Err(error) => check.check.refuse(error)?,
            }
        }
    }
    check.end()
}

/// A vector in parts.
fn streams(backend: &Backend, part: usize) -> Outcome {
    let mut check = Vectors::new(backend);
    let client = check.check.client();
    let length = (40 * part).min(20_000);
    for distribution in [
        Distribution::Normal,
        Distribution::Eight,
        Distribution::Special,
    ] {
        let matrix = Matrix::<f32>::of(distribution, 1, length, part as u64);
        for (k, largest, sorted) in [
            (1, true, false),
            (5, false, true),
            (300, true, false),
            (length, true, true),
        ] {
            if k > length {
                continue;
            }
            let options = VectorOptions {
                largest,
                sorted,
                ..VectorOptions::new(k)
            };
            let mut stream = TopkStream::new(client, f32::elem_type(), options);
            let mut parts = matrix.data.chunks(part).map(bytemuck::cast_slice);
            let pushed = parts.try_for_each(|part| stream.push(part));
            match pushed.and_then(|()| stream.finish()) {
                Ok(best) => {
                    let asked = TopkOptions {
                        largest,
                        sorted,
                        ..TopkOptions::new(k)
                    };
                    let values: Vec<f32> = bytemuck::pod_collect_to_vec(&best.values);
                    let places: Vec<i64> = best.indices.iter().map(|&at| at as i64).collect();
                    verify::selection(&matrix, &asked, Some(&values), &places)?;
                    check.check.passed += 1;
                }
                Err(error) => check.check.refuse(error)?,
            }
        }
    }
    check.end()
}

/// Parts that are none, too few elements, and that no result follows a part that failed.
fn stream_errors(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().ok_or("kernels")?;
    let stream = || TopkStream::new(client, f32::elem_type(), VectorOptions::new(3));
    let mut short = stream();
    let whole = short.push(&[0; 8]);
    let mut broken = stream();
    let part = broken.push(&[0; 7]);
    let after = broken.push(&[0; 16]);
    match (whole, short.finish(), part, after, broken.finish()) {
        (
            Ok(()),
            Err(KernelError::KTooLarge { k: 3, cols: 2 }),
            Err(KernelError::Part { bytes: 7, size: 4 }),
            Ok(()),
            Err(KernelError::Part { bytes: 7, size: 4 }),
        ) => Ok(()),
        found => Err(format!("{found:?}")),
    }
}

fn lengths(backend: &Backend, selection: Selection, length: usize) -> Outcome {
    let mut check = Vectors::new(backend);
    for (seed, distribution) in [
        Distribution::Normal,
        Distribution::Equal,
        Distribution::Eight,
    ]
    .into_iter()
    .enumerate()
    {
        let matrix = Matrix::<f32>::of(distribution, 1, length, (length + seed) as u64);
        for k in [0, 1, 2, 32, 1000, length / 20, length] {
            check.one(
                &matrix,
                &VectorOptions {
                    selection,
                    ..VectorOptions::new(k)
                },
            )?;
        }
    }
    check.end()
}

fn dtypes<T: Element>(backend: &Backend, selection: Selection, length: usize) -> Outcome {
    let mut check = Vectors::new(backend);
    for largest in [true, false] {
        check.distributions::<T>(length, &[1, 99, 1500], |k| VectorOptions {
            largest,
            selection,
            ..VectorOptions::new(k)
        })?;
    }
    check.end()
}

/// Runs selections from vectors; skipped when the device refuses all of them.
struct Vectors<'a> {
    check: Check<'a>,
}

impl<'a> Vectors<'a> {
    fn new(backend: &'a Backend) -> Self {
        Self {
            // Parts that were forced may be unable to run.
            check: Check::new(backend, Some(Routine::Unit)),
        }
    }

    fn distributions<T: Element>(
        &mut self,
        length: usize,
        ks: &[usize],
        options: impl Fn(usize) -> VectorOptions,
    ) -> Result<(), String> {
        self.some::<T>(&Distribution::ALL, length, ks, options)
    }

    fn some<T: Element>(
        &mut self,
        distributions: &[Distribution],
        length: usize,
        ks: &[usize],
        options: impl Fn(usize) -> VectorOptions,
    ) -> Result<(), String> {
        for &distribution in distributions {
            let matrix = Matrix::<T>::of(distribution, 1, length, 126);
            for &k in ks {
                self.one(&matrix, &options(k))?;
            }
        }
        Ok(())
    }

    fn one<T: Element>(
        &mut self,
        matrix: &Matrix<T>,
        options: &VectorOptions,
    ) -> Result<(), String> {
        let (client, k) = (self.check.client(), options.k);
        if k > matrix.cols {
            return Ok(());
        }
        let input = Layout::Contiguous.upload(client, matrix);
        let index = if k % 2 == 0 { U32 } else { I64 };
        let length = matrix.cols;
        match topk_vector(client, &input.handle, input.dtype, length, options, index) {
            Ok(selected) => {
                let asked = TopkOptions {
                    largest: options.largest,
                    sorted: options.sorted,
                    ..TopkOptions::new(k)
                };
                let values = read::<T>(client, selected.values, k);
                let positions = read_positions(client, selected.indices, index, k);
                verify::selection(matrix, &asked, Some(&values), &positions)
                    .map_err(|error| format!("{options:?}: {error}"))?;
                self.check.passed += 1;
            }
            Err(error) => self.check.refuse(error)?,
        }
        Ok(())
    }

    fn end(self) -> Outcome {
        self.check.end()
    }
}
