//! Displays and logs epochs and files.
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use indicatif::{ProgressBar, ProgressStyle};
use sparsek_examples::{note, program::bar};
use sparsek_gnn::train::{EpochReport, Progress, RunLog};

use crate::stop;

/// What standard error gets if it is no terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// Ten lines per run.
    Lines,
    Nothing,
}

/// A progress bar on terminals, else plain lines; and the log.
pub struct Display<'a> {
    bar: Option<ProgressBar>,
    epochs: usize,
    activation: String,
    log: Option<&'a mut RunLog>,
    plain: Plain,
}

impl<'a> Display<'a> {
    pub fn new(
        epochs: usize,
        activation: String,
        log: Option<&'a mut RunLog>,
        plain: Plain,
    ) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {msg} eta {eta}");
            let bar = ProgressBar::new(epochs as u64).with_prefix(activation.clone());
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, epochs, activation, log, plain }
    }
}

impl Progress for Display<'_> {
    fn on_epoch(&mut self, report: &EpochReport) -> io::Result<()> {
        let EpochReport { epoch, loss, train, val, test, ms } = *report;
        let numbers =
            format!("loss {loss:.4} train {train:.4} val {val:.4} test {test:.4} {ms:.0} ms/epoch");
        match &self.bar {
            Some(bar) => {
                bar.set_message(numbers);
                bar.set_position(epoch as u64);
            }
            None if self.plain == Plain::Lines
                && (epoch == 1 || epoch.is_multiple_of(self.epochs.div_ceil(10))) =>
            {
                note!("{} epoch {epoch}/{} {numbers}", self.activation, self.epochs);
            }
            None => {}
        }
        match &mut self.log {
            Some(log) => log.epoch(&self.activation, report),
            None => Ok(()),
        }
    }

    fn before_save(&mut self) -> io::Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.sync())
    }

    fn stop(&self) -> bool {
        stop::asked()
    }
}

impl Drop for Display<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Shows a bar per file on terminals.
pub fn file_bars() -> impl FnMut(&Path, u64, u64) {
    let mut shown: Option<(PathBuf, Option<ProgressBar>)> = None;
    move |file, done, size| {
        if shown.as_ref().is_none_or(|(path, _)| path != file) {
            shown = Some((file.to_path_buf(), bar(size as usize)));
        }
        if let Some((_, Some(bar))) = &shown {
            bar.set_position(done);
            if done == size {
                bar.finish_and_clear();
            }
        }
    }
}
