//! Writes the page into a folder: bindings, static files and the sample.

use std::{fs, io::Write, path::Path};

use flate2::{Compression, write::GzEncoder};
use wasm_bindgen_cli_support::Bindgen;

use crate::{Result, sample::sample};

/// Writes the page of a compiled module and of the checkout `root`, and prints its size.
pub fn write(root: &Path, module: &Path, folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(false).remove_name_section(true);
    bindgen.remove_producers_section(true).out_name("sparsek_web");
    let web = bindgen.web(true).map_err(|e| e.to_string())?;
    web.generate(folder).map_err(|e| format!("{}: {e:#}", module.display()))?;
    let statics = root.join("examples/web/static");
    let entries = fs::read_dir(&statics).map_err(|e| format!("{}: {e}", statics.display()))?;
    for entry in entries.flatten() {
        let to = folder.join(entry.file_name());
        fs::copy(entry.path(), &to).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    let (matrix, names) = sample(root)?;
    put(&folder.join("sample.npz"), &matrix)?;
    put(&folder.join("sample.txt"), (names.join("\n") + "\n").as_bytes())?;
    report(folder)
}

fn put(file: &Path, bytes: &[u8]) -> Result {
    fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))
}

fn report(folder: &Path) -> Result {
    let name = folder.join("sparsek_web_bg.wasm");
    let module = fs::read(&name).map_err(|e| format!("{}: {e}", name.display()))?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&module).map_err(|e| e.to_string())?;
    let packed = packed.finish().map_err(|e| e.to_string())?;
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "{}: {:.2} MB of WebAssembly, {:.2} MB with gzip",
        folder.display(),
        megabytes(module.len()),
        megabytes(packed.len())
    );
    Ok(())
}
