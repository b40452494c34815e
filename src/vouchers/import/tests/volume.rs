//! As many rows as allowed, in no more memory than a few.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::workbooks::{names, workbook};
use super::*;

const ROWS: u32 = 100_000;
const IN_FLIGHT: usize = 64;

/// A file that tells how far it was read since it was last sought in.
struct Watched {
    file: Cursor<Vec<u8>>,
    read: Arc<AtomicUsize>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read, Ordering::SeqCst);
        Ok(read)
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.read.store(0, Ordering::SeqCst);
        self.file.seek(to)
    }
}

fn csv() -> Vec<u8> {
    let rows: String = (0..ROWS).map(|row| format!("Coffee,25,Beans,CODE-{row:09}\r\n")).collect();
    format!("Product,Denomination,Vendor,Code\r\n{rows}").into_bytes()
}

/// Imports a file through a channel that holds few rows, to a receiver that looks at each, and gives the greatest number of
/// rows that had been made and not yet received.
async fn rows_in_flight(bytes: Vec<u8>, name: &'static str) -> usize {
    let (sender, mut receiver) = mpsc::channel(IN_FLIGHT);
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let reading = tokio::task::spawn_blocking(move || {
        read(Cursor::new(bytes), name, &rules(), checksum, |outcome| {
            counter.fetch_add(1, Ordering::SeqCst);
            match sender.blocking_send(outcome) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })
    });
    let (mut received, mut most) = (0, 0);
    while let Some(outcome) = receiver.recv().await {
        most = most.max(made.load(Ordering::SeqCst) - received);
        received += 1;
        assert!(matches!(outcome, RowOutcome::Valid(_)), "{outcome:?}");
    }
    assert_eq!(reading.await.unwrap().unwrap(), Counts { valid: ROWS, invalid: 0 });
    most
}

#[tokio::test]
async fn a_hundred_thousand_rows_are_never_held() {
    // One is in the receiver's hand, and one waits to be sent.
    assert!(rows_in_flight(csv(), "codes.csv").await <= IN_FLIGHT + 2);
    assert!(rows_in_flight(xlsx(ROWS), "codes.xlsx").await <= IN_FLIGHT + 2);
}

fn xlsx(rows: u32) -> Vec<u8> {
    workbook(|sheet| {
        (1..=rows).try_for_each(|row| {
            names(sheet, row)?;
            sheet.write_string(row, 3, format!("CODE-{row:09}")).map(drop)
        })
    })
}

#[test]
fn a_row_of_a_workbook_is_handed_on_before_the_next_ones_are_unpacked() {
    let read_bytes = Arc::new(AtomicUsize::new(0));
    let file = Watched { file: Cursor::new(xlsx(20_000)), read: Arc::clone(&read_bytes) };
    // Bytes of the sheet that were read when a row came.
    let mut at_row = Vec::new();
    let counts = read(file, "codes.xlsx", &rules(), checksum, |_| {
        at_row.push(read_bytes.load(Ordering::SeqCst));
        ControlFlow::Continue(())
    });
    assert_eq!(counts.unwrap().valid, 20_000);
    let (first, half, all) = (at_row[0], at_row[10_000], at_row[19_999]);
    assert!(first < all / 4 && half < all * 3 / 4, "{first}, {half} and {all} bytes");
}

#[test]
fn a_row_of_csv_is_handed_on_before_the_next_ones_are_read() {
    let bytes = csv();
    let (length, read_bytes) = (bytes.len(), Arc::new(AtomicUsize::new(0)));
    let file = Watched { file: Cursor::new(bytes), read: Arc::clone(&read_bytes) };
    let mut ahead_max = 0;
    let mut rows = 0;
    let counts = read(file, "codes.csv", &rules(), checksum, |_| {
        // Every row has 32 bytes, and the titles 34.
        rows += 1;
        ahead_max = ahead_max.max(read_bytes.load(Ordering::SeqCst).saturating_sub(34 + 32 * rows));
        ControlFlow::Continue(())
    });
    assert_eq!(counts.unwrap().valid, ROWS);
    assert!(ahead_max < 128 << 10, "{ahead_max} of {length} bytes were read ahead");
}

#[test]
fn whoever_has_enough_stops_the_reading() {
    let mut rows = 0;
    let stopped = read(Cursor::new(csv()), "codes.csv", &rules(), checksum, |_| {
        rows += 1;
        if rows == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(ImportFault::Stopped)));
    assert_eq!(rows, 10);
}
