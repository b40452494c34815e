//! Paging over (creation time, id): stable while rows are added, and served by an index.

/// Where a page starts: after this row. Opaque on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Creation time of the last row seen, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// Its id.
    pub id: [u8; 12],
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.", self.created_at_ms)?;
        self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Cursor {
    type Err = super::ids::MalformedId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (time, id) = text.split_once('.').ok_or(super::ids::MalformedId)?;
        let created_at_ms = i64::from_str_radix(time, 16).map_err(|_| super::ids::MalformedId)?;
        let id = id.parse::<super::ids::OrderId>()?.bytes();
        Ok(Self { created_at_ms, id })
    }
}

/// Which rows of a list.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// At most this many.
    pub limit: u32,
    /// After this row, or from the start.
    pub after: Option<Cursor>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

/// A page of rows, and where the next one starts.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Present when there are more.
    pub next: Option<Cursor>,
}

impl<T> Listed<T> {
    /// Makes a page from at most `limit + 1` rows: the extra row only says that there are more.
    #[must_use]
    pub fn from_rows(mut items: Vec<T>, page: Page, cursor: impl Fn(&T) -> Cursor) -> Self {
        let limit = page.limit as usize;
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_rubbish_is_refused() {
        let cursor = Cursor { created_at_ms: 1_767_225_600_000, id: [7; 12] };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", ".", "zz.00", "1.0123", "1"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
