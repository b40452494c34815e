//! Buyers: they ask again when the answer does not come, at whichever process listens.

use std::sync::Arc;
use std::time::Duration;

use orbit::domain::ids::{ProductId, UserId};
use orbit::domain::reservation::{ReserveOutcome, ReserveRequest};
use orbit::error::{Error, Result};
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::sleep;

use super::catalogue::Catalogue;
use super::process::{Directory, Process};
use crate::ledger::{SharedLedger, short};

const ATTEMPTS_MAX: usize = 5;

/// A buyer with a wish.
pub struct Buyer {
    pub directory: Directory,
    pub ledger: SharedLedger,
    pub catalogue: Arc<Catalogue>,
    pub random: StdRng,
    pub user: UserId,
    pub product: ProductId,
    pub quantity: u32,
    /// Empty for none.
    pub idempotency_key: String,
}

impl Buyer {
    pub async fn buy(mut self) {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(process) = self.find() {
                let request = ReserveRequest {
                    user: self.user,
                    product: self.product,
                    event: self.catalogue.id(),
                    quantity: self.quantity,
                    reservation_id: self.ledger.lock().unwrap().new_id(),
                    idempotency_key: self.idempotency_key.clone(),
                };
                let answer = process.sale.reserve(&request).await;
                if self.is_content(answer) {
                    return;
                }
            }
            sleep(Duration::from_millis(self.random.random_range(20..700))).await;
        }
    }

    fn find(&mut self) -> Option<Arc<Process>> {
        let processes = self.directory.lock().unwrap();
        let listening: Vec<&Arc<Process>> = processes.iter().filter(|process| process.listens()).collect();
        let chosen = self.random.random_range(0..listening.len().max(1));
        listening.get(chosen).map(|process| Arc::clone(process))
    }

    /// Whether the answer is one to stop at.
    fn is_content(&self, answer: Result<ReserveOutcome>) -> bool {
        let mut ledger = self.ledger.lock().unwrap();
        match answer {
            Ok(ReserveOutcome::Reserved(reservation) | ReserveOutcome::Replayed(reservation)) => {
                ledger.tell(self.user, &reservation);
                true
            }
            Ok(ReserveOutcome::AlreadyReserved(reservation)) => {
                ledger.tell(self.user, &reservation);
                true
            }
            Ok(ReserveOutcome::SoldOut) => true,
            Ok(ReserveOutcome::LimitReached { limit }) => {
                if self.quantity <= limit {
                    ledger.blame(format!("{} units are above the limit of {limit}", self.quantity));
                }
                true
            }
            Ok(ReserveOutcome::NotLive(_)) => false,
            Ok(ReserveOutcome::UnknownProduct) => {
                ledger.blame("a product of the sale was answered as unknown".to_owned());
                true
            }
            Err(error @ Error::Damaged { .. }) => {
                ledger.blame(format!("invariant 9: {error}"));
                true
            }
            Err(error) => {
                ledger.note(format!("{} is told: {error}", short(self.user.bytes())));
                false
            }
        }
    }
}
