//! Sparse semirings, Table 3: seconds for the nearest neighbors of four data sets.
//!
//! The data are synthetic, of the paper's sizes, densities and degrees. The published seconds are
//! of RAFT on a V100.

use super::Session;
use crate::{
    distance::Set,
    paper::distance_figures::{ROWS, SETS},
};

/// Synthetic data in the order of [`SETS`].
const NAMES: [&str; 4] =
    ["synthetic:movielens", "synthetic:scrna", "synthetic:nytimes", "synthetic:edgar"];
/// The set of a quick run.
const QUICK: &str = "synthetic:edgar";
const K: usize = 16;

pub fn run(session: &Session) -> anyhow::Result<()> {
    let (figure, quantity) = ("Table 3", "seconds");
    if !session.begins(figure, quantity) {
        return Ok(());
    }
    for (at, name) in NAMES.into_iter().enumerate() {
        if session.arguments.quick && name != QUICK {
            continue;
        }
        let set = Set::load(name, &session.backend.device)?;
        for row in &ROWS {
            let mut ready = set.ready(row.method.parse()?, K)?;
            let ms = match session.arguments.quick {
                true => ready.sample(1)?,
                false => ready.measure()?.median.ms,
            };
            let seconds = ms / 1e3;
            let case = format!("{}, {}", SETS[at].1, row.name);
            session.row([figure, quantity, &case], Some(row.seconds[at][1]), seconds)?;
        }
    }
    Ok(())
}
