//! Row-wise top-k: by the kernels, or by the tensor operation on backends without kernels.

mod arguments;
mod check;
mod kernels;
mod problem;
mod tensors;

use anyhow::{Context, ensure};
use sparsek_tests::{backend::Backend, data::Distribution, element::Element, with_dtype};

pub use arguments::{Arguments, distribution};
pub use check::{Output, check};
pub use kernels::checked_selection;
pub use problem::{Form, Problem, seeded_rows};
pub use tensors::burn;

use crate::{
    case::RowCase,
    copy,
    record::{self, Record},
    timing::Ready,
};

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(
        !arguments.burn || arguments.form.is_list(),
        "--burn needs --form pairs, indices or sorted, not {}",
        arguments.form.name()
    );
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    ensure!(
        arguments.routine.is_none() || backend.client.is_some(),
        "{}: routines run on devices",
        arguments.backend
    );
    ensure!(
        arguments.lengths.is_none() || (backend.client.is_some() && arguments.form.is_list()),
        "--lengths needs a device and --form pairs, indices or sorted"
    );
    let copy_gbps = copy::backend_rate(&backend)?;
    say!("{} ({}): copy {copy_gbps:.0} GB/s", arguments.backend, backend.label);
    let bench = Bench { backend, arguments, copy_gbps };
    for case in &arguments.cases {
        for &dist in &arguments.dists {
            for dtype in &arguments.dtypes {
                with_dtype!(dtype, T => bench.methods::<T>(case, dist)?);
            }
        }
    }
    Ok(())
}

/// Runs and checks a case: by the kernels, or by the tensor operation on backends without kernels.
pub fn ready<T: Element>(
    backend: &Backend,
    problem: &Problem<T>,
) -> anyhow::Result<Ready<'static>> {
    match &backend.client {
        Some(client) => kernels::ready(client, problem),
        None => tensors::ready(&backend.device, problem),
    }
}

struct Bench<'a> {
    backend: Backend,
    arguments: &'a Arguments,
    copy_gbps: f64,
}

impl Bench<'_> {
    fn methods<T: Element>(&self, case: &RowCase, dist: Distribution) -> anyhow::Result<()> {
        let form = self.arguments.form;
        let input = seeded_rows::<T>(case.rows, case.cols, dist, 0);
        let mut problem = Problem::new(case, form, &input);
        problem.routine = self.arguments.routine;
        let lengths = self.arguments.lengths;
        problem.columns = lengths.map(|lengths| lengths.of(case.rows, case.cols));
        let mut burn_ms = None;
        for text in &self.arguments.methods {
            problem.method = text.parse()?;
            let context = || format!("{case}, {text}, {dist:?}, {}", T::NAME);
            let times =
                ready(&self.backend, &problem).and_then(Ready::measure).with_context(context)?;
            if self.arguments.burn && burn_ms.is_none() {
                burn_ms = burn(&self.backend.device, &problem).with_context(context)?;
            }
            let record = Record {
                bench: "topk".into(),
                case: case.text.clone(),
                backend: self.arguments.backend.to_string(),
                device: self.backend.label.clone(),
                dtype: T::NAME.into(),
                method: match problem.routine {
                    Some(routine) => format!("{text}@{}", routine.name()),
                    None => text.clone(),
                },
                form: match lengths {
                    Some(lengths) => format!("{}/{}", form.name(), lengths.name()),
                    None => form.name(),
                },
                dist: dist.name(),
                ms: times.median.ms,
                spread: Some(times.median.spread),
                first_ms: times.first_ms,
                floor_ms: problem.bytes() as f64 / self.copy_gbps / 1e6,
                copy_gbps: self.copy_gbps,
                checked: times.checked,
                burn_ms,
            };
            print(&record, problem.bytes());
            if let Some(path) = &self.arguments.json {
                record::append(path, &record)?;
            }
        }
        Ok(())
    }
}

fn print(record: &Record, bytes: usize) {
    let Record { case, method, dtype, form, dist, ms, first_ms, floor_ms, checked, .. } = record;
    let burn = record
        .burn_ms
        .map_or(String::new(), |burn| format!(", Burn {burn:.4} ms ({:.2} x ours)", burn / ms));
    say!(
        "{case} {dtype} {method} {form} {dist}: {ms:.4} ms, {:.2} x floor ({floor_ms:.4} ms), \
         {:.0} GB/s{burn}, first call {first_ms:.0} ms, {checked} rows checked",
        ms / floor_ms,
        bytes as f64 / ms / 1e6,
    );
}
