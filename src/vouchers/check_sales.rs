//! Checking what is kept for sales: as much as they have promised, and nothing for a sale that is over.

use std::collections::HashMap;

use super::Vouchers;
use super::check::{VoucherCheck, say};
use crate::domain::ids::{ClientId, VoucherProductId};
use crate::domain::voucher::kept_for;
use crate::error::Result;
use crate::store::mongo::vouchers::offers::Offered;

impl Vouchers {
    /// Compares what is kept for products with what they have on sale, and looks for units that are kept for nobody.
    pub(super) async fn check_sales(&self, check: &mut VoucherCheck) -> Result<()> {
        let kept: HashMap<ClientId, Offered> =
            self.durable.voucher_offers.kept().await?.into_iter().map(|one| (kept_for(one.product), one)).collect();
        for offered in kept.values().filter(|offered| !offered.going_back()) {
            let missing = self.missing(offered).await?;
            if missing > 0 && self.is_on_sale(offered.event).await? {
                let title = &offered.title;
                say(
                    &mut check.ownerless,
                    format!("\"{title}\" has {missing} units on sale without a voucher: import more"),
                );
            }
        }
        for product in self.product_ids().await? {
            self.check_strays(product, &kept, check).await?;
        }
        Ok(())
    }

    /// Units that are kept for somebody who is neither a client nor a product whose sale keeps them.
    async fn check_strays(
        &self,
        product: VoucherProductId,
        kept: &HashMap<ClientId, Offered>,
        check: &mut VoucherCheck,
    ) -> Result<()> {
        let counted = self.durable.voucher_units.count_by_pool(product, chrono::DateTime::UNIX_EPOCH).await?;
        for (pool, units) in counted {
            let Some(client) = pool.client.filter(|client| !kept.contains_key(client)) else { continue };
            if self.durable.clients.by_id(client.bytes()).await?.is_none() {
                say(&mut check.ownerless, format!("{units} units are kept for {client}, which is no client"));
            }
        }
        Ok(())
    }
}
