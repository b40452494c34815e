//! The words of the business: ids, money, accounts, events, products, sales, reservations, orders.
//!
//! Pure: no async, no I/O, no driver types. A value that exists here has been checked.

pub mod account;
pub mod clock;
pub mod event;
pub mod ids;
pub mod journal;
pub mod media;
pub mod message;
pub mod money;
pub mod next_step;
pub mod order;
pub mod page;
pub mod payment;
pub mod prefetch;
pub mod product;
pub mod reservation;
pub mod restock;
pub mod sale;
pub mod schedule;
pub mod spreadsheet;
pub mod vendor;
pub mod verification;
pub mod voucher;
pub mod voucher_import;
pub mod webhook;
