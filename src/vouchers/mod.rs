//! Voucher codes: how they come into stock.

pub mod prefetch;
