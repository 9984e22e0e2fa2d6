//! Selected rows and columns, and stacked matrices, against dense rows.

use burn::tensor::DType;
use half::{bf16, f16};
use sparsek::sparse::{Csr, CsrError, MAX_ENTRIES};
use sparsek_tests::{
    backend::Backend,
    data::Random,
    element::Element,
    oracle::spmm::Csr as Host,
    panics::expect_panic,
    runner::{Cases, Outcome, Verdict},
    sparse::{Sparse, rounded, upload},
};

use crate::sparse::csr::{elements, same};

pub fn add(cases: &mut Cases, backend: &Backend) {
    add_dtype::<f32>(cases, backend);
    add_dtype::<f64>(cases, backend);
    add_dtype::<f16>(cases, backend);
    add_dtype::<bf16>(cases, backend);
    cases.check(backend, "tensor/csr/stack/errors", errors);
}

fn add_dtype<T: Element>(cases: &mut Cases, backend: &Backend) {
    for recipe in Sparse::ALL {
        let case = format!("tensor/csr/stack/{}/{}", T::NAME, recipe.name);
        cases.add(backend, case, move |b| of_dtype::<T>(b, &recipe));
    }
}

/// Entries row by row, as the matrix must store them.
type Rows = Vec<Vec<(usize, f64)>>;

fn rows(host: &Host) -> Rows {
    let mut rows = vec![Vec::new(); host.rows];
    host.entries().for_each(|(i, j, x)| rows[i].push((j, x)));
    rows
}

fn check<T: Element>(what: &str, found: &Csr, cols: usize, expected: &Rows) -> Result<(), String> {
    let entries: Vec<(usize, f64)> = expected.concat();
    let mut ends = vec![0];
    ends.extend(expected.iter().scan(0, |end, row| {
        *end += row.len() as u32;
        Some(*end)
    }));
    let columns: Vec<u32> = entries.iter().map(|entry| entry.0 as u32).collect();
    let pattern = found.pattern();
    if pattern.cols() != cols || pattern.indptr() != ends || pattern.indices() != columns {
        return Err(format!("{what}: {pattern:?}"));
    }
    let on_device: Vec<u32> = found.indices().to_data().iter::<u32>().collect();
    if on_device != columns {
        return Err(format!("{what}: {on_device:?} on the device"));
    }
    let values: Vec<f64> = entries.iter().map(|entry| entry.1).collect();
    same::<T>(what, &elements(found.values())?, &values)
}

fn of_dtype<T: Element>(backend: &Backend, recipe: &Sparse) -> Outcome {
    if let Some(reason) = backend.lacks(T::dtype()) {
        return Ok(Verdict::Skipped(reason));
    }
    let device = &backend.device;
    let host = rounded::<T>(&recipe.matrix(20));
    let csr = upload::<T>(&host, device);
    let all = rows(&host);
    let mut random = Random::new(21);
    let mut flags =
        |count: usize| -> Vec<bool> { (0..count).map(|_| random.below(3) > 0).collect() };

    for keep in [vec![true; host.rows], vec![false; host.rows], flags(host.rows)] {
        let expected = all.iter().zip(&keep).filter(|(_, keep)| **keep);
        let expected = expected.map(|(row, _)| row.clone()).collect();
        check::<T>("rows", &csr.filter_rows(&keep), host.cols, &expected)?;
    }
    for keep in [vec![true; host.cols], vec![false; host.cols], flags(host.cols)] {
        let kept: Vec<usize> = (0..host.cols).filter(|&j| keep[j]).collect();
        let row = |row: &Vec<(usize, f64)>| -> Vec<(usize, f64)> {
            let places = row.iter().map(|&(j, x)| (kept.iter().position(|&k| k == j), x));
            places.filter_map(|(at, x)| Some((at?, x))).collect()
        };
        let expected = all.iter().map(row).collect();
        check::<T>("columns", &csr.filter_cols(&keep), kept.len(), &expected)?;
    }
    let chosen: Vec<usize> = match host.rows {
        0 => Vec::new(),
        count => (0..2 * count).map(|_| random.below(count)).collect(),
    };
    let expected = chosen.iter().map(|&row| all[row].clone()).collect();
    check::<T>("chosen rows", &csr.select_rows(&chosen), host.cols, &expected)?;

    let taller = rounded::<T>(&recipe.with_rows(recipe.rows + 3).matrix(22));
    let other = upload::<T>(&taller, device);
    let stacked = Csr::vstack(&[&csr, &other, &csr]).map_err(|e| e.to_string())?;
    let expected = [all.clone(), rows(&taller), all.clone()].concat();
    check::<T>("vstack", &stacked, host.cols, &expected)?;
    let wider = Sparse { cols: recipe.cols + 5, ..*recipe };
    let wider = rounded::<T>(&wider.matrix(23));
    let stacked = Csr::hstack(&[&csr, &upload::<T>(&wider, device), &csr]);
    let stacked = stacked.map_err(|e| e.to_string())?;
    let after = rows(&wider);
    let expected = (0..host.rows).map(|i| {
        let moved = |row: &[(usize, f64)], by: usize| -> Vec<(usize, f64)> {
            row.iter().map(|&(j, x)| (j + by, x)).collect()
        };
        let last = host.cols + wider.cols;
        [all[i].clone(), moved(&after[i], host.cols), moved(&all[i], last)].concat()
    });
    check::<T>("hstack", &stacked, 2 * host.cols + wider.cols, &expected.collect())?;
    for alone in [Csr::vstack(&[&csr]), Csr::hstack(&[&csr])] {
        check::<T>("alone", &alone.map_err(|e| e.to_string())?, host.cols, &all)?;
    }
    Ok(Verdict::Passed)
}

fn errors(backend: &Backend) -> Result<(), String> {
    let csr = upload::<f32>(&Sparse::ALL[0].matrix(1), &backend.device);
    let other = upload::<f32>(&Sparse::ALL[3].matrix(1), &backend.device);
    let wide = Sparse { cols: MAX_ENTRIES, density: 0.0, ..Sparse::ALL[0] };
    let pattern = sparsek::sparse::Pattern::new(37, wide.cols, vec![0; 38], Vec::new());
    let pattern = pattern.map_err(|e| e.to_string())?;
    let wide = Csr::new(pattern, csr.values().clone().slice(0..0)).map_err(|e| e.to_string())?;
    let size = |what, found, expected| CsrError::Size { what, found, expected };
    let mut refused = vec![
        (Csr::vstack(&[]), CsrError::Nothing),
        (Csr::hstack(&[]), CsrError::Nothing),
        (Csr::vstack(&[&csr, &other]), size("columns", 12, 50)),
        (Csr::hstack(&[&csr, &other]), size("rows", 40, 37)),
    ];
    if backend.lacks(DType::F16).is_none() {
        let half = upload::<f16>(&Sparse::ALL[0].matrix(1), &backend.device);
        let dtypes = CsrError::Dtypes { first: DType::F32, other: DType::F16 };
        refused.push((Csr::vstack(&[&csr, &half]), dtypes));
    }
    for (found, expected) in refused {
        match found {
            Err(error) if error == expected && !error.to_string().contains('\n') => {}
            other => return Err(format!("{other:?} instead of {expected:?}")),
        }
    }
    match Csr::hstack(&[&csr, &wide]) {
        Err(CsrError::Pattern(error)) if error.to_string().contains("columns") => {}
        other => return Err(format!("too many columns: {other:?}")),
    }
    for (message, word) in [
        (expect_panic(|| drop(csr.filter_rows(&[true])))?, "1 choices for 37 rows"),
        (expect_panic(|| drop(csr.filter_cols(&[true])))?, "1 choices for 50 columns"),
        (expect_panic(|| drop(csr.select_rows(&[36, 37])))?, "row 37 of a matrix of 37 rows"),
    ] {
        if !message.contains(word) {
            return Err(format!("{word}: {message}"));
        }
    }
    Ok(())
}
