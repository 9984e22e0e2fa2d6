//! Vector top-k kernels: every subrange size and selection against the oracle.

use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{
    Construction, Filter, Routine, Selection, Subrange, TopkOptions, VectorOptions, VectorStrategy,
    topk_vector,
};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::{Distribution, Matrix},
    element::{Dtype, Element},
    runner::{Cases, Outcome},
    verify, with_dtype,
};

use crate::kernels::{Check, I64, Layout, U32, read, read_positions};

/// Lengths around the sizes of loads, planes, tiles and subranges.
const LENGTHS: [usize; 14] =
    [1, 2, 7, 31, 100, 1023, 4096, 4097, 16_384, 16_385, 65_537, 99_999, 262_144, 1_048_577];

/// Distributions with many ties, many candidates, infinities and NaN.
pub const HARD: [Distribution; 7] = [
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

fn strategy(subrange: Subrange, selection: Selection) -> VectorStrategy {
    VectorStrategy { subrange, selection, ..VectorStrategy::default() }
}

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    cases.check(backend, "kernel/vector/errors", errors);
    for how in Selection::ALL {
        let selection = how.name();
        let at = |group: String| format!("kernel/vector/{selection}/{group}");
        // Barriers are slow on a CPU; sorting networks have most.
        let on_cpu = backend.kind == Kind::Cpu;
        let long = if how == Selection::Bitonic { 5000 } else { usize::MAX };
        let most = if on_cpu { 10_000 } else { 40_000 };
        for length in LENGTHS.into_iter().filter(|&length| length < long || !on_cpu) {
            cases.add(backend, at(format!("f32/lengths/{length}")), move |b| {
                lengths(b, how, length)
            });
        }
        for (name, subrange) in SUBRANGES {
            cases.add(backend, at(format!("f32/subranges/{name}")), move |b| {
                let mut check = VectorCheck::new(b);
                for largest in [true, false] {
                    check.all_distributions::<f32>(long.min(most), &[1, 77, 700], |k| {
                        VectorOptions {
                            largest,
                            strategy: strategy(subrange, how),
                            ..VectorOptions::new(k)
                        }
                    })?;
                }
                check.end()
            });
        }
        for delegates in [1, 2, 3, 4] {
            // Several delegates: only automatic selection and one forced one.
            if delegates > 1 && !["auto", "radix"].contains(&selection) {
                continue;
            }
            for (name, filter) in [("on", Filter::On), ("off", Filter::Off)] {
                let case = at(format!("f32/delegates-{delegates}/filter-{name}"));
                cases.add(backend, case, move |b| {
                    let mut check = VectorCheck::new(b);
                    let all = [
                        (901, 4, &[1, 20, 50][..]),
                        (30_001, 4, &[1, 33, 500]),
                        (30_001, 3, &[1025, 2500]),
                        (100_001, 9, &[1, 40, 190]),
                        (300_000, 13, &[1, 17, 37]),
                    ];
                    let long = if on_cpu { long.min(50_000) } else { long };
                    for (length, exponent, ks) in all.into_iter().filter(|case| case.0 < long) {
                        check.distributions::<f32>(&HARD, length, ks, |k| VectorOptions {
                            largest: k % 2 == 1,
                            strategy: VectorStrategy {
                                subrange: Subrange::Exponent(exponent),
                                delegates,
                                selection: how,
                                filter,
                                ..VectorStrategy::default()
                            },
                            ..VectorOptions::new(k)
                        })?;
                    }
                    check.end()
                });
            }
        }
        for (name, construction) in
            [("planes", Construction::Planes), ("staged", Construction::Staged)]
        {
            let case = at(format!("f32/construction/{name}"));
            cases.add(backend, case, move |b| {
                let mut check = VectorCheck::new(b);
                for exponent in [0, 1, 3, 5] {
                    check.distributions::<f32>(&HARD, long.min(20_001), &[1, 77], |k| {
                        VectorOptions {
                            largest: k > 1,
                            strategy: VectorStrategy {
                                subrange: Subrange::Exponent(exponent),
                                construction,
                                selection: how,
                                ..VectorStrategy::default()
                            },
                            ..VectorOptions::new(k)
                        }
                    })?;
                }
                check.end()
            });
        }
        for (name, subrange) in SUBRANGES.into_iter().take(2) {
            // Most elements are close to the greatest key.
            cases.add(backend, at(format!("u32/custom/{name}")), move |b| {
                let length = if on_cpu { long.min(most) } else { 1 << 21 };
                let mut check = VectorCheck::new(b);
                check.distributions::<u32>(&[Distribution::Custom], length, &[1, 2, 300], |k| {
                    VectorOptions { strategy: strategy(subrange, how), ..VectorOptions::new(k) }
                })?;
                check.end()
            });
        }
        cases.add(backend, at("f32/sorted".into()), move |b| {
            let mut check = VectorCheck::new(b);
            check.all_distributions::<f32>(20_000, &[1, 50, 600], |k| VectorOptions {
                sorted: true,
                strategy: VectorStrategy { selection: how, ..VectorStrategy::default() },
                ..VectorOptions::new(k)
            })?;
            check.end()
        });
        for dtype in Dtype::ALL {
            with_dtype!(dtype, T => cases.add(
                backend,
                at(format!("{}/dtype", T::NAME)),
                move |b| dtypes::<T>(b, how, long.min(most.min(30_000))),
            ));
        }
    }
}

/// Invalid requests are refused before any launch.
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
            strategy: VectorStrategy {
                subrange: Subrange::Exponent(4),
                ..VectorStrategy::default()
            },
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

fn lengths(backend: &Backend, selection: Selection, length: usize) -> Outcome {
    let mut check = VectorCheck::new(backend);
    for (seed, distribution) in
        [Distribution::Normal, Distribution::Equal, Distribution::Eight].into_iter().enumerate()
    {
        let matrix = Matrix::<f32>::of(distribution, 1, length, (length + seed) as u64);
        for k in [0, 1, 2, 32, 1000, length / 20, length] {
            check.vector(
                &matrix,
                &VectorOptions {
                    strategy: VectorStrategy { selection, ..VectorStrategy::default() },
                    ..VectorOptions::new(k)
                },
            )?;
        }
    }
    check.end()
}

fn dtypes<T: Element>(backend: &Backend, selection: Selection, length: usize) -> Outcome {
    let mut check = VectorCheck::new(backend);
    // 16-bit floats have 16-bit subrange keys. In the last two cases the last subrange is
    // incomplete.
    for (largest, subrange, length) in [
        (true, Subrange::Auto, length),
        (false, Subrange::Auto, length),
        (true, Subrange::Exponent(3), length),
        (false, Subrange::Exponent(2), length),
        (true, Subrange::Exponent(3), length + 2),
        (false, Subrange::Exponent(2), length + 2),
    ] {
        check.all_distributions::<T>(length, &[1, 99, 1500], |k| VectorOptions {
            largest,
            strategy: VectorStrategy { subrange, selection, ..VectorStrategy::default() },
            ..VectorOptions::new(k)
        })?;
    }
    check.end()
}

/// Verifies vector selections; the case is skipped if the device refuses all of them.
pub struct VectorCheck<'a> {
    pub inner: Check<'a>,
}

impl<'a> VectorCheck<'a> {
    pub fn new(backend: &'a Backend) -> Self {
        Self {
            // Forced options may be unable to run.
            inner: Check::new(backend, Some(Routine::Unit)),
        }
    }

    fn all_distributions<T: Element>(
        &mut self,
        length: usize,
        ks: &[usize],
        options: impl Fn(usize) -> VectorOptions,
    ) -> Result<(), String> {
        self.distributions::<T>(&Distribution::ALL, length, ks, options)
    }

    pub fn distributions<T: Element>(
        &mut self,
        distributions: &[Distribution],
        length: usize,
        ks: &[usize],
        options: impl Fn(usize) -> VectorOptions,
    ) -> Result<(), String> {
        for &distribution in distributions {
            let matrix = Matrix::<T>::of(distribution, 1, length, 126);
            for &k in ks {
                self.vector(&matrix, &options(k))?;
            }
        }
        Ok(())
    }

    pub fn vector<T: Element>(
        &mut self,
        matrix: &Matrix<T>,
        options: &VectorOptions,
    ) -> Result<(), String> {
        let (client, k) = (self.inner.client(), options.k);
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
                self.inner.passed += 1;
            }
            Err(error) => self.inner.refuse(error)?,
        }
        Ok(())
    }

    pub fn end(self) -> Outcome {
        self.inner.end()
    }
}
