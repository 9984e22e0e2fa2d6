//! Sizes on the command line: `2**20x256x32`.

use std::{fmt, str::FromStr};

use anyhow::{Context, ensure};

#[derive(Clone, Debug)]
pub struct RowCase {
    pub text: String,
    pub rows: usize,
    pub cols: usize,
    pub k: usize,
}

impl RowCase {
    /// A case written as plain numbers.
    pub fn new(rows: usize, cols: usize, k: usize) -> Self {
        Self { text: format!("{rows}x{cols}x{k}"), rows, cols, k }
    }
}

impl FromStr for RowCase {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let sizes: Vec<usize> = text.split('x').map(size).collect::<anyhow::Result<_>>()?;
        ensure!(sizes.len() == 3, "{text}: a case is NxMxk, for example 2**20x256x32");
        Ok(Self { text: text.into(), rows: sizes[0], cols: sizes[1], k: sizes[2] })
    }
}

impl fmt::Display for RowCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug)]
pub struct VectorCase {
    pub text: String,
    pub length: usize,
    pub k: usize,
}

impl VectorCase {
    /// A case written as plain numbers.
    pub fn new(length: usize, k: usize) -> Self {
        Self { text: format!("{length}x{k}"), length, k }
    }
}

impl FromStr for VectorCase {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (length, k) = text
            .split_once('x')
            .with_context(|| format!("{text}: a case is Nxk, for example 2**30x128"))?;
        Ok(Self { text: text.into(), length: size(length)?, k: size(k)? })
    }
}

impl fmt::Display for VectorCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses a number or `base**exponent`.
pub(crate) fn size(text: &str) -> anyhow::Result<usize> {
    let number = |text: &str| text.parse::<usize>().with_context(|| format!("{text}: not a size"));
    match text.split_once("**") {
        None => number(text),
        Some((base, exponent)) => number(base)?
            .checked_pow(number(exponent)? as u32)
            .with_context(|| format!("{text}: too large")),
    }
}
