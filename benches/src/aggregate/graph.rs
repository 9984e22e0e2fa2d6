//! Graphs to aggregate over: seeded power-law graphs of the sizes of known data sets, and files.

use std::{
    fs,
    path::Path,
    str::FromStr,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use anyhow::{Context, bail, ensure};
use rayon::prelude::*;

/// A square CSR pattern.
pub struct Graph {
    pub indptr: Vec<i32>,
    pub indices: Vec<i32>,
}

/// A synthetic graph: symmetric, random vertex order, edges may repeat. The expected degree of the i-th of n vertices, before they
/// are put in random order, is proportional to (i + n / shift)^-power.
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    pub name: &'static str,
    pub nodes: usize,
    /// Directed edges.
    pub edges: usize,
    pub power: f64,
    pub shift: f64,
}

impl Synthetic {
    /// As many nodes and edges as Reddit and ogbn-products have, hubs of about the degree of theirs.
    pub const ALL: [Self; 2] = [
        Self {
            name: "reddit-size",
            nodes: 232_965,
            edges: 114_600_000,
            power: 0.6,
            shift: 2_000.0,
        },
        Self {
            name: "products-size",
            nodes: 2_449_029,
            edges: 123_700_000,
            power: 0.75,
            shift: 20_000.0,
        },
    ];

    /// With `parts` times fewer nodes and edges.
    fn shrunk(self, parts: usize) -> Self {
        Self {
            nodes: (self.nodes / parts).max(2),
            edges: self.edges / parts / 2 * 2,
            ..self
        }
    }

    /// The graph of a seed.
    pub fn graph(&self, seed: u64) -> Graph {
        let nodes = self.nodes;
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        for i in (1..nodes).rev() {
            order.swap(i, (mix(seed ^ (i as u64) << 32) % (i as u64 + 1)) as usize);
        }
        let ends = |edge: usize| {
            let draw = |which: u64| {
                let bits = mix(seed.wrapping_add(1 + 2 * edge as u64 + which));
                order[self.vertex((bits >> 11) as f64 / (1u64 << 53) as f64)] as usize
            };
            [draw(0), draw(1)]
        };
        let counts: Vec<AtomicU32> = (0..nodes).map(|_| AtomicU32::new(0)).collect();
        let pairs = self.edges / 2;
        (0..pairs).into_par_iter().for_each(|edge| {
            for end in ends(edge) {
                counts[end].fetch_add(1, Relaxed);
            }
        });
        let mut indptr = vec![0i32];
        let mut total = 0;
        for count in &counts {
            let degree = count.swap(total, Relaxed);
            total += degree;
            indptr.push(total as i32);
        }
        let indices: Vec<AtomicU32> = (0..total)
            .into_par_iter()
            .map(|_| AtomicU32::new(0))
            .collect();
        (0..pairs).into_par_iter().for_each(|edge| {
            let [a, b] = ends(edge);
            for (from, to) in [(a, b), (b, a)] {
                let place = counts[from].fetch_add(1, Relaxed) as usize;
                indices[place].store(to as u32, Relaxed);
            }
        });
        let mut indices: Vec<i32> = indices
            .into_par_iter()
            .map(|index| index.into_inner() as i32)
            .collect();
        let mut rows = Vec::with_capacity(nodes);
        let mut rest = indices.as_mut_slice();
        for row in indptr.windows(2) {
            let (own, others) = rest.split_at_mut((row[1] - row[0]) as usize);
            rows.push(own);
            rest = others;
        }
        rows.into_par_iter().for_each(|row| row.sort_unstable());
        Graph { indptr, indices }
    }

    /// The vertex at a share of the sum of all expected degrees.
    fn vertex(&self, share: f64) -> usize {
        let nodes = self.nodes as f64;
        let first = nodes / self.shift;
        let exponent = 1.0 - self.power;
        let [low, high] = [first.powf(exponent), (nodes + first).powf(exponent)];
        let at = (low + share * (high - low)).powf(1.0 / exponent) - first;
        (at as usize).min(self.nodes - 1)
    }
}

impl FromStr for Synthetic {
    type Err = anyhow::Error;

    /// Its name, perhaps divided by a number: `reddit-size/100`.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, parts) = text.split_once('/').unwrap_or((text, "1"));
        let parts: usize = parts.parse().with_context(|| format!("{text}: no size"))?;
        ensure!(parts > 0, "{text}: no size");
        match Self::ALL.into_iter().find(|graph| graph.name == name) {
            Some(graph) => Ok(graph.shrunk(parts)),
            None => bail!(
                "{text}: there are {}",
                Self::ALL.map(|graph| graph.name).join(", ")
            ),
        }
    }
}

/// SplitMix64.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Graph {
    pub fn nodes(&self) -> usize {
        self.indptr.len() - 1
    }

    pub fn row(&self, row: usize) -> &[i32] {
        &self.indices[self.indptr[row] as usize..self.indptr[row + 1] as usize]
    }

    /// The row with the most entries.
    pub fn longest(&self) -> usize {
        let rows = 0..self.nodes();
        rows.max_by_key(|&row| self.row(row).len()).unwrap_or(0)
    }

    /// Reads raw int32 `PREFIX.indptr` and `PREFIX.indices` of a square matrix.
    pub fn read(prefix: &Path) -> anyhow::Result<Self> {
        let array = |suffix: &str| -> anyhow::Result<Vec<i32>> {
            let path = format!("{}.{suffix}", prefix.display());
            let bytes = fs::read(&path).with_context(|| path.clone())?;
            ensure!(
                bytes.len().is_multiple_of(4),
                "{path}: no whole number of int32"
            );
            Ok(bytemuck::pod_collect_to_vec(&bytes))
        };
        let graph = Self {
            indptr: array("indptr")?,
            indices: array("indices")?,
        };
        let ends = [graph.indptr.first(), graph.indptr.last()].map(|end| end.copied());
        let nodes = graph.indptr.len().saturating_sub(1) as i32;
        let valid = ends == [Some(0), Some(graph.indices.len() as i32)]
            && graph.indptr.is_sorted()
            && graph
                .indices
                .par_iter()
                .all(|&index| (0..nodes).contains(&index));
        ensure!(valid, "{}: no square CSR pattern", prefix.display());
        Ok(graph)
    }

    /// Writes the same.
    pub fn write(&self, prefix: &Path) -> anyhow::Result<()> {
        for (suffix, array) in [("indptr", &self.indptr), ("indices", &self.indices)] {
            let path = format!("{}.{suffix}", prefix.display());
            fs::write(&path, bytemuck::cast_slice(array)).context(path)?;
        }
        Ok(())
    }

    /// The transpose; columns of its rows ascend.
    pub fn transpose(&self) -> Self {
        let nodes = self.nodes();
        let mut indptr = vec![0i32; nodes + 1];
        for &column in &self.indices {
            indptr[column as usize + 1] += 1;
        }
        for row in 0..nodes {
            indptr[row + 1] += indptr[row];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0; self.indices.len()];
        for row in 0..nodes {
            for &column in self.row(row) {
                let place = &mut next[column as usize];
                indices[*place as usize] = row as i32;
                *place += 1;
            }
        }
        Self { indptr, indices }
    }
}
