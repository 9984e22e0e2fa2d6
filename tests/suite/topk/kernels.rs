//! Top-k kernels, for every routine.

use cubecl::features::Plane;
use sparsek_kernels::topk::{Method, Routine};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    element::{Dtype, Element},
    runner::{Cases, Outcome, Verdict},
    with_dtype,
};

use crate::{
    kernels::{Check, I32, I64, Layout, U32, routines},
    topk::{
        classics::{classics, errors, one_bucket},
        common::each_output,
    },
};

const SIZES: [usize; 38] = [
    1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130, 255, 256, 257, 300, 511,
    512, 513, 700, 768, 1000, 1023, 1024, 1025, 1700, 2048, 4096, 4097, 8192, 16_384, 20_000,
    100_000,
];

const METHODS: [(&str, Method); 8] = [
    ("early-0", Method::EarlyStop(0)),
    ("early-1", Method::EarlyStop(1)),
    ("early-4", Method::EarlyStop(4)),
    ("early-8", Method::EarlyStop(8)),
    ("early-40", Method::EarlyStop(40)),
    ("early-all", Method::EarlyStop(u32::MAX)),
    ("precision-0", Method::Precision(0.0)),
    ("precision-1e-3", Method::Precision(1e-3)),
];

pub fn add(cases: &mut Cases, backend: &Backend) {
    if backend.client.is_none() {
        return;
    }
    for (name, routine) in routines() {
        let at = |group: String| format!("kernel/topk/{name}/{group}");
        for cols in SIZES {
            cases.add(backend, at(format!("f32/sizes/{cols}")), move |b| sizes(b, routine, cols));
        }
        for largest in [true, false] {
            let end = if largest { "largest" } else { "smallest" };
            for (method, value) in METHODS {
                cases.add(backend, at(format!("f32/{method}/{end}")), move |b| {
                    methods(b, routine, value, largest)
                });
            }
            cases.add(backend, at(format!("f32/exact/{end}")), move |b| {
                methods(b, routine, Method::Exact, largest)
            });
            for dtype in Dtype::ALL {
                with_dtype!(dtype, T => add_dtype::<T>(cases, backend, &at, end, routine));
            }
        }
        for layout in Layout::ALL {
            cases.add(backend, at(format!("f32/layout/{layout:?}").to_lowercase()), move |b| {
                layouts(b, routine, layout)
            });
        }
        for rows in [1, 2, 3, 31, 100, 70_001] {
            cases
                .add(backend, at(format!("f32/rows/{rows}")), move |b| many_rows(b, routine, rows));
        }
        for (form, index) in [("i32", I32), ("i64", I64), ("u32", U32)] {
            cases.add(backend, at(format!("f32/outputs/{form}")), move |b| {
                outputs(b, routine, index, &[60, 256, 1100])
            });
        }
        for layout in Layout::ALL {
            cases.add(backend, at(format!("f32/long/{layout:?}").to_lowercase()), move |b| {
                long::<f32>(b, routine, layout, true)
            });
        }
        cases.add(backend, at("f32/long/outputs".into()), move |b| {
            outputs(b, routine, U32, &[20_000])
        });
        cases.add(backend, at("f32/sorted".into()), move |b| sorted(b, routine));
        if routine == Some(Routine::Block) {
            cases.add(backend, at("f32/histograms/outputs".into()), move |b| {
                outputs(b, routine, U32, &[9_001])
            });
        }
        if routine == Some(Routine::Filter) {
            cases.add(backend, at("f32/many-tiles".into()), move |b| many_tiles(b, routine));
        }
        cases.add(backend, at("f32/classics".into()), move |b| classics(b, routine));
        cases.add(backend, at("f32/one-bucket".into()), move |b| one_bucket(b, routine));
    }
    for dtype in Dtype::ALL {
        with_dtype!(dtype, T => cases.add(
            backend,
            format!("kernel/topk/auto/few-long/{}", T::NAME),
            few_long::<T>,
        ));
        with_dtype!(dtype, T => cases.add(
            backend,
            format!("kernel/topk/auto/few-longest/{}", T::NAME),
            few_longest::<T>,
        ));
    }
    cases.check(backend, "kernel/topk/errors", errors);
}

fn add_dtype<T: Element>(
    cases: &mut Cases,
    backend: &Backend,
    at: &dyn Fn(String) -> String,
    end: &str,
    routine: Option<Routine>,
) {
    let largest = end == "largest";
    cases.add(backend, at(format!("{}/long/{end}", T::NAME)), move |b| {
        long::<T>(b, routine, Layout::Contiguous, largest)
    });
    if routine == Some(Routine::Block) {
        cases.add(backend, at(format!("{}/histograms/{end}", T::NAME)), move |b| {
            histograms::<T>(b, routine, largest)
        });
    }
    cases.add(backend, at(format!("{}/planes/{end}", T::NAME)), move |b| {
        planes::<T>(b, routine, largest)
    });
    cases.add(backend, at(format!("{}/sorted-long/{end}", T::NAME)), move |b| {
        sorted_long::<T>(b, routine, largest)
    });
    for (method, value) in [
        ("exact", Method::Exact),
        ("early-4", Method::EarlyStop(4)),
        ("precision-1e-2", Method::Precision(1e-2)),
    ] {
        cases.add(backend, at(format!("{}/dtype/{method}/{end}", T::NAME)), move |b| {
            dtype::<T>(b, routine, value, largest)
        });
    }
}

fn seed(cols: usize) -> u64 {
    18 * cols as u64
}

fn sizes(backend: &Backend, routine: Option<Routine>, cols: usize) -> Outcome {
    let mut check = Check::new(backend, routine);
    let rows = if cols > 8192 { 5 } else { Distribution::ALL.len() };
    let matrix = Matrix::<f32>::mixed(rows, cols, seed(cols) + cols as u64 / 20_000);
    let mut ks =
        vec![0, 1, 2, 3, 16, 17, 31, 32, 33, 64, 65, 128, 255, 256, 512, cols / 2, cols - 1, cols];
    if cols > 1100 {
        ks = vec![1, 31, 129, 1023, 2048, cols / 2, cols];
    }
    ks.sort_unstable();
    ks.dedup();
    check.all(&matrix, Layout::Contiguous, &ks, &[false], true, Method::Exact)?;
    check.end()
}

fn few_long<T: Element>(backend: &Backend) -> Outcome {
    let mut check = Check::new(backend, None);
    for (rows, cols, ks) in [(3, 1 << 15, [1, 700]), (7, 3 << 15, [50, 2048])] {
        let matrix = Matrix::<T>::mixed(rows, cols, seed(cols) + 3);
        for largest in [true, false] {
            let sorted = [false, true];
            check.all(&matrix, Layout::Contiguous, &ks, &sorted, largest, Method::Exact)?;
        }
        check.all(&matrix, Layout::Padded, &ks[..1], &[false], true, Method::Exact)?;
    }
    check.end()
}

/// Few rows, each read by several cubes: many columns, and lists that take larger cubes.
fn few_longest<T: Element>(backend: &Backend) -> Outcome {
    let mut check = Check::new(backend, None);
    if !check.client().features().plane.contains(Plane::Ops) {
        return Ok(Verdict::Skipped("the device has no planes".into()));
    }
    for (rows, cols, ks) in [(1, (1 << 20) + 3, [1025, 2048]), (3, 5 << 17, [700, 2500])] {
        let matrix = Matrix::<T>::mixed(rows, cols, seed(cols) + 5);
        check.all(&matrix, Layout::Contiguous, &ks, &[false], true, Method::Exact)?;
        check.all(&matrix, Layout::Padded, &ks[1..], &[true], false, Method::Exact)?;
        let ragged = matrix.with_any_lengths(146);
        check.all(&ragged, Layout::Contiguous, &ks[1..], &[false], true, Method::Exact)?;
    }
    check.end()
}

fn methods(backend: &Backend, routine: Option<Routine>, method: Method, largest: bool) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [1, 64, 250, 1000, 4097] {
        let matrix = Matrix::<f32>::mixed(18, cols, seed(cols) + 18);
        check.all(
            &matrix,
            Layout::Contiguous,
            &[1, 2, 31, 32, cols / 2, cols],
            &[false, true],
            largest,
            method,
        )?;
    }
    check.end()
}

fn dtype<T: Element>(
    backend: &Backend,
    routine: Option<Routine>,
    method: Method,
    largest: bool,
) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [64, 203, 1500] {
        let matrix = Matrix::<T>::mixed(18, cols, seed(cols) + 36);
        check.all(
            &matrix,
            Layout::Contiguous,
            &[1, 17, 32, cols / 2],
            &[false, true],
            largest,
            method,
        )?;
    }
    check.end()
}

/// Full register rows; all rows of a plane have one distribution, so that their searches end
/// together.
fn planes<T: Element>(backend: &Backend, routine: Option<Routine>, largest: bool) -> Outcome {
    let mut check = Check::new(backend, routine);
    for (cols, ks) in [(256, &[1, 16, 33, 128][..]), (512, &[32]), (768, &[100]), (1024, &[64])] {
        for distribution in [
            Distribution::Normal,
            Distribution::Uniform,
            Distribution::Relu,
            Distribution::Eight,
            Distribution::Special,
            Distribution::Subnormal,
            Distribution::Ramp,
        ] {
            check.all(
                &Matrix::<T>::of(distribution, 43, cols, seed(cols) + 108),
                Layout::Contiguous,
                ks,
                &[false],
                largest,
                Method::Exact,
            )?;
        }
    }
    check.end()
}

/// Sorted output, with and without ties.
fn sorted(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let mut check = Check::new(backend, routine);
    for (cols, ks) in [(256, &[5, 16, 33, 128, 129][..]), (600, &[64, 100]), (1500, &[200, 600])] {
        for distribution in [
            Distribution::Normal,
            Distribution::Eight,
            Distribution::Special,
            Distribution::Subnormal,
            Distribution::Bits,
            Distribution::Outlier,
        ] {
            check.all(
                &Matrix::<f32>::of(distribution, 40, cols, seed(cols) + 54),
                Layout::Contiguous,
                ks,
                &[true],
                true,
                Method::Exact,
            )?;
        }
    }
    check.end()
}

/// Selections, parts and all of a row, above what ranks sort: within a tile and of several.
fn sorted_long<T: Element>(backend: &Backend, routine: Option<Routine>, largest: bool) -> Outcome {
    let mut check = Check::new(backend, routine);
    for (cols, ks) in [(1025, &[513, 1025][..]), (4096, &[4096]), (9001, &[4097, 9001])] {
        let matrix = Matrix::<T>::mixed(18, cols, seed(cols) + 126);
        check.all(&matrix, Layout::Contiguous, ks, &[true], largest, Method::Exact)?;
    }
    check.end()
}

fn layouts(backend: &Backend, routine: Option<Routine>, layout: Layout) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [65, 128, 1300] {
        let matrix = Matrix::<f32>::mixed(18, cols, seed(cols) + 54);
        check.all(&matrix, layout, &[1, 32, 65], &[false, true], true, Method::Exact)?;
    }
    for cols in [700, 5000] {
        let matrix = Matrix::<f32>::mixed(18, cols, seed(cols) + 54);
        check.all(&matrix, layout, &[cols], &[true], true, Method::Exact)?;
    }
    check.end()
}

/// Rows that exceed the registers of a cube.
fn long<T: Element>(
    backend: &Backend,
    routine: Option<Routine>,
    layout: Layout,
    largest: bool,
) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [16_400, 30_001] {
        let matrix = Matrix::<T>::mixed(18, cols, seed(cols) + 90);
        check.all(&matrix, layout, &[1, 100, 700], &[false], largest, Method::Exact)?;
    }
    check.end()
}

/// Rows that a cube holds and searches by histograms; whole and ragged.
fn histograms<T: Element>(backend: &Backend, routine: Option<Routine>, largest: bool) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [8_201, 1 << 14] {
        let matrix = Matrix::<T>::mixed(18, cols, seed(cols) + 91);
        let ks = [1, 700, 4500, cols];
        check.all(&matrix, Layout::Contiguous, &ks, &[false], largest, Method::Exact)?;
        check.all(&matrix, Layout::Padded, &[300, 700], &[true], largest, Method::Exact)?;
        check.all(&matrix, Layout::Transposed, &[700], &[false], largest, Method::Exact)?;
        let ragged = matrix.with_any_lengths(147);
        check.all(&ragged, Layout::Contiguous, &ks[1..], &[false], largest, Method::Exact)?;
        let between = ragged.with_any_starts(148);
        check.all(&between, Layout::Contiguous, &[700], &[false], largest, Method::Exact)?;
    }
    check.end()
}

/// Enough rows for tiles of several steps; whole and ragged.
fn many_tiles(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let mut check = Check::new(backend, routine);
    if !check.client().features().plane.contains(Plane::Ops) {
        return Ok(Verdict::Skipped("the device has no planes".into()));
    }
    let matrix = Matrix::<f32>::mixed(540, 66_001, 144);
    check.all(&matrix, Layout::Contiguous, &[700], &[false], true, Method::Exact)?;
    let ragged = matrix.with_any_lengths(145);
    check.all(&ragged, Layout::Contiguous, &[700], &[false], true, Method::Exact)?;
    check.end()
}

/// More rows than one grid dimension, and row counts that no cube size divides.
fn many_rows(backend: &Backend, routine: Option<Routine>, rows: usize) -> Outcome {
    let mut check = Check::new(backend, routine);
    for cols in [3, 40] {
        let matrix = Matrix::<f32>::mixed(rows, cols, seed(cols) + rows as u64);
        check.all(&matrix, Layout::Contiguous, &[2], &[false], true, Method::Exact)?;
    }
    check.end()
}

fn outputs(
    backend: &Backend,
    routine: Option<Routine>,
    index: cubecl::ir::ElemType,
    cols: &[usize],
) -> Outcome {
    let mut check = Check::new(backend, routine);
    for &cols in cols {
        let matrix = Matrix::<f32>::mixed(18, cols, seed(cols) + 72);
        each_output(&mut check, &matrix, index)?;
    }
    check.end()
}
