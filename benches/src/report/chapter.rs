//! Chapters of the guide that have a section per device.

use super::records::{Benches, Line};

/// The head, and a section for each device with records of a bench; none without records.
///
/// `devices`: title, records, path of those of the bench.
pub fn of_devices<'a>(
    head: &str,
    bench: &str,
    devices: impl Iterator<Item = (String, &'a Benches, String)>,
    section: impl Fn(&'a [Line]) -> String,
) -> Option<String> {
    let mut text = String::new();
    for (title, benches, path) in devices {
        if let Some(lines) = benches.get(bench) {
            text += &format!("## {title}\n\n{}Records: `{path}`.\n\n", section(lines));
        }
    }
    (!text.is_empty()).then(|| format!("{head}\n{}\n", text.trim_end()))
}
