//! Selects the k greatest or least elements of a vector in a file; see `--help`.
mod cli;
mod npy;
mod select;

use std::{error::Error, process::ExitCode, time::Instant};

use burn::tensor::Device;
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_distr::StandardNormal;
use sparsek_examples::{
    backend, npz,
    program::{self, bar, check_paths, commit, create, named},
    say,
};

use crate::{
    cli::{Cli, Command, Dist, GenerateArgs, SelectArgs},
    npy::Vector,
    select::Request,
};

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli: Cli = match program::arguments() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    program::finish(match &cli.command {
        None => select(&cli.select),
        Some(Command::Generate(args)) => generate(args),
    })
}

/// Checks the whole input before writing a file.
fn select(args: &SelectArgs) -> Result<(), Box<dyn Error>> {
    let (Some(input), Some(k), Some(output)) = (&args.input, args.k, &args.output) else {
        return Err("--input, --k and --output are needed".into());
    };
    // Opening refuses folders.
    check_paths([input].iter().filter(|input| !input.is_dir()), [output])?;
    let vector = Vector::open(input)?;
    let (length, dtype) = (vector.length, vector.dtype);
    if k > length {
        let reason = format!("k = {k} is greater than the {length} elements");
        return Err(named(input, reason).into());
    }
    let backends = backend::open_each(args.backend, &args.devices)?;
    let devices: Vec<Device> = backends.iter().map(|b| b.device.clone()).collect();
    if let Some(lacking) = backends.iter().find(|b| !b.device.supports_dtype(dtype)) {
        return Err(format!("{lacking} has no {dtype:?}").into());
    }
    let file = npz::create(output)?;
    for backend in &backends {
        say!("{k} of {length} {dtype:?} on {backend}");
    }
    let start = Instant::now();
    let request = Request { k, largest: !args.smallest, sorted: args.sorted, chunk: args.chunk };
    let bar = (length > request.chunk()).then(|| bar(length)).flatten();
    let best = select::select(vector, &request, &devices, &|seen| {
        if let Some(bar) = &bar {
            bar.set_position(seen as u64);
        }
    })?;
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let file = npy::write(file, dtype, &best).map_err(|error| named(output, error))?;
    commit(output, file)?;
    let seconds = start.elapsed().as_secs_f64();
    say!("{} written in {seconds:.2} s", output.display());
    Ok(())
}

fn generate(args: &GenerateArgs) -> Result<(), Box<dyn Error>> {
    let GenerateArgs { length, output, .. } = args;
    if length.checked_mul(size_of::<f32>() * 2).is_none() {
        return Err(format!("--length {length}: no file holds that many elements").into());
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    let elements = std::iter::repeat_with(|| match args.dist {
        Dist::Normal => random.sample(StandardNormal),
        Dist::Uniform => random.random::<f32>(),
    });
    let mut file = create(output)?;
    npy::generate(&mut file, *length, elements).map_err(|error| named(output, error))?;
    commit(output, file)?;
    say!("{length} F32 written to {}", output.display());
    Ok(())
}
