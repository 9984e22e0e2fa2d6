//! Patterns in raw files.

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use sparsek::{io::output, sparse::Pattern};

/// Reads raw int32 `PREFIX.indptr` and `PREFIX.indices` of a square matrix.
pub fn read(prefix: &Path) -> anyhow::Result<Pattern> {
    let array = |suffix: &str| -> anyhow::Result<Vec<u32>> {
        let path = format!("{}.{suffix}", prefix.display());
        let bytes = fs::read(&path).with_context(|| path.clone())?;
        ensure!(bytes.len().is_multiple_of(4), "{path}: the size is not a multiple of 4 bytes");
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    };
    let (indptr, indices) = (array("indptr")?, array("indices")?);
    let nodes = indptr.len().saturating_sub(1);
    Pattern::new(nodes, nodes, indptr, indices).with_context(|| prefix.display().to_string())
}

/// Writes a pattern in the format of [`read`].
pub fn write(pattern: &Pattern, prefix: &Path) -> anyhow::Result<()> {
    for (suffix, array) in [("indptr", pattern.indptr()), ("indices", pattern.indices())] {
        let path = format!("{}.{suffix}", prefix.display());
        output::write(path.as_ref(), bytemuck::cast_slice(array)).context(path.clone())?;
    }
    Ok(())
}

pub fn longest(pattern: &Pattern) -> usize {
    let rows = 0..pattern.rows();
    rows.max_by_key(|&row| pattern.row(row).len()).unwrap_or(0)
}
