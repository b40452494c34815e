//! Which styles of a workbook show a number as a date.

use std::collections::HashMap;
use std::io::BufRead;

use quick_xml::events::Event;

use super::super::fault::ImportFault;
use super::xml::{Xml, attribute};

/// More than Excel allows in a workbook.
const STYLES_MAX: usize = 65_536;

/// What a number is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// A number.
    Number,
    /// A day, with or without its time.
    Date,
    /// A time without a day.
    Time,
}

/// What each style of a cell shows.
#[derive(Debug, Default)]
pub(super) struct Styles {
    shown: Vec<Shown>,
}

impl Styles {
    pub(super) fn read<R: BufRead>(mut xml: Xml<R>) -> Result<Self, ImportFault> {
        let mut own_formats = HashMap::new();
        let mut shown = Vec::new();
        // Formats and styles of other things have the same names elsewhere in the part.
        let (mut in_formats, mut in_cells) = (false, false);
        loop {
            let event = xml.next()?;
            let starts = matches!(event, Event::Start(_));
            match &event {
                Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                    "numFmts" => in_formats = starts,
                    "cellXfs" => in_cells = starts,
                    "numFmt" if in_formats => {
                        let code = attribute(element, "formatCode")?.unwrap_or_default();
                        own_formats.insert(format_of(attribute(element, "numFmtId")?.as_deref())?, shown_by(&code));
                    }
                    "xf" if in_cells => {
                        let format = format_of(attribute(element, "numFmtId")?.as_deref())?;
                        shown.push(own_formats.get(&format).copied().unwrap_or_else(|| built_in(format)));
                    }
                    _ => {}
                },
                Event::End(element) => match element.local_name().as_ref() {
                    "numFmts" => in_formats = false,
                    "cellXfs" => in_cells = false,
                    _ => {}
                },
                Event::Eof => return Ok(Self { shown }),
                _ => {}
            }
            if shown.len() > STYLES_MAX || own_formats.len() > STYLES_MAX {
                return Err(ImportFault::Damaged);
            }
        }
    }

    /// What a style shows; without one, a number.
    pub(super) fn shown(&self, style: Option<usize>) -> Shown {
        style.and_then(|style| self.shown.get(style)).copied().unwrap_or(Shown::Number)
    }
}

fn format_of(number: Option<&str>) -> Result<u32, ImportFault> {
    number.map_or(Ok(0), |number| number.parse().map_err(|_| ImportFault::Damaged))
}

/// Formats that have a number and no code in the file, in every language.
const fn built_in(format: u32) -> Shown {
    match format {
        14..=17 | 22 | 27..=31 | 36 | 50..=54 | 57 | 58 => Shown::Date,
        18..=21 | 32..=35 | 45..=47 | 55 | 56 => Shown::Time,
        _ => Shown::Number,
    }
}

/// What a format's code shows, by its first section: letters count that are not quoted, escaped, or a condition.
fn shown_by(code: &str) -> Shown {
    let mut characters = code.chars();
    let (mut day, mut time, mut month) = (false, false, false);
    while let Some(character) = characters.next() {
        match character.to_ascii_lowercase() {
            ';' => break,
            '"' => drop(characters.by_ref().find(|next| *next == '"')),
            '\\' | '_' | '*' => drop(characters.next()),
            '[' => {
                // Hours, minutes and seconds that count on are in brackets, as are colours and languages.
                let within: String = characters.by_ref().take_while(|next| *next != ']').collect();
                let counts_on = |letter: char| matches!(letter.to_ascii_lowercase(), 'h' | 'm' | 's');
                time |= !within.is_empty() && within.chars().all(counts_on);
            }
            'y' | 'd' => day = true,
            'h' | 's' => time = true,
            'm' => month = true,
            _ => {}
        }
    }
    if day || (month && !time) {
        Shown::Date
    } else if time {
        Shown::Time
    } else {
        Shown::Number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_shows_a_date_by_its_letters() {
        for code in ["yyyy-mm-dd", "d/m/yy h:mm", "[$-409]mmm-yy;@", "mmmm", "DD.MM.YYYY", "\"due \"d"] {
            assert_eq!(shown_by(code), Shown::Date, "{code}");
        }
        for code in ["h:mm:ss", "[h]:mm", "[ss]", "mm:ss.0"] {
            assert_eq!(shown_by(code), Shown::Time, "{code}");
        }
        for code in ["General", "0.00", "#,##0.00 \"days\"", "[Red]0", "0\\d", "@", "_-* #,##0_-", "", "[", "\"", "\\"]
        {
            assert_eq!(shown_by(code), Shown::Number, "{code}");
        }
    }

    #[test]
    fn styles_count_within_their_list_only() {
        let xml = "<styleSheet><numFmts><numFmt numFmtId='164' formatCode='yyyy'/></numFmts>\
            <cellStyleXfs><xf numFmtId='14'/></cellStyleXfs>\
            <cellXfs><xf numFmtId='0'/><xf numFmtId='164'><alignment/></xf><xf numFmtId='20'/><xf/></cellXfs>\
            <dxfs><dxf><numFmt numFmtId='0' formatCode='yyyy'/></dxf></dxfs></styleSheet>";
        let styles = Styles::read(Xml::new(xml.as_bytes(), 1_000)).unwrap();
        assert_eq!(styles.shown, [Shown::Number, Shown::Date, Shown::Time, Shown::Number]);
        assert_eq!(styles.shown(Some(1)), Shown::Date);
        assert_eq!(styles.shown(Some(99)), Shown::Number);
    }
}
