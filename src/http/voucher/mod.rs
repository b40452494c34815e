//! Vouchers: `/api/admin/vouchers` for whoever keeps the inventory, `/api/client` for those who order for a client.

mod connections;
mod imports;
mod inventory;
mod orders;
mod prefetch;
mod prefetch_batches;
mod prefetch_shapes;
mod records;

pub(super) use connections::*;
pub(super) use imports::*;
pub(super) use inventory::*;
pub(super) use orders::*;
pub(super) use prefetch::*;
pub(super) use prefetch_batches::*;
pub(super) use records::*;
