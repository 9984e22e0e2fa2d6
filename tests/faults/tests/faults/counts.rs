//! Counts faults and failures.

/// Counts of faults tried.
#[derive(Default)]
pub struct Counts {
    tried: usize,
    wrong: Vec<String>,
}

impl Counts {
    pub fn add(&mut self, fault: String, result: Result<(), String>) {
        self.tried += 1;
        if let Err(reason) = result {
            println!("{fault}: {reason}");
            self.wrong.push(format!("{fault}: {reason}"));
        }
    }

    pub fn finish(self, name: &str) {
        let wrong = self.wrong.len();
        println!(
            "{name}: {} faults tried, {} right, {wrong} wrong",
            self.tried,
            self.tried - wrong
        );
        assert!(self.tried > 0 && wrong == 0, "{:#?}", self.wrong);
    }
}
