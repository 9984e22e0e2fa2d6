//! Top-k kernels: inputs that broke other libraries, and invalid requests.

use sparsek_kernels::KernelError;
use sparsek_kernels::topk::{self, Method, ROUTINES, Routine, Rows, TopkOptions};
use sparsek_tests::{
    backend::Backend,
    data::{Distribution, Matrix},
    runner::Outcome,
};

use crate::kernels::{Check, I32, Layout, refusal};

pub fn classics(backend: &Backend, routine: Option<Routine>) -> Outcome {
    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;
    let mut check = Check::new(backend, routine);
    let both = [true, false];
    let matrix = Matrix::<f32>::listed(&[
        &[NAN, INF, 1e4, 0.0, -1e4, -INF],
        &[-INF, -INF, -INF, -INF, -INF, -INF],
        &[INF, INF, 0.0, INF, INF, INF],
    ]);
    for largest in both {
        check.all(&matrix, Layout::Contiguous, &[1, 3, 4], &both, largest, Method::Exact)?;
    }
    let rows: [&[f64]; 4] = [
        &[0.5, NAN, NAN, NAN, NAN],
        &[0.5, -INF, -INF, -INF, -INF],
        &[0.5, INF, INF, INF, INF],
        &[0.5, -INF, NAN, -INF, INF],
    ];
    for largest in both {
        check.all(
            &Matrix::<f32>::listed(&rows),
            Layout::Contiguous,
            &[3],
            &both,
            largest,
            Method::Exact,
        )?;
    }
    // All NaN are equal; in the first columns their bits are the least.
    for cols in [2, 8, 64, 256] {
        let data = (0..3 * cols as u32).map(|i| f32::from_bits(0x7fc0_0000 + 0x1000 * i));
        let matrix = Matrix { rows: 3, cols, data: data.collect(), starts: None, lengths: None };
        check.all(
            &matrix,
            Layout::Contiguous,
            &[1, 2, cols.min(16)],
            &both,
            true,
            Method::Exact,
        )?;
    }
    check.all(
        &Matrix::<f32>::mixed(20, 700, 1),
        Layout::Contiguous,
        &[1, 5, 12, 16],
        &[true],
        true,
        Method::Exact,
    )?;
    let ks = [17, 31, 32, 33, 63, 64, 65, 255, 256, 511, 512, 1023, 1024, 1700];
    check.all(
        &Matrix::<f32>::of(Distribution::Uniform, 20, 1700, 2),
        Layout::Contiguous,
        &ks,
        &[true],
        true,
        Method::Exact,
    )?;
    // Ties at the k-th element that exceed k.
    for plant in [0.0f32, -0.0, f32::MIN_POSITIVE, 1e-45, f32::MAX, f32::MIN] {
        let mut matrix = Matrix::<f32>::of(Distribution::Normal, 3, 200, 3);
        matrix.data.iter_mut().step_by(3).for_each(|x| *x = plant);
        let above = matrix.row(0).iter().filter(|x| **x > plant).count();
        let ks = [above + 1, above + 20];
        check.all(&matrix, Layout::Contiguous, &ks, &both, true, Method::Exact)?;
    }
    check.end()
}

/// Consecutive bit patterns: one histogram bin holds everything.
pub fn one_bucket(backend: &Backend, routine: Option<Routine>) -> Outcome {
    let mut check = Check::new(backend, routine);
    let matrix = Matrix::<f32>::of(Distribution::Ramp, 2, 65_536, 4);
    check.all(&matrix, Layout::Contiguous, &[1024], &[false], true, Method::Exact)?;
    let ones = Matrix::<f32>::of(Distribution::Equal, 3, 500, 5);
    check.all(&ones, Layout::Contiguous, &[1, 100, 499], &[false, true], true, Method::Exact)?;
    check.end()
}

/// Invalid requests are refused by type before any launch.
pub fn errors(backend: &Backend) -> Result<(), String> {
    let client = backend.client.as_ref().expect("a client");
    let input = Layout::Contiguous.upload(client, &Matrix::<f32>::mixed(2, 10, 0));
    let wide = Rows { cols: topk::MAX_COLS + 1, ..input.clone() };
    let short = Rows { rows: 3, ..input.clone() };
    let bytes =
        Rows { dtype: cubecl::ir::ElemType::UInt(cubecl::ir::UIntKind::U8), ..input.clone() };
    let eps = |eps| TopkOptions { method: Method::Precision(eps), ..TopkOptions::new(2) };
    let two = TopkOptions::new(2);
    type Expected = fn(&KernelError) -> bool;
    let requests: [(&str, &Rows, TopkOptions, Expected); 7] = [
        ("k exceeds the row", &input, TopkOptions::new(11), |e| {
            matches!(e, KernelError::KTooLarge { k: 11, cols: 10 })
        }),
        ("too long a row", &wide, two, |e| matches!(e, KernelError::RowTooLong { .. })),
        ("too short a buffer", &short, two, |e| matches!(e, KernelError::BufferTooShort { .. })),
        ("an unsupported dtype", &bytes, two, |e| matches!(e, KernelError::Dtype { .. })),
        ("eps below 0", &input, eps(-1.0), |e| matches!(e, KernelError::Precision { .. })),
        ("eps NaN", &input, eps(f32::NAN), |e| matches!(e, KernelError::Precision { .. })),
        ("eps infinite", &input, eps(f32::INFINITY), |e| {
            matches!(e, KernelError::Precision { .. })
        }),
    ];
    for (what, rows, options, expected) in requests {
        for routine in std::iter::once(None).chain(ROUTINES.iter().copied().map(Some)) {
            match topk::topk(client, rows, &options, I32, routine) {
                Err(error)
                    if expected(&error) || refusal(&error).is_some() && routine.is_some() => {}
                Err(error) => return Err(format!("{what}: unexpected refusal: {error}")),
                Ok(_) => return Err(format!("{what}: accepted")),
            }
        }
    }
    let index = cubecl::ir::ElemType::Float(cubecl::ir::FloatKind::F32);
    match topk::argtopk(client, &input, &two, index, None) {
        Err(KernelError::Dtype { .. }) => Ok(()),
        Err(error) => Err(format!("float positions: {error}")),
        Ok(_) => Err("float positions were accepted".into()),
    }
}
