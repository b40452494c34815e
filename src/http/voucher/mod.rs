//! Vouchers: `/api/admin/vouchers` for whoever keeps the inventory, `/api/client` for those who order for a client.

mod inventory;
mod orders;
mod records;

pub(super) use inventory::*;
pub(super) use orders::*;
pub(super) use records::*;
