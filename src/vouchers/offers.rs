//! Products of sales whose units are vouchers: so many units are kept for a product as it has on sale.
//!
//! When a sale is opened, units go from what is kept for the seller's client to what is kept for the product, before
//! anybody can reserve one. When it is over, what nobody has goes back. The mark on the product says which opening keeps
//! them ([`crate::store::mongo::vouchers::offers`]).

use chrono::{DateTime, TimeDelta, Utc};

use super::Vouchers;
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::EventId;
use crate::domain::voucher::kept_for;
use crate::error::{Code, Error, Result};
use crate::store::mongo::vouchers::offers::{GOING_BACK, Offered};
use crate::store::mongo::vouchers::units::Which;

/// How long a sale lasts that does not say when it ends. What leaves the pools before then is not kept for it.
const SALE: TimeDelta = TimeDelta::days(7);

impl Vouchers {
    /// Keeps a unit for each unit of every voucher product that this opening has stamped.
    ///
    /// # Errors
    /// [`Code::VouchersShort`]; [`Code::OpeningInProgress`] while those of an earlier opening go back; when a store does not
    /// answer. What is kept then goes back by itself.
    pub(super) async fn keep_for_sale(&self, event: &Event, run: &str) -> Result<()> {
        for mut offered in self.durable.voucher_offers.frozen(event.id, run).await? {
            if offered.going_back() || !self.durable.voucher_offers.mark(&offered, Some(run)).await? {
                return Err(in_progress());
            }
            offered.mark = Some(run.to_owned());
            let short = self.keep(&offered, event.ends_at).await?;
            if short > 0 {
                let (title, has) = (&offered.title, offered.units.saturating_sub(short));
                let message = format!(
                    "{} units of \"{title}\" are to be sold, and {has} vouchers can be kept for them: import more, or sell fewer",
                    offered.units
                );
                return Err(Error::refused(Code::VouchersShort, message));
            }
            // Should the opening have been given up meanwhile, they have gone back, or these are too late to be kept.
            if !self.durable.voucher_offers.mark(&offered, Some(run)).await? {
                self.let_go(&offered, 0).await?;
                return Err(in_progress());
            }
        }
        Ok(())
    }

    /// Keeps as many units for a product as it has on sale, and returns how many are missing. Those that were revoked after
    /// they were shown, and those that are blocked, are no longer among them.
    pub(super) async fn keep(&self, offered: &Offered, ends_at: Option<DateTime<Utc>>) -> Result<u64> {
        let missing = self.missing(offered).await?;
        let from_client = self.which(offered, Some(ends_at.unwrap_or_else(|| self.clock.now() + SALE)));
        let wanted = u32::try_from(missing).unwrap_or(u32::MAX);
        let kept =
            if wanted == 0 { 0 } else { self.retag(&from_client, Some(kept_for(offered.product)), wanted).await? };
        Ok(missing.saturating_sub(kept.into()))
    }

    /// Units of a product that are on sale, or sold, without a voucher that is kept for them.
    pub(super) async fn missing(&self, offered: &Offered) -> Result<u64> {
        let tag = Some(kept_for(offered.product));
        let has = Which { client: tag, ..self.which(offered, Some(self.clock.now())) };
        let has = self.durable.voucher_units.kept(&has).await?;
        Ok(self.units_on_sale(offered).await?.saturating_sub(has))
    }

    /// Units of a product, with those added since the sale was opened, and those about to be.
    async fn units_on_sale(&self, offered: &Offered) -> Result<u64> {
        let added = self.durable.restocks.recorded(offered.event, offered.product).await?;
        Ok(offered.units.saturating_add_signed(added))
    }

    /// The client's units that can be kept for a product, and that can still be sold at `lasting`; nothing: any.
    fn which(&self, offered: &Offered, lasting: Option<DateTime<Utc>>) -> Which {
        let days = TimeDelta::days(self.config.validity_days_min.into());
        let offer = &offered.offer;
        Which {
            product: offer.product,
            denomination: offer.denomination,
            client: Some(offer.client),
            vendors: (!offer.vendors.is_empty()).then(|| offer.vendors.clone()),
            expires_from: lasting.map_or(DateTime::UNIX_EPOCH, |at| at.max(self.clock.now()) + days),
        }
    }

    /// Gives back what is kept for sales that are over, or that were not opened after all.
    pub(super) async fn give_back_unsold(&self) -> Result<()> {
        for offered in self.durable.voucher_offers.kept().await? {
            if self.is_on_sale(offered.event).await? {
                continue;
            }
            if offered.going_back() || self.durable.voucher_offers.mark(&offered, Some(GOING_BACK)).await? {
                self.give_back(Offered { mark: Some(GOING_BACK.to_owned()), ..offered }).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn is_on_sale(&self, event: EventId) -> Result<bool> {
        let event = self.durable.events.by_id(event).await?;
        Ok(event.is_some_and(|event| !matches!(event.phase, SalePhase::Draft | SalePhase::Settled)))
    }

    /// All but what somebody waits for: reservations that are to be paid still, and orders that have no units yet.
    async fn give_back(&self, offered: Offered) -> Result<()> {
        let tag = kept_for(offered.product);
        let sums = self.durable.orders.product_sums(offered.event, &[offered.product]).await?;
        let unpaid = sums.get(&offered.product).map_or(0, |sum| sum.pending);
        let owed = unpaid + self.durable.voucher_orders.pending_items(tag).await?;
        let back = self.let_go(&offered, owed).await?;
        if back > 0 {
            tracing::info!(product = %offered.product, units = back, "vouchers that were not sold went back");
        }
        if owed == 0 {
            self.durable.voucher_offers.mark(&offered, None).await?;
        }
        Ok(())
    }

    async fn let_go(&self, offered: &Offered, keep: u64) -> Result<u32> {
        let client = offered.offer.client;
        let kept = Which { client: Some(kept_for(offered.product)), ..self.which(offered, None) };
        let available = self.durable.voucher_units.count(&kept).await?;
        let back = u32::try_from(available.saturating_sub(keep)).unwrap_or(u32::MAX);
        if back == 0 { Ok(0) } else { self.retag(&kept, Some(client), back).await }
    }
}

fn in_progress() -> Error {
    Error::refused(
        Code::OpeningInProgress,
        "the vouchers of an earlier opening are going back; open the sale again in a moment",
    )
}
