//! Builds, serves and tests the page; `cargo xtask web` runs it.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod browser;
mod bundle;
mod checks;
mod sample;
mod server;

use std::{env, path::Path, process::ExitCode};

/// The error is a message.
type Result<T = ()> = std::result::Result<T, String>;

const USAGE: &str = "\
usage: sparsek-web bundle ROOT MODULE.wasm FOLDER   writes the page of a checkout
       sparsek-web serve FOLDER [PORT]              serves it on 127.0.0.1
       sparsek-web test FOLDER SCREENSHOTS          tests it in headless Chromium";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["bundle", root, module, folder] => {
            bundle::write(Path::new(root), Path::new(module), Path::new(folder))
        }
        ["serve", folder] => serve(folder, "8080"),
        ["serve", folder, port] => serve(folder, port),
        ["test", folder, shots] => checks::run(Path::new(folder), Path::new(shots)),
        _ => Err(USAGE.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("sparsek-web: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn serve(folder: &str, port: &str) -> Result {
    let port = port.parse().map_err(|_| format!("{port} is not a port"))?;
    let (address, serving) = server::start(Path::new(folder), port)?;
    println!("http://{address}/");
    serving.join().map_err(|_| "the server stopped".to_string())
}
