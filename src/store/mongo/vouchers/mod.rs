//! Vouchers: jobs that buy codes from vendors, and what the vendor of trials has sold. A code is in none of these.

mod prefetch_document;
mod prefetch_jobs;
mod sandbox_orders;

pub use prefetch_jobs::{BatchEnd, ClaimedJob, PrefetchJobs};
pub use sandbox_orders::{SandboxVendorOrder, SandboxVendorOrders};
