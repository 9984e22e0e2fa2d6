//! Selects the k greatest or least elements of a vector in a file, of any length, on any backend.
//!
//! `topk --input scores.npy --k 100 --output top.npz` selects; `topk generate` writes a vector to try it on.
//! See `--help`.
mod cli;
mod npy;
mod select;

use std::{error::Error, process::ExitCode, time::Instant};

use burn::tensor::Device;
use clap::Parser;
use rand::{RngExt, SeedableRng, rngs::Xoshiro256PlusPlus};
use rand_distr::StandardNormal;
use sparsek_examples::{
    backend,
    program::{self, bar, check_output},
};

use crate::{
    cli::{Cli, Command, Dist, GenerateArgs, SelectArgs},
    npy::Vector,
    select::Request,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        None => select(&cli.select),
        Some(Command::Generate(args)) => generate(args),
    };
    program::finish(done)
}

/// Everything that can be wrong with the input is found before a file is written.
fn select(args: &SelectArgs) -> Result<(), Box<dyn Error>> {
    let (Some(input), Some(k), Some(output)) = (&args.input, args.k, &args.output) else {
        return Err("--input, --k and --output are needed".into());
    };
    let vector = Vector::open(input)?;
    let (length, dtype) = (vector.length, vector.dtype);
    if k > length {
        let input = input.display();
        return Err(format!("{input}: k = {k} is greater than the {length} elements").into());
    }
    check_output(output)?;
    let backends = backend::open_each(args.backend, &args.devices)?;
    let devices: Vec<Device> = backends.iter().map(|b| b.device.clone()).collect();
    if let Some(lacking) = backends.iter().find(|b| !b.device.supports_dtype(dtype)) {
        return Err(format!("{lacking} has no {dtype:?}").into());
    }
    for backend in &backends {
        println!("{k} of {length} {dtype:?} on {backend}");
    }
    let start = Instant::now();
    let request = Request {
        k,
        largest: !args.smallest,
        sorted: args.sorted,
        chunk: args.chunk,
    };
    let bar = (length > args.chunk).then(|| bar(length)).flatten();
    let best = select::select(&vector, &request, &devices, &|seen| {
        if let Some(bar) = &bar {
            bar.set_position(seen as u64);
        }
    })?;
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    npy::write(output, dtype, &best)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{} written in {seconds:.2} s", output.display());
    Ok(())
}

fn generate(args: &GenerateArgs) -> Result<(), Box<dyn Error>> {
    check_output(&args.output)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    let elements = std::iter::repeat_with(|| match args.dist {
        Dist::Normal => random.sample(StandardNormal),
        Dist::Uniform => random.random::<f32>(),
    });
    npy::generate(&args.output, args.length, elements)?;
    println!("{} F32 written to {}", args.length, args.output.display());
    Ok(())
}
