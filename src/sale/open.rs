//! Opening: the inventory is loaded first, and the status is flipped last.
//!
//! 1. take the opening token in Redis (at most one opener; it expires if the opener dies)
//! 2. phase OPENING in MongoDB, marked with the token
//! 3. remove what a dead opening left in Redis
//! 4. stamp the catalogue with the token: from here on it cannot be edited
//! 5. keep a code for each unit that is a voucher; project the stamped products, and compare the counts
//! 6. phase LIVE in MongoDB
//! 7. flip the status in Redis, which spends the token
//!
//! Before step 7 no buyer can reserve. A failure before it is undone (no stock, phase DRAFT, an event that can be opened
//! again); a crash before it is undone by the next opener or by [`super::recovery`].

use futures::StreamExt;

use super::projector::{lost, project};
use super::{Durable, Sale};
use crate::domain::event::{Event, SalePhase};
use crate::domain::ids::{EventId, UserId};
use crate::domain::product::Product;
use crate::domain::sale::{SaleAction, SaleStatus};
use crate::error::{Code, Error, Result};
use crate::store::live::link::Link;
use crate::store::live::{OpeningToken, Projecting, Removed, Transitioned};
use crate::store::mongo::products::ProductStream;

/// An opened sale.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// Products for sale.
    pub products: u64,
}

impl<L: Link, D: Durable> Sale<L, D> {
    /// Opens the sale of an event whose owner is approved. Run it to its end even if the caller hangs up.
    ///
    /// # Errors
    /// A refusal that says what stands in the way, or a fault after which the event can be opened again.
    pub async fn open(&self, event: &Event) -> Result<Opened> {
        self.open_because(Because::AskedFor, event).await
    }

    /// As [`Self::open`], because the moment that the seller scheduled has come. The live store's clock has the last word.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::Transition`] also if the moment has not come, or the seller has changed the plan.
    pub(super) async fn open_on_time(&self, event: &Event) -> Result<Opened> {
        self.open_because(Because::Scheduled, event).await
    }

    async fn open_because(&self, because: Because, event: &Event) -> Result<Opened> {
        self.require_approved(event.seller).await?;
        self.require_openable(event).await?;
        self.require_payable(event)?;
        self.require_safe_stores().await?;
        let token = OpeningToken::random();
        if !self.live.take_opening(event.id, &token, self.config.opening_ttl_ms).await? {
            // Lost against another request: it may have finished since, and then this is a plain second Live.
            self.require_openable(event).await?;
            return Err(Error::refused(Code::OpeningInProgress, "the sale is being opened already"));
        }
        match self.open_under(because, event.id, &token).await {
            Ok(opened) => {
                tracing::info!(event = %event.id, products = opened.products, "sale opened");
                Ok(opened)
            }
            Err(error) => self.undo(event.id, &token, error).await,
        }
    }

    async fn open_under(&self, because: Because, event: EventId, token: &OpeningToken) -> Result<Opened> {
        // Read again under the token: nobody else can open it now.
        let fresh = self.durable.event(event).await?.ok_or_else(|| Error::not_found("event not found"))?;
        self.require_openable(&fresh).await?;
        let run = token.as_str();
        // Only from the phase that was read: should this write arrive late, after another opening, it changes nothing.
        if !self.durable.move_phase(event, &[fresh.phase], SalePhase::Opening, Some(run)).await? {
            return Err(Error::not_found("event not found"));
        }
        // Its terms cannot change from here on, and neither can the moment at which it ends.
        let fresh = self.durable.event(event).await?.ok_or_else(|| Error::not_found("event not found"))?;
        self.require_payable(&fresh)?;
        let not_before_ms = because.not_before_ms(&fresh)?;
        self.discard(event, token).await?;
        let frozen = self.durable.freeze(event, run).await?;
        if frozen == 0 {
            return Err(Error::refused(Code::NoProducts, "register at least one product before opening the sale"));
        }
        self.keep_codes(&fresh, run).await?;
        let products = self.chargeable(&fresh, self.durable.frozen(event, run).await?);
        let projected = project(&self.live, &self.config, event, self.promised(&fresh).await?, token, products).await?;
        let stored = self.live.product_count(event).await?;
        if projected != frozen || stored != frozen {
            let what = format!("{frozen} products in the catalogue, {projected} projected, {stored} in the live store");
            return Err(Error::internal("opening a sale", what));
        }
        if !self.durable.move_phase_of_run(event, run, &[SalePhase::Opening], SalePhase::Live).await? {
            return Err(lost());
        }
        match self.live.transition_not_before(event, SaleAction::Live, Some(token), not_before_ms).await? {
            Transitioned::Changed(_) => Ok(Opened { products: frozen }),
            Transitioned::Refused(current) | Transitioned::TooEarly(current) => {
                Err(Error::Transition { current, attempted: SaleStatus::Live })
            }
            Transitioned::TokenLost(_) | Transitioned::Held(_) => Err(lost()),
        }
    }

    /// Takes a failed opening back. If the failure was only that the flip's answer was lost, the sale is open.
    async fn undo(&self, event: EventId, token: &OpeningToken, error: Error) -> Result<Opened> {
        match self.abandon(event, token).await {
            Ok(Abandoned::WasOpened) => self.opened_by(event, token, error).await,
            Ok(Abandoned::Undone | Abandoned::TakenOver) => Err(error),
            Err(second) => {
                tracing::error!(event = %event, error = %second, "a failed opening could not be undone yet; recovery will");
                Err(error)
            }
        }
    }

    /// The sale runs. Either this opening did it, or it came too late: another one finished and spent its token just before
    /// this one took its own.
    async fn opened_by(&self, event: EventId, token: &OpeningToken, error: Error) -> Result<Opened> {
        let (run, live) = (token.as_str(), SalePhase::Live);
        if self.durable.move_phase_of_run(event, run, &[live], live).await? {
            tracing::warn!(event = %event, error = %error, "the sale opened although the answer was lost");
            return Ok(Opened { products: self.live.product_count(event).await? });
        }
        self.live.release_opening(event, token).await?;
        Err(error)
    }

    /// Removes everything of an opening that did not get to its flip. Only the holder of the token may.
    pub(super) async fn abandon(&self, event: EventId, token: &OpeningToken) -> Result<Abandoned> {
        match self.discard(event, token).await {
            Ok(()) => {}
            Err(Error::Transition { .. }) => return Ok(Abandoned::WasOpened),
            Err(error) if error.code() == Code::OpeningInProgress => return Ok(Abandoned::TakenOver),
            Err(error) => return Err(error),
        }
        let run = token.as_str();
        self.durable.thaw(event, run).await?;
        let opened = [SalePhase::Opening, SalePhase::Live];
        self.durable.move_phase_of_run(event, run, &opened, SalePhase::Draft).await?;
        self.live.release_opening(event, token).await?;
        Ok(Abandoned::Undone)
    }

    /// Removes every key of a projection, page by page, while the token is good and the sale has not started. Bookings go
    /// first, which only a rebuild that was cut short can have left: their index is among the other keys.
    pub(super) async fn discard(&self, event: EventId, token: &OpeningToken) -> Result<()> {
        let page_size = self.config.settle_page_size_max;
        let mut cursor = 0;
        loop {
            let (next, keys) = self.live.booking_keys_page(event, cursor, page_size).await?;
            for batch in keys.chunks(page_size) {
                discarded(self.live.remove_bookings(event, batch, Some(token)).await?)?;
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        loop {
            let (next, keys) = self.live.sale_keys_page(event, cursor, page_size).await?;
            for batch in keys.chunks(page_size) {
                discarded(self.live.remove_sale_keys(event, batch, Some(token)).await?)?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// What is projected with every product. Units that were withdrawn are not sold because a sale is opened anew.
    pub(super) async fn promised(&self, event: &Event) -> Result<Projecting> {
        Ok(Projecting {
            window_ms: u64::from(event.terms.payment_window_s) * 1_000,
            ends_at_ms: event.ends_at.map(|at| at.timestamp_millis()),
            restocked: self.durable.restocked(event.id).await?,
        })
    }

    /// An account is asked for afresh: approval given or taken a moment ago counts.
    async fn require_approved(&self, seller: UserId) -> Result<()> {
        let standing = self.durable.standing(seller).await?;
        match standing {
            Some(standing) if standing.active && standing.approved => Ok(()),
            _ => Err(Error::refused(
                Code::NotApproved,
                "an administrator must approve your verification before you can open a sale",
            )),
        }
    }

    async fn require_openable(&self, event: &Event) -> Result<()> {
        let attempted = SaleStatus::Live;
        if event.phase.over() {
            return Err(Error::Transition { current: SaleStatus::Stopped, attempted });
        }
        let current = self.live.status(event.id).await?;
        if current != SaleStatus::NotStarted {
            return Err(Error::Transition { current, attempted });
        }
        // MongoDB says it was opened. Either an opening died between its last two steps, and its projection is there;
        // or the live store has lost the sale, and opening it again would sell every unit a second time.
        if event.phase == SalePhase::Live && self.was_lost(event.id).await? {
            return Err(state_lost());
        }
        // Nobody could buy in it, not even once: the live store refuses every purchase from that moment on.
        if let Some(at) = event.ends_at
            && self.live.now_ms().await? >= at.timestamp_millis()
        {
            return Err(Error::refused(
                Code::EndsAtPassed,
                "the moment at which this sale was to end has passed; change endsAt before you open it",
            ));
        }
        Ok(())
    }

    /// Reservations that are to be paid, and cannot be, would all run out.
    fn require_payable(&self, event: &Event) -> Result<()> {
        if event.terms.payment_window_s > 0 && !self.takes_payments {
            return Err(Error::refused(
                Code::PaymentsOff,
                "this service takes no payments: set payment.gateway, or give the event no payment window",
            ));
        }
        Ok(())
    }

    /// The products, or a refusal at the first one whose price nobody could be asked for: its units would all be held and
    /// run out.
    fn chargeable(&self, event: &Event, products: ProductStream) -> ProductStream {
        if event.terms.payment_window_s == 0 {
            return products;
        }
        let rule = self.price_rule;
        let checked = move |product: Product| match rule(product.price, product.per_buyer_limit.min(product.units)) {
            None => Ok(product),
            Some(why) => Err(Error::refused(
                Code::PriceNotChargeable,
                format!("product {} ({}) cannot be paid for: {why}", product.id, product.title),
            )),
        };
        Box::pin(products.map(move |product| product.and_then(checked)))
    }

    /// A sale does not open on a server that may throw it away, or without the index that settles it exactly once.
    async fn require_safe_stores(&self) -> Result<()> {
        if let Some(shortfall) = self.live.unsafe_for_sales().await? {
            return Err(Error::refused(Code::LiveStoreUnsafe, shortfall.to_string()));
        }
        if !self.durable.settles_once().await? {
            return Err(Error::refused(
                Code::DatabaseUnsafe,
                "the database has no unique index on orders.reservationId, which settles each reservation once: make it \
                 (docs/operations.md, database_unsafe), then open the sale again",
            ));
        }
        Ok(())
    }
}

/// Why a sale is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Because {
    /// Its seller says so, at any moment.
    AskedFor,
    /// Its moment has come.
    Scheduled,
}

impl Because {
    /// The moment before which the status must not flip, if there is one, from the event as it is under the token.
    fn not_before_ms(self, event: &Event) -> Result<Option<i64>> {
        match self {
            Self::AskedFor => Ok(None),
            Self::Scheduled if event.auto_open => Ok(Some(event.scheduled_at.timestamp_millis())),
            Self::Scheduled => Err(Error::Transition { current: SaleStatus::NotStarted, attempted: SaleStatus::Live }),
        }
    }
}

/// What became of an opening that was to be abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abandoned {
    /// Nothing of it is left.
    Undone,
    /// Its flip had happened: the sale is open.
    WasOpened,
    /// Another opener has it now.
    TakenOver,
}

fn discarded(removed: Removed) -> Result<()> {
    match removed {
        Removed::Keys(_) => Ok(()),
        Removed::Refused(current) => Err(Error::Transition { current, attempted: SaleStatus::Live }),
        Removed::TokenLost => Err(lost()),
    }
}

pub(super) fn state_lost() -> Error {
    Error::refused(
        Code::LiveStateLost,
        "the live store has lost this sale; it is being rebuilt from its orders, please try again in a moment",
    )
}
