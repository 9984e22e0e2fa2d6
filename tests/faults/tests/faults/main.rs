//! Lets every file-changing call of the programs fail once, or kills the program in it.
//!
//! After each fault every final file is the old or the new one. Repeating or resuming the command
//! then gives the results of a run without faults, and leaves nothing behind.
//!
//! `FAULTS=all` tries every call; otherwise every seventh, with a different start for each kind.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "the counts are what a test reports")]

mod command;
mod outputs;
mod training;

/// Counts of faults tried.
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
