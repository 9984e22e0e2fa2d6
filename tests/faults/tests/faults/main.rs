//! Lets every file-changing call of the programs fail once, or kills the program in it.
//!
//! After each fault every final file is the old or the new one. Repeating or resuming the command
//! then gives the results of a run without faults, and leaves nothing behind.
//!
//! `FAULTS=all` tries every call; otherwise every seventh, with a different start for each kind.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "the counts are what a test reports")]

mod command;
mod counts;
mod outputs;
mod training;
