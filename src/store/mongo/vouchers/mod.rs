//! Collections of vouchers.

mod connections;
pub mod imports;
pub mod named;
pub mod offers;
pub mod orders;
mod prefetch_document;
mod prefetch_jobs;
mod prefetch_resolving;
mod sandbox_orders;
mod secrets;
mod stock;
pub mod units;

pub use connections::VendorConnections;
pub use imports::VoucherImports;
pub use named::NamedRecords;
pub use offers::VoucherOffers;
pub use orders::VoucherOrders;
pub use prefetch_jobs::{BatchEnd, ClaimedJob, PrefetchJobs};
pub use sandbox_orders::{SandboxVendorOrder, SandboxVendorOrders};
pub use units::Units;
