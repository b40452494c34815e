//! Vouchers: `/api/admin/vouchers` for whoever keeps the inventory, `/api/client` for those who order for a client.

mod imports;
mod inventory;
mod orders;
mod records;

pub(super) use imports::*;
pub(super) use inventory::*;
pub(super) use orders::*;
pub(super) use records::*;
