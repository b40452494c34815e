//! The seller: steers the sale through one process, and believes what it says.

use std::sync::Arc;

use orbit::domain::ids::ProductId;
use orbit::error::{Error, Result};
use orbit::sale::{Durable, ReservationRef};

use super::catalogue::Catalogue;
use super::process::Process;
use crate::ledger::SharedLedger;

/// What a seller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Open,
    Pause,
    Resume,
    End,
}

/// A seller at one process.
pub struct Seller {
    pub process: Arc<Process>,
    pub ledger: SharedLedger,
    pub catalogue: Arc<Catalogue>,
}

impl Seller {
    /// Does it, and says whether it was done.
    pub async fn control(self, control: Control) -> bool {
        let outcome = match control {
            Control::Open => self.open().await,
            Control::Pause => self.process.sale.pause(self.process.known(&self.catalogue).await).await,
            Control::Resume => self.process.sale.resume(self.process.known(&self.catalogue).await).await,
            Control::End => self.end().await,
        };
        let text = outcome.as_ref().map_or_else(told, |()| "done".to_owned());
        self.ledger.lock().unwrap().note(format!("{control:?}: {text}"));
        outcome.is_ok()
    }

    async fn open(&self) -> Result<()> {
        let event = self.process.durable().event(self.catalogue.id()).await?;
        let event = event.ok_or_else(|| Error::not_found("event not found"))?;
        self.process.sale.open(&event).await.map(|_| ())
    }

    /// Adds or withdraws units, and says what came of it.
    pub async fn restock(self, product: ProductId, units: i64, operation: String) {
        let outcome = async {
            let event = self.process.durable().event(self.catalogue.id()).await?;
            let event = event.ok_or_else(|| Error::not_found("event not found"))?;
            self.process.sale.restock(&event, product, operation, units).await
        };
        let outcome = outcome.await;
        let text = outcome.as_ref().map_or_else(told, |restocked| format!("{} units are left", restocked.stock));
        self.ledger.lock().unwrap().note(format!("restocked by {units}: {text}"));
    }

    /// Cancels somebody's reservation, or one unit of it; as the administrator, who is recorded, or as the seller.
    pub async fn cancel(self, of: ReservationRef, part: bool, as_administrator: bool) {
        let (units, operation) = (part.then_some(1), part.then(|| format!("one unit of {}", of.id)));
        let cancelled = if as_administrator {
            let by = self.catalogue.event.seller;
            self.process.sale.cancel_as_administrator(by, &of, units, operation).await
        } else {
            self.process.sale.cancel(&of, units, operation).await
        };
        let text = cancelled.as_ref().map_or_else(told, |left| format!("{} units are left", left.units_held()));
        self.ledger.lock().unwrap().note(format!("{} is cancelled for its buyer: {text}", of.id));
    }

    async fn end(&self) -> Result<()> {
        let known = self.process.known(&self.catalogue).await;
        let ended = self.process.sale.end(known).await?;
        if ended.dead_letters > 0 {
            self.ledger.lock().unwrap().blame(format!("{} reservations could not be settled", ended.dead_letters));
        }
        Ok(())
    }
}

fn told(error: &Error) -> String {
    let source = std::error::Error::source(error).map(|source| format!(" ({source})")).unwrap_or_default();
    format!("{error}{source}")
}
