//! A sheet's rows and cells.

use std::io::BufRead;

use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

use super::super::cell::{Cell, SheetRow, column_of};
use super::super::fault::ImportFault;
use super::super::limits::Limits;
use super::strings::{SharedStrings, Within, unescaped};
use super::styles::{Shown, Styles};
use super::xml::{Xml, attribute};

/// The last row that Excel has.
const ROW_MAX: u32 = 1_048_576;
/// 31 December 9999, counted from 1900: the last day that Excel has.
const DAY_MAX: f64 = 2_958_465.0;
const DAY_MS: f64 = 86_400_000.0;

/// What cells refer to.
pub(super) struct Context<'a> {
    pub(super) strings: &'a SharedStrings,
    pub(super) styles: &'a Styles,
    pub(super) epoch: NaiveDate,
    pub(super) limits: &'a Limits,
}

/// Hands every row that is not blank to `sink`, in order.
pub(super) fn read_rows<R: BufRead>(
    mut xml: Xml<R>,
    context: &Context<'_>,
    sink: &mut dyn FnMut(SheetRow) -> Result<(), ImportFault>,
) -> Result<(), ImportFault> {
    let mut last = 0;
    loop {
        match xml.next()? {
            Event::Start(element) if element.local_name().as_ref() == "row" => {
                last = row_number(&element, last)?;
                let row = SheetRow { number: last, cells: read_cells(&mut xml, last, context)? };
                if !row.is_blank() {
                    sink(row)?;
                }
            }
            Event::Empty(element) if element.local_name().as_ref() == "row" => last = row_number(&element, last)?,
            Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "mergeCell" => {
                let range = attribute(&element, "ref")?.unwrap_or_default();
                return Err(ImportFault::MergedCells { range: range.escape_debug().take(30).collect() });
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// A row's number; one that has none follows the one before. Rows come in order, each once.
fn row_number(element: &BytesStart<'_>, last: u32) -> Result<u32, ImportFault> {
    let number = match attribute(element, "r")? {
        Some(number) => number.parse().map_err(|_| ImportFault::Damaged)?,
        None => last + 1,
    };
    if number > last && number <= ROW_MAX { Ok(number) } else { Err(ImportFault::Damaged) }
}

/// The cells of a row that has been opened, up to its end.
fn read_cells<R: BufRead>(xml: &mut Xml<R>, row: u32, context: &Context<'_>) -> Result<Vec<Cell>, ImportFault> {
    let mut cells = Vec::new();
    let mut next_column = 0;
    loop {
        let event = xml.next()?;
        let (opened, empty) = match &event {
            Event::Start(element) if element.local_name().as_ref() == "c" => {
                (Opened::read(element, next_column)?, false)
            }
            Event::Empty(element) if element.local_name().as_ref() == "c" => {
                (Opened::read(element, next_column)?, true)
            }
            Event::End(element) if element.local_name().as_ref() == "row" => return Ok(cells),
            Event::Eof => return Err(ImportFault::Damaged),
            _ => continue,
        };
        next_column = opened.column + 1;
        let cell = if empty { Cell::Blank } else { opened.content(xml, context)? };
        if cell == Cell::Blank {
            continue;
        }
        let columns_max = context.limits.columns_max;
        if opened.column >= columns_max {
            return Err(ImportFault::TooManyColumns { row, columns_max });
        }
        cells.resize(opened.column, Cell::Blank);
        cells.push(cell);
    }
}

/// A cell's tag: where it is, and how its value is to be read.
struct Opened {
    column: usize,
    kind: Kind,
    style: Option<usize>,
}

/// What a cell's value is written as.
#[derive(Clone, Copy)]
enum Kind {
    SharedText,
    Text,
    Number,
    Date,
    Truth,
    Error,
}

impl Kind {
    fn of(name: &str) -> Result<Self, ImportFault> {
        Ok(match name {
            "s" => Self::SharedText,
            "inlineStr" | "str" => Self::Text,
            "n" => Self::Number,
            "d" => Self::Date,
            "b" => Self::Truth,
            "e" => Self::Error,
            _ => return Err(ImportFault::Damaged),
        })
    }
}

impl Opened {
    fn read(element: &BytesStart<'_>, next_column: usize) -> Result<Self, ImportFault> {
        let mut opened = Self { column: next_column, kind: Kind::Number, style: None };
        for attribute in element.attributes().with_checks(false) {
            let attribute = attribute?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0)?;
            match attribute.key.as_ref() {
                "r" => opened.column = column_of(&value).ok_or(ImportFault::Damaged)?,
                "s" => opened.style = Some(value.parse().map_err(|_| ImportFault::Damaged)?),
                "t" => opened.kind = Kind::of(&value)?,
                _ => {}
            }
        }
        // A cell that comes twice would have two values.
        if opened.column < next_column { Err(ImportFault::Damaged) } else { Ok(opened) }
    }

    /// What stands between the tag and its end.
    fn content<R: BufRead>(&self, xml: &mut Xml<R>, context: &Context<'_>) -> Result<Cell, ImportFault> {
        let mut value = String::new();
        let mut formula = false;
        let mut within = Within::default();
        loop {
            let event = xml.next()?;
            match &event {
                Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "f" => formula = true,
                Event::End(element) if element.local_name().as_ref() == "c" => break,
                Event::Eof => return Err(ImportFault::Damaged),
                _ => {}
            }
            within.follow(&event);
            within.collect(&event, &mut value, context.limits)?;
        }
        if formula { Ok(Cell::Formula) } else { self.cell(value, context) }
    }

    fn cell(&self, value: String, context: &Context<'_>) -> Result<Cell, ImportFault> {
        if value.trim().is_empty() {
            return Ok(Cell::Blank);
        }
        Ok(match self.kind {
            Kind::SharedText => {
                let index = value.trim().parse().map_err(|_| ImportFault::Damaged)?;
                Cell::text(context.strings.get(index).ok_or(ImportFault::Damaged)?.to_owned())
            }
            Kind::Text => Cell::text(unescaped(&value).into_owned()),
            Kind::Number => self.number(value.trim(), context)?,
            Kind::Date => iso_date(value.trim()).map_or(Cell::Other("a date that is none"), Cell::Date),
            Kind::Truth => Cell::Other("a truth value"),
            Kind::Error => Cell::Other("an error"),
        })
    }

    fn number(&self, value: &str, context: &Context<'_>) -> Result<Cell, ImportFault> {
        let number: f64 = value.parse().map_err(|_| ImportFault::Damaged)?;
        Ok(match context.styles.shown(self.style) {
            Shown::Number => Cell::Number(value.to_owned()),
            Shown::Date => day(number, context.epoch).map_or(Cell::Other("a date that is none"), Cell::Date),
            Shown::Time => Cell::Other("a time of day"),
        })
    }
}

/// A day and its time, from days since the epoch.
fn day(number: f64, epoch: NaiveDate) -> Option<NaiveDateTime> {
    // What is not a number is in no range.
    if !(0.0..DAY_MAX + 1.0).contains(&number) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was looked at")]
    let (days, ms) = (number.trunc() as u64, (number.fract() * DAY_MS).round() as i64);
    let midnight = epoch.checked_add_days(Days::new(days))?.and_time(NaiveTime::MIN);
    midnight.checked_add_signed(TimeDelta::milliseconds(ms))
}

fn iso_date(text: &str) -> Option<NaiveDateTime> {
    let text = text.trim_end_matches('Z');
    let date = text.parse::<NaiveDate>().ok().map(|date| date.and_time(NaiveTime::MIN));
    date.or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_the_workbooks_epoch() {
        let from_1900 = NaiveDate::from_ymd_opt(1899, 12, 30).unwrap();
        let from_1904 = NaiveDate::from_ymd_opt(1904, 1, 1).unwrap();
        let wanted = NaiveDate::from_ymd_opt(2027, 3, 31).unwrap().and_time(NaiveTime::MIN);
        assert_eq!(day(46_477.0, from_1900), Some(wanted));
        assert_eq!(day(45_015.0, from_1904), Some(wanted));
        assert_eq!(day(46_477.75, from_1900), wanted.checked_add_signed(TimeDelta::hours(18)));
        for number in [f64::NAN, f64::INFINITY, -1.0, 1e300, 2_958_466.0] {
            assert_eq!(day(number, from_1900), None);
        }
        assert_eq!(iso_date("2027-03-31"), Some(wanted));
        assert_eq!(iso_date("2027-03-31T00:00:00Z"), Some(wanted));
        assert_eq!(iso_date("31/03/2027"), None);
    }
}
