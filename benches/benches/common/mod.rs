//! What all targets share: backends, criterion's settings, and cases that are checked first.

use std::{env, process, time::Duration};

use clap::ValueEnum;
use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use sparsek::io::print::note;
use sparsek_bench::timing::Ready;
use sparsek_tests::backend::{Backend, Kind};

const BACKENDS: &str = "SPARSEK_BACKENDS";

/// Runs a target on each backend. Options of the command line override the settings.
pub fn main(target: impl Fn(&mut Criterion, &Backend)) {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
        .configure_from_args();
    for backend in backends() {
        note(format_args!("{}: {}", backend.kind, backend.label));
        target(&mut criterion, &backend);
    }
    criterion.final_summary();
}

/// The backends in `SPARSEK_BACKENDS`, which must be present, or all linked ones that are found.
fn backends() -> Vec<Backend> {
    let fail = |reason: String| -> ! {
        note(format_args!("{reason}"));
        process::exit(2)
    };
    let requested = env::var(BACKENDS).ok().filter(|names| !names.is_empty());
    let kinds = match &requested {
        None => Kind::linked(),
        Some(names) => names
            .split(',')
            .map(|name| {
                let kind = Kind::from_str(name.trim(), true);
                kind.unwrap_or_else(|reason| fail(format!("{BACKENDS}={names}: {reason}")))
            })
            .collect(),
    };
    let mut backends = Vec::new();
    for kind in kinds {
        match kind.find() {
            Ok(backend) if backend.is_llvmpipe() => {
                let label = &backend.label;
                note(format_args!("backend {kind} is skipped: {label} is software"));
            }
            Ok(backend) => backends.push(backend),
            Err(reason) if requested.is_none() => note(format_args!("{reason}")),
            Err(reason) => fail(reason),
        }
    }
    if backends.is_empty() {
        fail("no backend: add one, such as `--features flex`".into());
    }
    backends
}

/// Chooses the sizes for the host, or those for a GPU.
pub fn sized<T>(backend: &Backend, host: T, gpu: T) -> T {
    match backend.client.is_none() || backend.kind == Kind::Cpu {
        true => host,
        false => gpu,
    }
}

/// Times a case that `prepare` checks. A case that the filter leaves out is not prepared.
///
/// Compulsory traffic as [`Throughput::BytesDecimal`] prints as GB/s.
pub fn bench<'a>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    throughput: Throughput,
    prepare: impl Fn() -> anyhow::Result<Ready<'a>>,
) {
    let stop = |error: anyhow::Error| -> ! { panic!("{name}: {error:#}") };
    let mut ready = None;
    group.throughput(throughput);
    group.bench_function(name, |bencher| {
        let ready = ready.get_or_insert_with(|| prepare().unwrap_or_else(|error| stop(error)));
        bencher.iter_custom(|runs| {
            let ms = ready.sample(runs as usize).unwrap_or_else(|error| stop(error));
            Duration::from_secs_f64(ms / 1e3)
        });
    });
}
