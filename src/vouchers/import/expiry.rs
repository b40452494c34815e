//! When a voucher expires. A day is given by people, in their zone, and they mean its end.

use chrono::{DateTime, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::cell::Cell;
use super::row::Reason;

/// Later than this is a mistake.
const MONTHS_MAX: u32 = 50 * 12;
/// Of vouchers that do not say.
const MONTHS_DEFAULT: u32 = 12;

/// The moment that a cell means.
pub(super) fn read(cell: Cell, zone: Tz, now: DateTime<Utc>) -> Result<DateTime<Utc>, Reason> {
    let later = |months| now.checked_add_months(Months::new(months)).ok_or(Reason::TooFar);
    let at = match cell {
        Cell::Blank => return later(MONTHS_DEFAULT),
        Cell::Date(at) if at.time() == NaiveTime::MIN => end_of_day(at.date(), zone),
        Cell::Date(at) => first_at(at, zone),
        Cell::Text(text) => moment(text.trim_matches(|c: char| c.is_ascii_whitespace()), zone)?,
        Cell::Number(_) => return Err(Reason::SerialNumber),
        Cell::Formula => return Err(Reason::Formula),
        Cell::Other(_) => return Err(Reason::NotDate),
    };
    let at = at.ok_or(Reason::NotDate)?;
    if at <= now {
        return Err(Reason::Expired);
    }
    if at > later(MONTHS_MAX)? { Err(Reason::TooFar) } else { Ok(at) }
}

fn moment(text: &str, zone: Tz) -> Result<Option<DateTime<Utc>>, Reason> {
    if is_iso_date(text) {
        return Ok(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| end_of_day(day, zone)));
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(Some(at.to_utc()));
    }
    let numeric = |separators: &str| text.chars().all(|c| c.is_ascii_digit() || separators.contains(c));
    if !text.contains(|c: char| c.is_ascii_digit()) {
        Err(Reason::NotDate)
    } else if text.matches('.').count() < 2 && numeric(".") {
        Err(Reason::SerialNumber)
    } else if numeric("/.- ") {
        Err(Reason::AmbiguousDate)
    } else {
        Err(Reason::NotDate)
    }
}

fn is_iso_date(text: &str) -> bool {
    let shape = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

/// The last millisecond of a day: just before the next one begins, whenever clocks are turned.
fn end_of_day(day: NaiveDate, zone: Tz) -> Option<DateTime<Utc>> {
    let next = day.succ_opt()?.and_time(NaiveTime::MIN);
    // Where midnight comes twice, the day that ends at it ends at the first.
    first_at(next, zone)?.checked_sub_signed(TimeDelta::milliseconds(1))
}

/// The first moment at which a zone's clocks show a time. If they skip it, the moment at which they do.
fn first_at(local: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    // No zone skips more than a day, and none by less than a minute since they are counted in minutes.
    (0..=48 * 60)
        .filter_map(|minutes| local.checked_add_signed(TimeDelta::minutes(minutes)))
        .find_map(|local| zone.from_local_datetime(&local).earliest())
        .map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    fn text(text: &str, zone: Tz) -> Result<String, Reason> {
        read(Cell::Text(text.into()), zone, now()).map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
    }

    #[test]
    fn a_day_alone_means_its_end_in_the_issuers_zone() {
        for (zone, wanted) in [
            (Tz::UTC, "2027-03-31T23:59:59.999Z"),
            (Tz::Asia__Kolkata, "2027-03-31T18:29:59.999Z"),
            (Tz::America__New_York, "2027-04-01T03:59:59.999Z"),
            (Tz::Pacific__Kiritimati, "2027-03-31T09:59:59.999Z"),
        ] {
            assert_eq!(text("2027-03-31", zone).as_deref(), Ok(wanted), "{zone}");
            let typed = NaiveDate::from_ymd_opt(2027, 3, 31).unwrap().and_time(NaiveTime::MIN);
            assert_eq!(read(Cell::Date(typed), zone, now()).unwrap(), wanted.parse::<DateTime<Utc>>().unwrap());
        }
    }

    #[test]
    fn days_on_which_clocks_are_turned_end_when_the_next_begins() {
        // Santiago skips the first hour of 5 September 2027, and has the last hour of 3 April 2027 twice.
        assert_eq!(text("2027-09-04", Tz::America__Santiago).as_deref(), Ok("2027-09-05T03:59:59.999Z"));
        assert_eq!(text("2027-04-03", Tz::America__Santiago).as_deref(), Ok("2027-04-04T03:59:59.999Z"));
        assert_eq!(text("2027-03-28", Tz::Europe__Berlin).as_deref(), Ok("2027-03-28T21:59:59.999Z"));
        // Apia had no 30 December 2011.
        let day = NaiveDate::from_ymd_opt(2011, 12, 29).unwrap();
        let end = end_of_day(day, Tz::Pacific__Apia).unwrap();
        assert_eq!(end, "2011-12-30T09:59:59.999Z".parse::<DateTime<Utc>>().unwrap());
    }

    #[test]
    fn moments_are_taken_as_they_are_and_nothing_is_a_year() {
        assert_eq!(text("2027-03-31T18:00:00+05:30", Tz::UTC).as_deref(), Ok("2027-03-31T12:30:00.000Z"));
        let typed = NaiveDate::from_ymd_opt(2027, 3, 31).unwrap().and_hms_opt(18, 0, 0).unwrap();
        let at = read(Cell::Date(typed), Tz::Asia__Kolkata, now()).unwrap();
        assert_eq!(at, "2027-03-31T12:30:00Z".parse::<DateTime<Utc>>().unwrap());
        let blank = read(Cell::Blank, Tz::Asia__Kolkata, now()).unwrap();
        assert_eq!(blank, "2027-11-30T12:00:00Z".parse::<DateTime<Utc>>().unwrap());
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        for ambiguous in ["31/03/2027", "03/04/2027", "31.03.2027", "3-4-27", "2027/03/31", "2027-3-31", "31 03 2027"] {
            assert_eq!(text(ambiguous, Tz::UTC), Err(Reason::AmbiguousDate), "{ambiguous}");
        }
        for serial in ["46477", "46477.5", "20270331"] {
            assert_eq!(text(serial, Tz::UTC), Err(Reason::SerialNumber), "{serial}");
        }
        for other in
            ["2027-02-29", "never", "31 March 2027", "2027-03-31T18:00:00", "99999-01-01T00:00:00Z", "２０２７"]
        {
            assert_eq!(text(other, Tz::UTC), Err(Reason::NotDate), "{other}");
        }
        assert_eq!(read(Cell::Number("46477".into()), Tz::UTC, now()), Err(Reason::SerialNumber));
        assert_eq!(read(Cell::Formula, Tz::UTC, now()), Err(Reason::Formula));
    }

    #[test]
    fn the_past_and_the_far_future_are_refused() {
        assert_eq!(text("2026-11-29", Tz::UTC), Err(Reason::Expired));
        assert!(text("2026-11-30", Tz::UTC).is_ok());
        assert_eq!(text("2026-11-30T12:00:00Z", Tz::UTC), Err(Reason::Expired));
        assert!(text("2076-11-29", Tz::UTC).is_ok());
        assert_eq!(text("2076-12-01", Tz::UTC), Err(Reason::TooFar));
        assert_eq!(text("9999-12-31", Tz::UTC), Err(Reason::TooFar));
    }
}
