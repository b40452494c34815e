//! What spreadsheet programs make of the texts that we write for them.

use std::borrow::Cow;

/// A text that a spreadsheet would take for a formula gets an apostrophe in front. In a file for programs it stays as it is.
#[must_use]
pub fn inert<'a>(text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let text = text.into();
    let formula = |first| matches!(first, '=' | '+' | '-' | '@' | '\t' | '\r' | '＝' | '＋' | '－' | '＠');
    if text.starts_with(formula) { Cow::Owned(format!("'{text}")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "＝1", "＋1", "－1", "＠x"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        for text in ["", "Air Max", "a=b", "'quoted", " =1"] {
            assert_eq!(inert(text), text);
        }
    }
}
