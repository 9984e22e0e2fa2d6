//! Trains graph networks with MaxK; see `--help`.
mod cli;
mod commands;
mod figure;
mod look;
mod plot;
mod progress;
mod stop;

use std::process::ExitCode;

use sparsek_examples::program;

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli: cli::Cli = match program::arguments() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let done = match cli.command {
        None => commands::demo(&cli.demo),
        Some(cli::Command::Train(args)) => commands::train(&args),
        Some(cli::Command::Eval(args)) => commands::eval(&args),
        Some(cli::Command::Export(args)) => commands::export(&args),
        Some(cli::Command::Compare(args)) => commands::compare(&args),
        Some(cli::Command::Graphs(args)) => commands::graphs(&args),
        #[cfg(feature = "download")]
        Some(cli::Command::Download(args)) => commands::download(&args),
    };
    let interrupted = matches!(done, Ok(commands::Ended::Interrupted));
    let status = program::finish(done.map(drop));
    match interrupted {
        true => ExitCode::from(stop::STATUS),
        false => status,
    }
}
