//! The codes behind a sale's units.

use futures::future::BoxFuture;

use super::Vouchers;
use crate::domain::event::Event;
use crate::domain::ids::{EventId, ProductId};
use crate::domain::reservation::Reservation;
use crate::domain::voucher::Sold;
use crate::error::{Error, Result};
use crate::sale::{CancelledBy, Codes, ReservationRef};

impl Codes for Vouchers {
    fn keep<'a>(&'a self, event: &'a Event, run: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.keep_for_sale(event, run))
    }

    fn keep_more(&self, product: ProductId) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            match self.durable.voucher_offers.of_product(product).await? {
                Some(offered) => Self::keep(self, &offered, None).await,
                None => Ok(0),
            }
        })
    }

    fn follow<'a>(&'a self, event: EventId, reservations: &'a [Reservation]) -> BoxFuture<'a, Result<()>> {
        Box::pin(Self::follow(self, event, reservations))
    }

    fn follow_all(&self, event: EventId) -> BoxFuture<'_, Result<()>> {
        Box::pin(Self::follow_all(self, event))
    }

    fn take_back<'a>(
        &'a self,
        of: &'a ReservationRef,
        units: Option<u32>,
        by: CancelledBy,
    ) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            if self.durable.voucher_offers.of_product(of.product).await?.is_none() {
                return Ok(0);
            }
            if units.is_some() {
                // Which of its codes would those be?
                let whole = "a reservation of vouchers is given back whole: leave the quantity out";
                return Err(Error::invalid("quantity", whole));
            }
            let sold = Sold { event: of.event, product: of.product, buyer: of.user };
            Self::take_back(self, sold, &of.id, by == CancelledBy::Buyer).await
        })
    }
}
