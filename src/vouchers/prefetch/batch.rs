//! One batch, from its order to its outcome. Whatever is in between (an answer that is lost, a vendor that is busy, a process
//! that died) is bridged by asking about the external id, or by ordering under it again, as often as the configuration
//! allows, over every process that had the job in hand.

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::Prefetch;
use super::stock::{BoughtBatch, BoughtVoucher};
use super::vendor::{OrderOutcome, Refusal, VendorApi, VendorOrder};
use crate::domain::prefetch::{Batch, BatchState, PrefetchJob, external_id};
use crate::error::{Error, Result};
use crate::store::mongo::vouchers::BatchEnd;
use crate::telemetry::metrics::PREFETCH_UNITS;

/// The vendor says that it knows nothing of the order.
pub(super) const NOT_PLACED: &str = "not_placed";
/// The vendor has sold fewer than were ordered.
const SHORT_DELIVERY: &str = "short_delivery";
/// The vendor has sold codes that are in stock already.
const CODES_KNOWN: &str = "codes_known";

/// A job in hand.
pub(super) struct Hold<'a> {
    /// As it was when it was taken: what changes while it is worked on is read again.
    pub job: &'a PrefetchJob,
    /// Names the claim.
    pub claim: &'a str,
    /// The process is about to stop: calls are finished, and none is made again.
    pub stop: &'a CancellationToken,
}

/// How far a batch was brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brought {
    /// Every unit is in stock.
    Full,
    /// It is decided, and units are missing: its vendor is passed over.
    Short,
    /// Its vendor has accepted it and is not ready.
    Pending,
    /// Its outcome is not known: the vendor does not tell, or knows of no such order so soon.
    Open,
    /// Somebody else has the job in hand.
    Lost,
}

/// What is done next about a batch.
enum Turn {
    /// The vendor was never asked.
    Order,
    /// The vendor was, or may have been.
    Ask,
    /// The vendor has not sold it and may be asked again; if that is not possible any more, this decides it, if it is enough.
    Again(Option<String>),
}

/// What the vendor says of a batch.
enum Heard {
    Outcome(OrderOutcome),
    /// It has no such order.
    Absent,
    /// Nothing.
    Silence,
}

/// Whether a batch may be ordered once more.
enum Again {
    Yes,
    No,
    Lost,
}

/// A delivery, as it goes into stock.
pub(super) fn bought(job: &PrefetchJob, batch: &Batch, vouchers: Vec<BoughtVoucher>) -> BoughtBatch {
    BoughtBatch {
        product: job.product,
        denomination: job.denomination,
        vendor: batch.vendor,
        client: job.client,
        job: job.id,
        external_id: external_id(job.id, batch.number),
        vouchers,
    }
}

impl Prefetch {
    /// Buys a batch that was recorded a moment ago.
    pub(super) async fn buy_batch(&self, hold: &Hold<'_>, api: &dyn VendorApi, batch: Batch) -> Result<Brought> {
        self.bring(hold, api, batch, Turn::Order).await
    }

    /// Goes on with a batch that somebody has left open.
    pub(super) async fn resume_batch(&self, hold: &Hold<'_>, batch: Batch) -> Result<Brought> {
        let Some(api) = self.api(batch.vendor).await else { return Ok(Brought::Open) };
        self.bring(hold, api.as_ref(), batch, Turn::Ask).await
    }

    async fn bring(&self, hold: &Hold<'_>, api: &dyn VendorApi, mut batch: Batch, first: Turn) -> Result<Brought> {
        let (mut turn, mut left) = (first, Brought::Open);
        for attempt in 0..=self.config.retries + 1 {
            if attempt > 0 && !self.pause(hold.stop, attempt).await {
                break;
            }
            let heard = match turn {
                Turn::Order => self.order(hold, api, &batch).await?,
                Turn::Ask => self.ask(hold, api, &batch).await,
                Turn::Again(settled) => match (self.order_again(hold, &mut batch).await?, settled) {
                    (Again::Yes, _) => self.order(hold, api, &batch).await?,
                    (Again::No, Some(reason)) => return self.refused(hold, &batch, reason).await,
                    (Again::No, None) => self.ask(hold, api, &batch).await,
                    (Again::Lost, _) => return Ok(Brought::Lost),
                },
            };
            left = match heard {
                Heard::Outcome(OrderOutcome::Pending) => Brought::Pending,
                _ => Brought::Open,
            };
            turn = match heard {
                Heard::Outcome(OrderOutcome::Fulfilled(vouchers)) => return self.take_in(hold, &batch, vouchers).await,
                Heard::Outcome(OrderOutcome::Refused(Refusal { permanent, reason })) => {
                    if permanent || self.orders_used_up(&batch) {
                        return self.refused(hold, &batch, reason).await;
                    }
                    Turn::Again(Some(reason))
                }
                Heard::Absent => {
                    let settled = self.absent_for_long(&batch).then(|| NOT_PLACED.to_owned());
                    match settled {
                        Some(reason) if self.orders_used_up(&batch) => return self.refused(hold, &batch, reason).await,
                        settled => Turn::Again(settled),
                    }
                }
                Heard::Outcome(OrderOutcome::Pending) | Heard::Silence => Turn::Ask,
            };
        }
        Ok(left)
    }

    /// Orders; without an answer, asks at once what came of it.
    async fn order(&self, hold: &Hold<'_>, api: &dyn VendorApi, batch: &Batch) -> Result<Heard> {
        let job = hold.job;
        let external_id = external_id(job.id, batch.number);
        let candidate = job.candidates.iter().find(|candidate| candidate.vendor == batch.vendor);
        let missing = || Error::internal("ordering vouchers", format!("{external_id} is of a vendor of another job"));
        let order = VendorOrder {
            external_id: &external_id,
            product_ref: &candidate.ok_or_else(missing)?.product_ref,
            denomination: job.denomination,
            count: batch.units,
        };
        match api.order(&order).await {
            Ok(outcome) => Ok(Heard::Outcome(outcome)),
            Err(error) => {
                tracing::warn!(%external_id, vendor = %batch.vendor, error = %error.chain(), "an order of vouchers has no answer; its vendor is asked about it");
                Ok(self.ask(hold, api, batch).await)
            }
        }
    }

    async fn ask(&self, hold: &Hold<'_>, api: &dyn VendorApi, batch: &Batch) -> Heard {
        let external_id = external_id(hold.job.id, batch.number);
        match api.find_order(&external_id).await {
            Ok(Some(outcome)) => Heard::Outcome(outcome),
            Ok(None) => Heard::Absent,
            Err(error) => {
                tracing::warn!(%external_id, vendor = %batch.vendor, error = %error.chain(), "a vendor does not say what became of an order");
                Heard::Silence
            }
        }
    }

    const fn orders_used_up(&self, batch: &Batch) -> bool {
        batch.orders > self.config.retries
    }

    /// Whether "there is no such order" can be believed by now.
    fn absent_for_long(&self, batch: &Batch) -> bool {
        let absence = TimeDelta::milliseconds(i64::try_from(self.config.absence_ms).unwrap_or(i64::MAX));
        self.clock.now() - batch.ordered_at >= absence
    }

    /// Records that the vendor is asked to sell once more, unless it was asked often enough or nothing is to be bought.
    async fn order_again(&self, hold: &Hold<'_>, batch: &mut Batch) -> Result<Again> {
        if self.orders_used_up(batch) {
            return Ok(Again::No);
        }
        let (jobs, now) = (&self.mongo.prefetch_jobs, self.clock.now());
        if jobs.order_again(hold.job.id, hold.claim, batch.number, now).await? {
            batch.orders += 1;
            batch.ordered_at = now;
            return Ok(Again::Yes);
        }
        let held = jobs.held(hold.job.id, hold.claim).await?;
        Ok(if held.is_some() { Again::No } else { Again::Lost })
    }

    /// The codes first, then the batch: a crash in between asks the vendor once more, and adds them once more.
    async fn take_in(&self, hold: &Hold<'_>, batch: &Batch, vouchers: Vec<BoughtVoucher>) -> Result<Brought> {
        let (job, delivered) = (hold.job, vouchers.len());
        let external_id = external_id(job.id, batch.number);
        if delivered > batch.units as usize {
            tracing::warn!(%external_id, vendor = %batch.vendor, delivered, units = batch.units, "a vendor has delivered more than was ordered; it is kept");
        }
        let end = self.stocked(job, batch, vouchers).await?;
        self.close(hold, batch, &end).await
    }

    /// Puts what a vendor has delivered of a batch into stock, and says what became of the batch.
    pub(super) async fn stocked(
        &self,
        job: &PrefetchJob,
        batch: &Batch,
        vouchers: Vec<BoughtVoucher>,
    ) -> Result<BatchEnd> {
        let delivered = vouchers.len();
        let added = self.stock.add(bought(job, batch, vouchers)).await?;
        let reason = if delivered < batch.units as usize { SHORT_DELIVERY } else { CODES_KNOWN };
        let reason = (added.units < batch.units).then(|| reason.to_owned());
        Ok(BatchEnd { state: BatchState::Stocked, bought: added.units, reason })
    }

    async fn refused(&self, hold: &Hold<'_>, batch: &Batch, reason: String) -> Result<Brought> {
        self.close(hold, batch, &BatchEnd { state: BatchState::Refused, bought: 0, reason: Some(reason) }).await
    }

    /// Records what became of a batch.
    pub(super) async fn close(&self, hold: &Hold<'_>, batch: &Batch, end: &BatchEnd) -> Result<Brought> {
        if !self.mongo.prefetch_jobs.end_batch(hold.job.id, hold.claim, batch, end).await? {
            return Ok(Brought::Lost);
        }
        let missing = batch.units.saturating_sub(end.bought);
        let rest = if end.state == BatchState::Unresolved { "unresolved" } else { "failed" };
        metrics::counter!(PREFETCH_UNITS, "outcome" => "bought").increment(end.bought.into());
        metrics::counter!(PREFETCH_UNITS, "outcome" => rest).increment(missing.into());
        if let Some(reason) = &end.reason {
            let external_id = external_id(hold.job.id, batch.number);
            tracing::warn!(%external_id, vendor = %batch.vendor, missing, reason, "a vendor is passed over");
        }
        Ok(if missing == 0 { Brought::Full } else { Brought::Short })
    }

    /// A pause that grows with each attempt; false if the process is about to stop.
    async fn pause(&self, stop: &CancellationToken, attempt: u32) -> bool {
        let pause = std::time::Duration::from_millis(self.config.retry_pause_ms) * attempt;
        tokio::select! {
            () = tokio::time::sleep(pause) => true,
            () = stop.cancelled() => false,
        }
    }
}
