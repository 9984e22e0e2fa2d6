//! Ends a run after its epoch when the user or the system asks for it.
use std::{
    env,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use sparsek::io::text;

/// Exit status of a program that an interruption ended.
pub const STATUS: u8 = 130;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, the first SIGINT or SIGTERM ends the run after its epoch, and the second one ends
/// the program at once.
pub fn watch() {
    ASKED.get_or_init(|| {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second handler is asked first, and acts once the flag is set. Where a signal
            // cannot be handled, it ends the program as it did before.
            let second =
                flag::register_conditional_shutdown(signal, i32::from(STATUS), asked.clone());
            if second.is_ok() {
                let _ = flag::register(signal, asked.clone());
            }
        }
        asked
    });
}

/// Whether an interruption came.
pub fn asked() -> bool {
    ASKED
        .get()
        .is_some_and(|asked| asked.load(Ordering::SeqCst))
}

/// The command line of this program, as a shell takes it, with another option if one is given.
pub fn command(option: Option<&str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=+@%".contains(c);
    let quoted = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = env::args_os().map(|word| quoted(word.to_string_lossy().into_owned()));
    let mut words: Vec<String> = words.collect();
    if let Some(option) = option.filter(|option| !words.iter().any(|word| word == option)) {
        words.push(option.to_string());
    }
    text::clean(&words.join(" "))
}
