//! Sparse semirings: Table 3, and the algorithms of Section 3 beside each other.
//!
//! The data are synthetic, of the paper's sizes, densities and degrees. The published seconds are
//! of RAFT on a V100.

use sparsek::distance::Routine;

use super::Session;
use crate::{
    distance::Set,
    paper::distance_figures::{ROWS, SETS},
    timing::Ready,
};

/// Synthetic data in the order of [`SETS`].
const NAMES: [&str; 4] =
    ["synthetic:movielens", "synthetic:scrna", "synthetic:nytimes", "synthetic:edgar"];
/// The set of a quick run.
const QUICK: &str = "synthetic:edgar";
const K: usize = 16;

/// Algorithms 1 to 3 run on this part of the rows; all rows have its square as many pairs.
const PART: usize = 32;
const ALGORITHMS: [Option<Routine>; 4] =
    [Some(Routine::ExpandSort), Some(Routine::Merge), Some(Routine::Hybrid), None];
/// Longest rows for Algorithm 1, which holds two in shared memory.
const MOST_SORTED: usize = 1 << 11;
/// Entries of a hash table of 48 KiB that is half full (Section 3.3.2).
const TABLE_ENTRIES: usize = 3000;

pub fn run(session: &Session) -> anyhow::Result<()> {
    table_3(session)?;
    algorithms(session)?;
    scans(session)
}

/// Sets of this run, with the paper's name.
fn sets(session: &Session) -> impl Iterator<Item = (usize, &'static str)> {
    let quick = session.arguments.quick;
    NAMES.into_iter().enumerate().filter(move |&(_, name)| !quick || name == QUICK)
}

fn milliseconds(session: &Session, mut ready: Ready) -> anyhow::Result<f64> {
    Ok(match session.arguments.quick {
        true => ready.sample(1)?,
        false => ready.measure()?.median.ms,
    })
}

fn table_3(session: &Session) -> anyhow::Result<()> {
    let (figure, quantity) = ("Table 3", "seconds");
    if !session.begins(figure, quantity) {
        return Ok(());
    }
    for (at, name) in sets(session) {
        let set = Set::load(name, &session.backend.device)?;
        for row in &ROWS {
            let ready = set.ready(row.method.parse()?, None, K)?;
            let seconds = milliseconds(session, ready)? / 1e3;
            let case = format!("{}, {}", SETS[at].1, row.name);
            session.row([figure, quantity, &case], Some(row.seconds[at][1]), seconds)?;
        }
    }
    Ok(())
}

fn algorithms(session: &Session) -> anyhow::Result<()> {
    let figure = "Algorithms 1, 2, 3";
    let quantity = format!("ms of the first 1/{PART} of the rows");
    if !session.begins(figure, &quantity) {
        return Ok(());
    }
    for (at, name) in sets(session) {
        let set = Set::load(&format!("{name}/{PART}"), &session.backend.device)?;
        let longest = set.degrees().max().unwrap_or(0);
        for row in &ROWS {
            for routine in ALGORITHMS {
                if routine == Some(Routine::ExpandSort) && longest > MOST_SORTED {
                    continue;
                }
                let ready = set.ready(row.method.parse()?, routine, K)?;
                let ms = milliseconds(session, ready)?;
                let routine = routine.map_or("chosen", Routine::name);
                let case = format!("{}, {}, {routine}", SETS[at].1, row.name);
                session.row([figure, &quantity, &case], None, ms)?;
            }
        }
    }
    Ok(())
}

/// What Section 3.3.2's Bloom filter can save at most: long rows need several tables, so the other
/// matrix is scanned again.
fn scans(session: &Session) -> anyhow::Result<()> {
    let (figure, quantity) = ("Section 3.3.3", "scans of the other matrix per row, by hash tables");
    if !session.begins(figure, quantity) {
        return Ok(());
    }
    for (name, (_, set_name)) in NAMES.into_iter().zip(SETS) {
        let set = Set::load(name, &session.backend.device)?;
        let (rows, tables) = set.degrees().fold((0, 0), |(rows, tables), degree| {
            (rows + 1, tables + degree.div_ceil(TABLE_ENTRIES).max(1))
        });
        let scans = tables as f64 / f64::from(rows);
        session.row([figure, quantity, set_name], None, scans)?;
    }
    Ok(())
}
