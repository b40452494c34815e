//! Vouchers: codes that were bought ahead, kept sealed, and handed out with orders.

pub mod import;
