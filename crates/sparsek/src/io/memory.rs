//! Limits host memory per request.
//!
//! Default: three quarters of what machine, control group and process have free at first use.
//! `SPARSEK_MAX_MEMORY` (`512M`, `64G`, or bytes) or [`set_limit`] overrides it.

use std::{
    env, fmt, fs,
    sync::atomic::{AtomicU64, Ordering},
};

/// Environment variable.
pub const VARIABLE: &str = "SPARSEK_MAX_MEMORY";

static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Above the limit.
    #[error(
        "{what} needs {}, but at most {} may be used; {VARIABLE}=64G, for example, raises \
         the limit",
        Bytes(*asked),
        Bytes(u128::from(*allowed))
    )]
    TooMuch {
        /// Request.
        what: String,
        /// Requested bytes; `u128::MAX` on overflow.
        asked: u128,
        /// Allowed bytes.
        allowed: u64,
    },
    /// Invalid `SPARSEK_MAX_MEMORY`.
    #[error("{VARIABLE} is {value:?}; a size such as 512M or 64G is needed")]
    Variable {
        /// Its value.
        value: String,
    },
}

/// Bytes allowed per request.
pub fn limit() -> Result<u64, MemoryError> {
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            let found = initial()?;
            let stored = LIMIT.compare_exchange(0, found, Ordering::Relaxed, Ordering::Relaxed);
            Ok(stored.map_or_else(|other| other, |_| found))
        }
        set => Ok(set),
    }
}

/// Sets the limit, ≥ 1 byte.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes.max(1), Ordering::Relaxed);
}

/// Errors above the limit; `what` names the request.
///
/// ```
/// use sparsek::io::memory;
///
/// assert!(memory::check("a pixel", 4).is_ok());
/// let error = memory::check("2^60 rows of 8 columns", memory::product(&[1 << 60, 8, 4]));
/// assert!(error.unwrap_err().to_string().starts_with("2^60 rows of 8 columns needs"));
/// ```
pub fn check(what: impl fmt::Display, asked: u128) -> Result<(), MemoryError> {
    let allowed = limit()?;
    match asked <= u128::from(allowed) {
        true => Ok(()),
        false => Err(MemoryError::TooMuch { what: what.to_string(), asked, allowed }),
    }
}

/// Product; `u128::MAX` on overflow.
pub fn product(sizes: &[usize]) -> u128 {
    let product = |all: u128, &size: &usize| all.saturating_mul(size as u128);
    sizes.iter().fold(1, product)
}

fn initial() -> Result<u64, MemoryError> {
    match env::var(VARIABLE) {
        Ok(text) => parse(&text).ok_or(MemoryError::Variable { value: text }),
        Err(env::VarError::NotUnicode(text)) => {
            Err(MemoryError::Variable { value: text.to_string_lossy().into_owned() })
        }
        Err(env::VarError::NotPresent) => Ok((available() / 4 * 3).max(1)),
    }
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    let number: u64 = digits.trim_end().parse().ok()?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
}

fn available() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let group = system.cgroup_limits().map(|group| group.free_memory);
    let mut least = group.map_or(u64::MAX, |bytes| bytes);
    if system.total_memory() > 0 {
        least = least.min(system.available_memory());
    }
    // isize::MAX bounds allocations, and is all that wasm knows.
    least.min(address_space().unwrap_or(u64::MAX)).min(isize::MAX as u64)
}

fn address_space() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max address space"))?;
    let soft: u64 = line.split_whitespace().nth(3)?.parse().ok()?;
    let size = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = size.split_whitespace().next()?.parse().ok()?;
    Some(soft.saturating_sub(pages * 4096))
}

/// Shows bytes with a unit.
///
/// ```
/// assert_eq!(sparsek::io::memory::Bytes(3 << 29).to_string(), "1.5 GiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u128);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 == u128::MAX {
            return f.write_str("more bytes than can be counted");
        }
        let mut unit = 0;
        let mut size = self.0 as f64;
        while size >= 1024.0 && unit + 1 < UNITS.len() {
            size /= 1024.0;
            unit += 1;
        }
        match unit {
            0 => write!(f, "{} bytes", self.0),
            _ => write!(f, "{size:.1} {}", UNITS[unit]),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1", 1)]
    #[case("512M", 512 << 20)]
    #[case(" 64GiB ", 64 << 30)]
    #[case("2 k", 2048)]
    #[case("1t", 1 << 40)]
    fn sizes_are_parsed(#[case] text: &str, #[case] bytes: u64) {
        assert_eq!(parse(text), Some(bytes));
    }

    #[rstest]
    fn other_text_is_no_size(
        #[values("", "G", "-1", "0", "1.5G", "1X", "99999999999T", "ü")] text: &str,
    ) {
        assert_eq!(parse(text), None);
    }

    #[test]
    fn what_overflows_is_refused() {
        assert_eq!(product(&[3, 4, 5]), 60);
        assert_eq!(product(&[usize::MAX; 4]), u128::MAX);
        let error = check("a row", u128::MAX).unwrap_err().to_string();
        assert!(error.contains("a row") && error.contains(VARIABLE), "{error}");
    }

    #[rstest]
    #[case(1023, "1023 bytes")]
    #[case(3 << 29, "1.5 GiB")]
    fn sizes_are_shown_with_a_unit(#[case] bytes: u128, #[case] shown: &str) {
        assert_eq!(Bytes(bytes).to_string(), shown);
    }
}
