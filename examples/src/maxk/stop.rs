//! Stops a run after the current epoch on SIGINT or SIGTERM.
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

/// Exit status after an interruption.
pub const STATUS: u8 = 130;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Lets the first signal stop the run after its epoch, and the second end the program.
pub fn watch() {
    ASKED.get_or_init(|| {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The shutdown handler runs first and acts once the flag is set. If a signal cannot be
            // handled, it ends the program as by default.
            let second =
                flag::register_conditional_shutdown(signal, i32::from(STATUS), asked.clone());
            if second.is_ok() {
                let _ = flag::register(signal, asked.clone());
            }
        }
        asked
    });
}

/// Whether a signal came.
pub fn asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::SeqCst))
}

/// This command line, quoted for a shell, with an option added.
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
