//! Buyers: they ask again when the answer does not come, at whichever process listens.

use std::sync::Arc;
use std::time::Duration;

use orbit::domain::ids::{ProductId, UserId};
use orbit::domain::order::OrderStatus;
use orbit::domain::reservation::ReserveOutcome::{AlreadyReserved, Replayed, Reserved};
use orbit::domain::reservation::{Confirmed, Reservation, ReserveOutcome, ReserveRequest};
use orbit::error::{Error, Result};
use orbit::sale::ReservationRef;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::sleep;

use super::catalogue::Catalogue;
use super::process::{Directory, Process, listening};
use crate::gateway::SharedTill;
use crate::ledger::{Paid, SharedLedger, short};

pub(super) const ATTEMPTS_MAX: usize = 5;

/// A buyer with a wish.
pub struct Buyer {
    pub directory: Directory,
    pub ledger: SharedLedger,
    pub till: SharedTill,
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
                let got = match &answer {
                    Ok(Reserved(got) | Replayed(got) | AlreadyReserved(got)) => Some(got.clone()),
                    _ => None,
                };
                if self.is_content(answer) {
                    if let Some(reservation) = got {
                        self.go_on(reservation).await;
                    }
                    return;
                }
            }
            sleep(Duration::from_millis(self.random.random_range(20..700))).await;
        }
    }

    /// What is unpaid they pay, sooner or later, or cancel, or walk away from; what is theirs some give back.
    async fn go_on(&mut self, reservation: Reservation) {
        let of = ReservationRef {
            id: reservation.id.clone(),
            user: reservation.user,
            product: reservation.product,
            event: reservation.event,
        };
        let (unpaid, choice) = (reservation.status == OrderStatus::PendingPayment, self.random.random_range(0..10));
        // Many come when the time is just over, and the sweeper comes as well.
        let window = reservation.expires_at_ms.map_or(0, |expires| expires - reservation.booked_at_ms);
        let wait = if unpaid && self.random.random_bool(0.7) {
            u64::try_from(window).unwrap() + self.random.random_range(0..420)
        } else {
            self.random.random_range(0..4_000)
        };
        let wait = Duration::from_millis(wait);
        if unpaid && self.catalogue.pays && choice <= 5 {
            self.pay_at_the_gateway(&of, wait).await;
            if self.random.random_bool(0.4) {
                let part = self.random.random_bool(0.6);
                self.cancel(&of, part.then_some(1)).await;
            }
            return;
        }
        sleep(wait).await;
        match choice {
            0..=4 if unpaid => self.pay(&of, reservation.units_held()).await,
            5..=6 if unpaid => self.cancel(&of, None).await,
            0 => self.cancel(&of, None).await,
            _ => {}
        }
    }

    /// The money is on its way, and it is told again until somebody says what became of it.
    async fn pay(&mut self, of: &ReservationRef, units: u32) {
        for _ in 0..40 {
            if let Some(process) = self.find() {
                let told = match process.sale.confirm(of, units).await {
                    Ok(Confirmed::OnTime(_) | Confirmed::Late(_) | Confirmed::Before(_)) => Some(Paid::Confirmed),
                    Ok(Confirmed::NoStock(_) | Confirmed::Cancelled(_) | Confirmed::Unknown) => Some(Paid::InVain),
                    Ok(Confirmed::NotRunning(_)) | Err(_) => None,
                };
                if let Some(told) = told {
                    return self.ledger.lock().unwrap().tell_payer(&of.id, told);
                }
            }
            sleep(Duration::from_millis(self.random.random_range(200..2_000))).await;
        }
    }

    /// A part is cancelled under a name, so that asking again cancels no more.
    async fn cancel(&mut self, of: &ReservationRef, units: Option<u32>) {
        let operation = units.map(|_| format!("a part of {}", of.id));
        for _ in 0..ATTEMPTS_MAX {
            if let Some(process) = self.find()
                && let Ok(cancelled) = process.sale.cancel(of, units, operation.clone()).await
            {
                if cancelled.units_held() == 0 {
                    self.ledger.lock().unwrap().tell_cancelled(&of.id);
                }
                return;
            }
            sleep(Duration::from_millis(self.random.random_range(200..2_000))).await;
        }
    }

    pub(super) fn find(&mut self) -> Option<Arc<Process>> {
        listening(&self.directory, &mut self.random)
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
            Ok(ReserveOutcome::NotLive(_) | ReserveOutcome::KeyReused) => false,
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
