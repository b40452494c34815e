//! Collections of vouchers.

pub mod named;
pub mod orders;
mod secrets;
mod stock;
pub mod units;

pub use named::NamedRecords;
pub use orders::VoucherOrders;
pub use units::Units;
