//! Vector selections that a single cube finishes, for every way to select delegates.

use sparsek_kernels::topk::{Finish, Subrange, VectorOptions, VectorStrategy};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::{Distribution, Matrix},
    element::{Dtype, Element},
    runner::{Cases, Outcome},
    with_dtype,
};

use crate::vector::selections::{HARD, VectorCheck};

/// k around the capacity of a unit's registers.
const KS: [usize; 5] = [1, 2, 15, 99, 600];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for finish in Finish::ALL.into_iter().skip(1) {
        let at = |group: String| format!("kernel/vector/finish/{}/{group}", finish.name());
        // Around the sizes of loads, subranges, groups and cubes.
        for length in [1025, 4097, 30_001, 65_536, 65_537, 262_143, 1_100_001] {
            if backend.kind == Kind::Cpu && length > 262_143 {
                continue;
            }
            cases.add(backend, at(format!("f32/lengths/{length}")), move |b| {
                lengths(b, finish, length)
            });
        }
        for exponent in [0, 3, 5, 8] {
            cases.add(backend, at(format!("f32/subranges/{exponent}")), move |b| {
                let mut check = VectorCheck::new(b);
                for largest in [true, false] {
                    check.distributions::<f32>(&HARD, 20_001, &KS, |k| VectorOptions {
                        largest,
                        strategy: VectorStrategy {
                            finish,
                            subrange: Subrange::Exponent(exponent),
                            ..VectorStrategy::default()
                        },
                        ..VectorOptions::new(k)
                    })?;
                }
                check.end()
            });
        }
        for dtype in Dtype::ALL {
            with_dtype!(dtype, T => cases.add(
                backend,
                at(format!("{}/dtype", T::NAME)),
                move |b| dtypes::<T>(b, finish),
            ));
        }
    }
}

fn lengths(backend: &Backend, finish: Finish, length: usize) -> Outcome {
    let mut check = VectorCheck::new(backend);
    for (seed, &distribution) in HARD.iter().enumerate() {
        let matrix = Matrix::<f32>::of(distribution, 1, length, (length + seed) as u64);
        for k in KS {
            let options = VectorOptions {
                sorted: k == 15,
                strategy: VectorStrategy { finish, ..VectorStrategy::default() },
                ..VectorOptions::new(k)
            };
            // Twice: a call must not depend on what the previous one left in memory.
            for _ in 0..2 {
                check.vector(&matrix, &options)?;
            }
        }
    }
    check.end()
}

fn dtypes<T: Element>(backend: &Backend, finish: Finish) -> Outcome {
    let mut check = VectorCheck::new(backend);
    // CPU cubes have few units, which hold few groups.
    let length = if backend.kind == Kind::Cpu { 10_001 } else { 40_001 };
    // Even lengths of bf16 are read in pairs.
    let lengths = if T::NAME == "bf16" { 2 } else { 1 };
    for length in length..length + lengths {
        for largest in [true, false] {
            check.distributions::<T>(&Distribution::ALL, length, &KS, |k| VectorOptions {
                largest,
                strategy: VectorStrategy {
                    finish,
                    subrange: Subrange::Exponent(4),
                    ..VectorStrategy::default()
                },
                ..VectorOptions::new(k)
            })?;
        }
    }
    check.end()
}
