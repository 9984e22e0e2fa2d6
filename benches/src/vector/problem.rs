//! Seeded vectors, the data of Dr. Top-k, and the check of a selection from them.

use anyhow::{Context, ensure};
use rayon::prelude::*;
use sparsek_tests::{
    data::{Distribution, Random},
    element::Element,
};

use crate::topk::{distribution, seeded_rows};

const SEEDED: usize = 1 << 16;

/// Source of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    Suite(Distribution),
    Paper(PaperData),
}

/// Dr. Top-k, Section 6: unsigned integers of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperData {
    /// UD: the whole range.
    Uniform,
    /// ND: mean 10^8, deviation 10.
    Normal,
    /// CD: each digit of 8 bits keeps most elements in the bucket of the kth, the greatest, and at
    /// least one in every other.
    Customized,
}

impl PaperData {
    pub const ALL: [Self; 3] = [Self::Uniform, Self::Normal, Self::Customized];

    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "paper-uniform",
            Self::Normal => "paper-normal",
            Self::Customized => "paper-customized",
        }
    }

    pub fn vector(self, length: usize) -> Vec<u32> {
        let mut input = vec![0u32; length];
        // Elements of the other buckets, spread over the vector.
        let others = DIGITS * (BUCKETS - 1);
        let step = (length / others).max(1);
        input.par_chunks_mut(SEEDED).enumerate().for_each(|(chunk, values)| {
            let mut random = Random::new(chunk as u64);
            for (at, value) in (chunk * SEEDED..).zip(values) {
                *value = match self {
                    Self::Uniform => random.bits() as u32,
                    Self::Normal => (1e8 + 10.0 * random.normal()).round() as u32,
                    Self::Customized if at % step == 0 && at / step < others => {
                        other_bucket(at / step, random.bits() as u32)
                    }
                    Self::Customized => {
                        (u32::MAX << DIGIT_BITS) | (random.bits() as u32 >> (32 - DIGIT_BITS))
                    }
                };
            }
        });
        input
    }
}

const DIGIT_BITS: u32 = 8;
const BUCKETS: usize = 1 << DIGIT_BITS;
/// Digits that choose a bucket before the last.
const DIGITS: usize = 3;

/// An element of a bucket that is not the greatest: the digits before are.
fn other_bucket(number: usize, random: u32) -> u32 {
    let (digit, bucket) = ((number / (BUCKETS - 1)) as u32, (number % (BUCKETS - 1)) as u32);
    let below = 32 - DIGIT_BITS * (digit + 1);
    let before = !(u32::MAX >> (DIGIT_BITS * digit));
    before | (bucket << below) | (random & ((1 << below) - 1))
}

impl Data {
    pub fn name(self) -> String {
        match self {
            Self::Suite(distribution) => distribution.name(),
            Self::Paper(data) => data.name().into(),
        }
    }

    /// For the command line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let paper = PaperData::ALL.into_iter().find(|data| data.name() == text);
        paper.map_or_else(|| distribution(text).map(Self::Suite), |data| Ok(Self::Paper(data)))
    }

    /// Draws a vector. The paper's data are u32.
    pub fn vector<T: Element>(self, length: usize) -> anyhow::Result<Vec<T>> {
        match self {
            Self::Suite(distribution) => Ok(vector(length, distribution)),
            Self::Paper(data) => {
                ensure!(T::NAME == "u32", "{} is of u32, not {}", data.name(), T::NAME);
                Ok(bytemuck::allocation::cast_vec(data.vector(length)))
            }
        }
    }
}

/// A vector drawn in blocks, each with a seed of its own.
pub fn vector<T: Element>(length: usize, dist: Distribution) -> Vec<T> {
    let mut input = seeded_rows::<T>(length.div_ceil(SEEDED), SEEDED, dist, 0);
    input.truncate(length);
    input
}

/// Checks that these are the k greatest elements in index order, ties to the lowest index. The
/// input has no NaN.
pub fn check<T: Element>(input: &[T], values: &[T], indices: &[i64]) -> anyhow::Result<()> {
    ensure!(indices.is_sorted_by(|a, b| a < b), "indices are not in order");
    let pairs = indices.iter().zip(values);
    ensure!(
        pairs.clone().all(|(&at, value)| input[at as usize].same(*value)),
        "values do not match the indices"
    );
    let least = values.iter().map(|value| value.wide_f64()).reduce(f64::min);
    let least = least.context("k is zero")?;
    let above = values.iter().filter(|value| value.wide_f64() > least);
    let (above, level) = (above.count(), |value: &T| value.wide_f64() == least);
    let found = input.par_iter().filter(|value| value.wide_f64() > least);
    ensure!(found.count() == above, "greater elements are missing");
    let last = pairs.filter(|(_, value)| level(value)).map(|(at, _)| *at);
    let last = last.max().context("nothing selected")? as usize;
    let first = input[..=last].par_iter().filter(|value| level(value));
    ensure!(first.count() == values.len() - above, "equal elements are not those of lowest index");
    Ok(())
}
