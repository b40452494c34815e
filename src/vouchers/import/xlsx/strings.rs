//! The table of texts that a workbook's cells point into: the one part that has to be held.

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::events::Event;

use super::super::fault::ImportFault;
use super::super::limits::Limits;
use super::xml::{Xml, text_of};

/// Bytes that an entry takes besides its text.
const ENTRY_BYTES: usize = 8;

/// All texts in one piece, and where each ends.
#[derive(Default)]
pub(super) struct SharedStrings {
    texts: String,
    ends: Vec<usize>,
}

impl SharedStrings {
    pub(super) fn read<R: BufRead>(mut xml: Xml<R>, limits: &Limits) -> Result<Self, ImportFault> {
        let mut strings = Self::default();
        let mut text = String::new();
        let mut within = Within::default();
        loop {
            let event = xml.next()?;
            match &event {
                Event::Start(element) if element.local_name().as_ref() == "si" => text.clear(),
                Event::Empty(element) if element.local_name().as_ref() == "si" => strings.push("", limits)?,
                Event::End(element) if element.local_name().as_ref() == "si" => {
                    strings.push(&unescaped(&text), limits)?;
                }
                Event::Eof => return Ok(strings),
                _ => {}
            }
            within.follow(&event);
            within.collect(&event, &mut text, limits)?;
        }
    }

    fn push(&mut self, text: &str, limits: &Limits) -> Result<(), ImportFault> {
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
        let bytes_max = limits.shared_text_bytes_max;
        if self.texts.len() + self.ends.len() * ENTRY_BYTES > bytes_max {
            return Err(ImportFault::TooMuchText { bytes_max });
        }
        Ok(())
    }

    /// The text of this number.
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.texts.get(start..end)
    }
}

/// Whether a text belongs to the value: it stands in `t` or `v`, and not in the pronunciation that Japanese cells carry.
#[derive(Default)]
pub(super) struct Within {
    value: bool,
    pronunciation: bool,
}

impl Within {
    pub(super) fn follow(&mut self, event: &Event<'_>) {
        let (name, starts) = match event {
            Event::Start(element) => (element.local_name(), true),
            Event::End(element) => (element.local_name(), false),
            _ => return,
        };
        match name.as_ref() {
            "t" | "v" => self.value = starts,
            "rPh" => self.pronunciation = starts,
            _ => {}
        }
    }

    /// Adds the event's text, if it belongs to the value.
    pub(super) fn collect(&self, event: &Event<'_>, value: &mut String, limits: &Limits) -> Result<(), ImportFault> {
        if self.value
            && !self.pronunciation
            && let Some(text) = text_of(event)?
        {
            value.push_str(&text);
            if value.len() > limits.text_bytes_max {
                return Err(ImportFault::CellTooLong { bytes_max: limits.text_bytes_max });
            }
        }
        Ok(())
    }
}

/// Spreadsheets write what XML cannot hold as `_x000D_`, and a text that looks like that as `_x005F_x000D_`.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("_x") {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        result.push_str(&rest[..at]);
        rest = &rest[at..];
        match escape_at(rest) {
            Some(character) => {
                result.push(character);
                rest = &rest[7..];
            }
            None => {
                result.push('_');
                rest = &rest[1..];
            }
        }
    }
    result.push_str(rest);
    Cow::Owned(result)
}

/// The character of an escape at the start of a text. Halves of a pair (`_xD83D_`) stay as they are.
fn escape_at(text: &str) -> Option<char> {
    let digits = text.strip_prefix("_x")?.get(..4)?;
    let escape = text.as_bytes().get(6) == Some(&b'_') && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if escape { char::from_u32(u32::from_str_radix(digits, 16).ok()?) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(xml: &str, limits: &Limits) -> Result<SharedStrings, ImportFault> {
        SharedStrings::read(Xml::new(xml.as_bytes(), limits.text_bytes_max), limits)
    }

    #[test]
    fn texts_are_joined_from_their_runs() {
        let xml = "<sst><si><t>00&amp;1</t></si><si/><si><r><t>a</t></r><r><rPr><b/></rPr><t xml:space='preserve'> b</t></r>\
            <rPh sb='0' eb='1'><t>no</t></rPh></si> <si><t/></si><si><t>_x0041_</t></si></sst>";
        let strings = read(xml, &Limits::default()).unwrap();
        let texts: Vec<_> = (0..6).map(|index| strings.get(index)).collect();
        assert_eq!(texts, [Some("00&1"), Some(""), Some("a b"), Some(""), Some("A"), None]);
    }

    #[test]
    fn escapes_are_undone_once() {
        for (text, wanted) in [
            ("a_x000D_b", "a\rb"),
            ("_x005F_x000D_", "_x000D_"),
            ("_x00zz__x", "_x00zz__x"),
            ("_xD83D_", "_xD83D_"),
            ("_x004", "_x004"),
            ("_x€€", "_x€€"),
            ("__x0041_", "_A"),
        ] {
            assert_eq!(unescaped(text), wanted);
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let limits = Limits { shared_text_bytes_max: 1_000, text_bytes_max: 200, ..Limits::default() };
        let many = format!("<sst>{}</sst>", "<si/>".repeat(200));
        assert!(matches!(read(&many, &limits), Err(ImportFault::TooMuchText { .. })));
        let pieces = format!("<sst><si>{}</si></sst>", "<r><t>0123456789</t></r>".repeat(21));
        assert!(matches!(read(&pieces, &limits), Err(ImportFault::CellTooLong { .. })));
    }
}
