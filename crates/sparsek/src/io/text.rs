use std::fmt::Write;

const EXCERPT: usize = 200;

/// [`clean`] text, cut after 200 characters.
pub fn excerpt(text: &str) -> String {
    let mut shown = clean(&text.chars().take(EXCERPT).collect::<String>());
    if text.chars().nth(EXCERPT).is_some() {
        shown.push('…');
    }
    shown
}

/// Escapes control characters, on one line.
pub fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            // Bidirectional marks could disguise a message.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                let _ = write!(shown, "{}", c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::escape_sequence("a\x1b[2Jb\nc", "a\\u{1b}[2Jb c")]
    #[case::bidirectional("x\u{202e}y\u{9b}", "x\\u{202e}y\\u{9b}")]
    #[case::plain("Zürich, 5 × 5", "Zürich, 5 × 5")]
    fn control_characters_are_escaped(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(clean(text), shown);
    }

    #[rstest]
    #[case::whole("ä".repeat(200), "ä".repeat(200))]
    #[case::cut("ä".repeat(201), format!("{}…", "ä".repeat(200)))]
    fn long_text_is_cut(#[case] text: String, #[case] shown: String) {
        assert_eq!(excerpt(&text), shown);
    }
}
