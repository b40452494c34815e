//! The end of every schedule: everything is healed, the sale is run to its end, and then everything must be in order.

use std::sync::Arc;
use std::time::Duration;

use orbit::domain::event::SalePhase;
use orbit::sale::check;
use tokio::time::Instant;

use super::seller::Control;
use super::stage::World;
use crate::faults::Rates;
use crate::invariants::{self, Verdict};

/// A sale that has not come to rest by then never will.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Requests that were on their way when the sale was settled arrive later than this.
const QUIET: Duration = Duration::from_secs(2);

impl World {
    pub(super) async fn come_to_rest(&mut self) -> Verdict {
        self.heal();
        self.finish_sale().await?;
        self.pass(QUIET).await?;
        // A settled sale may have come back with an older state of Redis, and is cleaned up again.
        let end = Instant::now() + PATIENCE;
        loop {
            match self.look(invariants::hold_at_rest) {
                Err(_) if Instant::now() < end => self.pass(LOOK_INTERVAL).await?,
                Err(what) => return Err(what),
                Ok(()) => break,
            }
        }
        self.settle_money().await?;
        self.ask_the_service().await
    }

    /// The service's own check finds nothing, and every buyer finds what they were told of.
    async fn ask_the_service(&self) -> Verdict {
        let process = self.directory.lock().unwrap().first().map(Arc::clone).unwrap();
        let event = self.around.database.lock().unwrap().event(self.catalogue.id()).unwrap();
        let mut checks = process.sale.check(&event).await.map_err(|error| error.to_string())?;
        if self.catalogue.pays {
            checks.extend(process.payments.check(&event).await.map_err(|error| error.to_string())?);
        }
        if let Some(check) = checks.iter().find(|check| check.verdict != check::Verdict::Holds) {
            return Err(format!("the service finds: {check:?}"));
        }
        let told = self.ledger.lock().unwrap().told();
        for (user, product, id) in told {
            // What ran out as an order gives way to what the buyer had before, if that is newer by a clock that was set back.
            if self.around.database.lock().unwrap().order(&id).is_some_and(|order| order.status.over()) {
                continue;
            }
            let found =
                process.sale.reservation_of(user, product, event.id).await.map_err(|error| error.to_string())?;
            if found.id != id {
                return Err(format!("a buyer was told of {id} and finds {}", found.id));
            }
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.note("everything is healed".to_owned());
        for faults in [&self.around.redis_faults, &self.around.database_faults, &self.around.gateway_faults] {
            faults.set_rates(Rates::default());
        }
        self.end_troubles(Instant::now() + PATIENCE);
    }

    /// Opens, sells a little, and ends, as often as it takes.
    async fn finish_sale(&mut self) -> Verdict {
        let rounds = PATIENCE.as_millis() / LOOK_INTERVAL.as_millis();
        for round in 0..rounds as u64 {
            let phase = self.phase();
            if phase == SalePhase::Settled {
                return Ok(());
            }
            let control = match (phase, round % 8) {
                (SalePhase::Draft, 4) => Some(Control::Open),
                (SalePhase::Live, 4) => Some(Control::Resume),
                (SalePhase::Live | SalePhase::Stopped, 7) => Some(Control::End),
                _ => None,
            };
            let process = round as usize % self.directory.lock().unwrap().len();
            if let Some(control) = control {
                self.control(process, control);
            }
            if phase == SalePhase::Live && round % 8 == 5 {
                self.buy(3, round as usize, 1, true, round);
            }
            self.pass(LOOK_INTERVAL).await?;
        }
        // A sale whose end came before anybody had opened it stays closed.
        if self.phase() == SalePhase::Draft && self.catalogue.event.ends_at.is_some() {
            return Ok(());
        }
        Err(format!("the sale does not come to its end: its phase is {}", self.phase().as_str()))
    }

    fn phase(&self) -> SalePhase {
        let database = self.around.database.lock().unwrap();
        database.event(self.catalogue.id()).map_or(SalePhase::Draft, |event| event.phase)
    }
}
