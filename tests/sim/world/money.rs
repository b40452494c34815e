//! The end of the money: whatever is still due about a payment becomes due, and then every account must be balanced.

use orbit::domain::clock::Clock;
use tokio::time::Instant;

use super::finale::{LOOK_INTERVAL, PATIENCE};
use super::stage::World;
use crate::invariants::{self, Verdict};

impl World {
    /// Gateways are asked for a day, and a killed process is waited for; nobody waits for that here.
    pub(super) async fn settle_money(&mut self) -> Verdict {
        if !self.catalogue.pays {
            return Ok(());
        }
        let end = Instant::now() + PATIENCE;
        loop {
            match self.look(invariants::money_holds_at_rest) {
                Err(_) if Instant::now() < end => {
                    self.come_to_what_is_due();
                    self.pass(LOOK_INTERVAL).await?;
                }
                verdict => return verdict,
            }
        }
    }

    /// Sets the clock of every process to the moment at which everything that is to be done is due.
    fn come_to_what_is_due(&self) {
        let last = self.around.database.lock().unwrap().payments().filter_map(|payment| payment.due_at).max();
        let Some(last) = last else { return };
        for clock in &self.process_clocks {
            clock.jump((last - clock.now()).num_milliseconds().max(0) + 1);
        }
    }
}
