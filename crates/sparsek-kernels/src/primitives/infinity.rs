#![allow(missing_docs, reason = "the macro writes a module of its own beside the function")]

use cubecl::prelude::*;

pub(crate) const INFINITY_BITS: u32 = 0x7f80_0000;

/// +∞ for kernels: WGSL has no such literal.
///
/// Compilers do not fold its runtime bits. Drivers may compute ln 0 as finite.
#[cube]
pub fn infinity<F: Float>() -> F {
    F::cast_from(f32::reinterpret(INFINITY_BITS.runtime()))
}

#[cfg(test)]
mod tests {
    use std::{
        env, fs,
        path::{Path, PathBuf},
    };

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn kernels_have_no_literals_that_wgsl_lacks() {
        let mut files = Vec::new();
        // Checkouts may share a target directory.
        let package = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
        sources(&Path::new(&package).join("src"), &mut files);
        let mut kernels = 0;
        for file in files {
            let text = fs::read_to_string(&file).expect("a source");
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            if !text.contains("#[cube") {
                continue;
            }
            kernels += 1;
            for literal in ["::INFINITY", "::NEG_INFINITY", "::NAN"] {
                assert!(!text.contains(literal), "{}: {literal}", file.display());
            }
        }
        assert!(kernels > 50, "{kernels} files with kernels");
    }
}
