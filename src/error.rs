//! What can go wrong, independent of any transport.
//!
//! A business outcome is a value ([`crate::domain::reservation::ReserveOutcome`]); an [`Error`] is a refusal or a
//! fault. Every error has a stable [`Code`]; the HTTP layer maps codes to statuses in one table. The public text never
//! contains a source's text: sources are logged once, at the boundary.

use std::borrow::Cow;

use crate::domain::sale::SaleStatus;

/// The library's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A boxed cause, kept for the log and never shown.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// Everything a use case can fail with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is understood and refused; `message` is public.
    #[error("{message}")]
    Refused {
        /// The stable reason.
        code: Code,
        /// A sentence for the caller.
        message: Cow<'static, str>,
    },
    /// One or more input fields break a rule.
    #[error("validation failed")]
    Invalid {
        /// Each broken rule, in the order of the fields.
        fields: Vec<FieldError>,
    },
    /// The state machine has no such edge.
    #[error("cannot transition sale from {current} to {attempted}")]
    Transition {
        /// The status the sale has.
        current: SaleStatus,
        /// The status that was asked for.
        attempted: SaleStatus,
    },
    /// A verification has been decided otherwise already.
    #[error("cannot set verification status from {current} to {attempted}")]
    Decided {
        /// The status the request has.
        current: &'static str,
        /// The status that was asked for.
        attempted: &'static str,
    },
    /// The caller must wait.
    #[error("{message}")]
    TooMany {
        /// A sentence for the caller.
        message: Cow<'static, str>,
        /// When to come back, in seconds.
        retry_after_s: u64,
    },
    /// A server that we depend on did not answer in time, or refused.
    #[error("{dependency} is unavailable while {doing}")]
    Unavailable {
        /// Which server.
        dependency: Dependency,
        /// What was being done, for the log.
        doing: &'static str,
        /// Why, for the log.
        #[source]
        source: Option<Source>,
    },
    /// The live store holds something that no script of ours can have written.
    #[error("the live record is damaged while {doing}: {detail}")]
    Damaged {
        /// What was being done, for the log.
        doing: &'static str,
        /// What was found, for the log.
        detail: String,
    },
    /// A bug, or a fault without a better name.
    #[error("internal error while {doing}")]
    Internal {
        /// What was being done, for the log.
        doing: &'static str,
        /// Why, for the log.
        #[source]
        source: Option<Source>,
    },
}

/// One broken rule of one input field.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FieldError {
    /// The field as the caller spelled it.
    pub field: String,
    /// The rule, as a sentence.
    pub message: String,
}

/// A server that we depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// Redis.
    LiveStore,
    /// MongoDB.
    Database,
    /// S3 or the media folder.
    Media,
    /// Whoever takes the buyers' money.
    PaymentGateway,
    /// Whoever sells voucher codes to us.
    Vendor,
    /// Our own bounded queues.
    Capacity,
}

impl std::fmt::Display for Dependency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LiveStore => "the live store",
            Self::Database => "the database",
            Self::Media => "the media store",
            Self::PaymentGateway => "the payment gateway",
            Self::Vendor => "the voucher vendor",
            Self::Capacity => "capacity",
        })
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// The stable, machine-readable reason of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)+ }

        impl Code {
            /// Every code, for tests and documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The text on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

codes! {
    /// Input breaks a rule; `fields` says which.
    ValidationFailed = "validation_failed",
    /// The body is not what the route reads.
    MalformedBody = "malformed_body",
    /// A path or query value cannot be what it should be.
    MalformedId = "malformed_id",
    /// The image is not acceptable.
    ImageRejected = "image_rejected",
    /// No credentials came with the request.
    Unauthenticated = "unauthenticated",
    /// The session has ended or was revoked.
    SessionExpired = "session_expired",
    /// Unknown account or wrong password; never says which.
    BadCredentials = "bad_credentials",
    /// The route is for another role.
    RoleRequired = "role_required",
    /// The account is blocked.
    AccountInactive = "account_inactive",
    /// The account still needs an administrator's approval.
    NotApproved = "not_approved",
    /// A browser sent the request from another site.
    CrossSite = "cross_site",
    /// There is no such route.
    RouteNotFound = "route_not_found",
    /// The route exists, the method does not.
    MethodNotAllowed = "method_not_allowed",
    /// There is no such thing, or it is somebody else's.
    NotFound = "not_found",
    /// The event's sale has no such product.
    ProductNotFound = "product_not_found",
    /// The e-mail address belongs to an account.
    EmailTaken = "email_taken",
    /// Every unit is reserved.
    SoldOut = "sold_out",
    /// The buyer has a reservation for this product.
    AlreadyBooked = "already_booked",
    /// The `Idempotency-Key` was used for another request.
    IdempotencyKeyReused = "idempotency_key_reused",
    /// The request with this `Idempotency-Key` is still running.
    IdempotencyInProgress = "idempotency_in_progress",
    /// The reservation cannot be cancelled any more.
    CancellationClosed = "cancellation_closed",
    /// The reservation has fewer units than are to be returned, or none.
    NothingToReturn = "nothing_to_return",
    /// Fewer units are unsold than are to be withdrawn, or the product would have more than a product may.
    RestockRefused = "restock_refused",
    /// The seller has as many webhooks as a seller may.
    WebhookLimitReached = "webhook_limit_reached",
    /// The webhook is turned off: nothing is sent to it.
    WebhookDisabled = "webhook_disabled",
    /// This service takes no payments.
    PaymentsOff = "payments_off",
    /// A product has a price that the payment gateway cannot charge.
    PriceNotChargeable = "price_not_chargeable",
    /// The reservation is paid, cancelled, or was never to be paid.
    NothingToPay = "nothing_to_pay",
    /// The time in which the reservation could be paid has passed.
    ReservationExpired = "reservation_expired",
    /// A callback is not signed by the payment gateway, or was signed too long ago.
    BadSignature = "bad_signature",
    /// The sale does not accept reservations now.
    SaleNotActive = "sale_not_active",
    /// More units than one buyer may have.
    LimitReached = "limit_reached",
    /// The state machine has no such edge.
    TransitionRefused = "transition_refused",
    /// Another request is opening this sale.
    OpeningInProgress = "opening_in_progress",
    /// The sale was open and the live store no longer knows it.
    LiveStateLost = "live_state_lost",
    /// The sale is held until it is repaired.
    SaleHeld = "sale_held",
    /// The live store could lose or evict a sale; it must be configured first.
    LiveStoreUnsafe = "live_store_unsafe",
    /// The database lacks the index that settles a reservation once; it must be made first.
    DatabaseUnsafe = "database_unsafe",
    /// The moment at which the sale was to end has passed before it was opened.
    EndsAtPassed = "ends_at_passed",
    /// The event has no product to sell.
    NoProducts = "no_products",
    /// The catalogue is frozen while its sale runs.
    CatalogueFrozen = "catalogue_frozen",
    /// The sale has stopped and some reservations are not settled yet.
    SettlementIncomplete = "settlement_incomplete",
    /// A verification request waits for review, or was approved.
    VerificationExists = "verification_exists",
    /// The verification request was decided otherwise.
    VerificationDecided = "verification_decided",
    /// The body is larger than the route reads.
    TooLarge = "too_large",
    /// The content type is not one that the route reads.
    UnsupportedMediaType = "unsupported_media_type",
    /// Too many requests; `Retry-After` says when.
    RateLimited = "rate_limited",
    /// The request took longer than its deadline.
    DeadlineExceeded = "deadline_exceeded",
    /// The live store did not answer; the outcome is unknown.
    LiveStoreUnavailable = "live_store_unavailable",
    /// The live record is damaged; an operator must look.
    LiveRecordDamaged = "live_record_damaged",
    /// The database did not answer.
    DatabaseUnavailable = "database_unavailable",
    /// The media store did not answer.
    MediaUnavailable = "media_unavailable",
    /// The payment gateway did not answer; asking again is safe.
    PaymentGatewayUnavailable = "payment_gateway_unavailable",
    /// There are not enough vouchers; the order has none.
    VouchersShort = "vouchers_short",
    /// The voucher or its order is in a state in which this cannot be done.
    VoucherState = "voucher_state",
    /// A code was shown to its buyer, who cannot give it back.
    CodeShown = "code_shown",
    /// Another record has this name.
    NameTaken = "name_taken",
    /// The client has another order of this reference.
    ReferenceReused = "reference_reused",
    /// A voucher vendor did not answer; what it did is found out by asking.
    VendorUnavailable = "vendor_unavailable",
    /// Every worker for this kind of work is busy.
    Overloaded = "overloaded",
    /// A bug.
    Internal = "internal",
}

impl Error {
    /// A refusal with a public sentence.
    pub fn refused(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused { code, message: message.into() }
    }

    /// The thing does not exist, or is not the caller's to know of.
    pub fn not_found(message: &'static str) -> Self {
        Self::refused(Code::NotFound, message)
    }

    /// One broken rule.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid { fields: vec![FieldError { field: field.to_owned(), message: message.into() }] }
    }

    /// A dependency failed.
    pub fn unavailable(dependency: Dependency, doing: &'static str, source: impl Into<Source>) -> Self {
        Self::Unavailable { dependency, doing, source: Some(source.into()) }
    }

    /// A dependency did not answer within its deadline.
    #[must_use]
    pub const fn timed_out(dependency: Dependency, doing: &'static str) -> Self {
        Self::Unavailable { dependency, doing, source: None }
    }

    /// A bug, or a fault without a better name.
    pub fn internal(doing: &'static str, source: impl Into<Source>) -> Self {
        Self::Internal { doing, source: Some(source.into()) }
    }

    /// The stable reason.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Refused { code, .. } => *code,
            Self::Invalid { .. } => Code::ValidationFailed,
            Self::Transition { .. } => Code::TransitionRefused,
            Self::Decided { .. } => Code::VerificationDecided,
            Self::TooMany { .. } => Code::RateLimited,
            Self::Unavailable { dependency, .. } => match dependency {
                Dependency::LiveStore => Code::LiveStoreUnavailable,
                Dependency::Database => Code::DatabaseUnavailable,
                Dependency::Media => Code::MediaUnavailable,
                Dependency::PaymentGateway => Code::PaymentGatewayUnavailable,
                Dependency::Vendor => Code::VendorUnavailable,
                Dependency::Capacity => Code::Overloaded,
            },
            Self::Damaged { .. } => Code::LiveRecordDamaged,
            Self::Internal { .. } => Code::Internal,
        }
    }

    /// Whether the same request may succeed later without any change.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::TooMany { .. })
    }

    /// The error and its causes, for the log and for operators. Never for a caller.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        if matches!(self, Self::Unavailable { source: None, .. }) {
            text.push_str(": no answer in time");
        }
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }

    /// The sentence for the caller. Never a source's text.
    #[must_use]
    pub fn public_message(&self) -> Cow<'static, str> {
        match self {
            Self::Refused { message, .. } | Self::TooMany { message, .. } => message.clone(),
            Self::Invalid { fields } => {
                Cow::Owned(fields.iter().map(|f| format!("{}: {}", f.field, f.message)).collect::<Vec<_>>().join("\n"))
            }
            Self::Transition { .. } | Self::Decided { .. } => Cow::Owned(self.to_string()),
            Self::Unavailable { dependency: Dependency::Capacity, .. } => {
                "the service is busy, please try again".into()
            }
            Self::Unavailable { .. } => "the service is temporarily unavailable, please try again".into(),
            Self::Damaged { .. } => "the sale needs an operator's attention, please try again later".into(),
            Self::Internal { .. } => "internal server error".into(),
        }
    }
}
