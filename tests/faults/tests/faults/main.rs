//! Every call by which the programs change files fails once, or is the last before a kill.
//!
//! After each, every file under its final name is the one of before or the new one; the same
//! command, or the resumed run, then gives the figures of a run without faults and leaves nothing
//! behind.
//!
//! `FAULTS=all` tries every call; otherwise every seventh, beginning elsewhere for each kind.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "the counts are what a test reports")]

mod command;
mod outputs;
mod training;

/// Counts of faults that were tried.
#[derive(Default)]
struct Counts {
    tried: usize,
    wrong: Vec<String>,
}

impl Counts {
    fn add(&mut self, fault: String, result: Result<(), String>) {
        self.tried += 1;
        if let Err(reason) = result {
            println!("{fault}: {reason}");
            self.wrong.push(format!("{fault}: {reason}"));
        }
    }

    fn finish(self, name: &str) {
        let wrong = self.wrong.len();
        println!(
            "{name}: {} faults tried, {} right, {wrong} wrong",
            self.tried,
            self.tried - wrong
        );
        assert!(self.tried > 0 && wrong == 0, "{:#?}", self.wrong);
    }
}
