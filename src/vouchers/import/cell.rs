//! A row as it stands in the file, before anything is made of it.

use chrono::NaiveDateTime;

/// What a cell holds. A code must be a text: that a spreadsheet made a number of it is never to be undone by guessing.
#[derive(Clone, PartialEq)]
pub(super) enum Cell {
    /// Nothing, or nothing but spaces.
    Blank,
    /// A text. In CSV there is nothing else.
    Text(String),
    /// A number, spelled as in the file.
    Number(String),
    /// A number that the workbook shows as a date, by the workbook's epoch.
    Date(NaiveDateTime),
    /// A formula, whatever its last result was.
    Formula,
    /// A truth value, an error, a time of day.
    Other(&'static str),
}

impl Cell {
    /// A text, or blank.
    pub(super) fn text(text: String) -> Self {
        if text.trim().is_empty() { Self::Blank } else { Self::Text(text) }
    }
}

/// Shows what kind of cell it is: any text may be a code.
impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Blank => "Blank",
            Self::Text(_) => "Text(***)",
            Self::Number(_) => "Number(***)",
            Self::Date(_) => "Date(***)",
            Self::Formula => "Formula",
            Self::Other(what) => what,
        })
    }
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SheetRow {
    /// As the spreadsheet shows it, from 1.
    pub(super) number: u32,
    /// From the leftmost column; shorter if nothing follows.
    pub(super) cells: Vec<Cell>,
}

impl SheetRow {
    /// Whether there is nothing in it.
    pub(super) fn is_blank(&self) -> bool {
        self.cells.iter().all(|cell| *cell == Cell::Blank)
    }
}

/// A column's letters: 0 is `A`, 26 is `AA`.
pub(super) fn letters(mut column: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(char::from(b'A' + u8::try_from(column % 26).unwrap_or(0)));
        if column < 26 {
            return letters.iter().rev().collect();
        }
        column = column / 26 - 1;
    }
}

/// The column of letters at the start of a reference such as `AB12`.
pub(super) fn column_of(reference: &str) -> Option<usize> {
    // Excel's last column is XFD; four letters are none.
    let letters = reference.bytes().take_while(u8::is_ascii_uppercase).take(4).collect::<Vec<_>>();
    if letters.is_empty() || letters.len() > 3 {
        return None;
    }
    Some(letters.iter().fold(0, |column, letter| column * 26 + usize::from(letter - b'A') + 1) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_letters() {
        for (column, text) in [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (701, "ZZ"), (702, "AAA"), (16_383, "XFD")]
        {
            assert_eq!(letters(column), text);
            assert_eq!(column_of(&format!("{text}12")), Some(column));
        }
        assert_eq!(column_of("12"), None);
        assert_eq!(column_of("ABCD1"), None);
        assert_eq!(column_of(""), None);
    }

    #[test]
    fn no_cell_shows_its_content() {
        let cells = [Cell::Text("SECRET-1".into()), Cell::Number("4711".into())];
        assert!(!format!("{cells:?}").contains("SECRET") && !format!("{cells:?}").contains("4711"));
    }
}
