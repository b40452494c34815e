//! Every metric: its name, its unit, and its help text.

use std::sync::OnceLock;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

macro_rules! metrics_table {
    ($($kind:ident $name:ident = $text:literal, $unit:expr, $help:literal;)+) => {
        $(#[doc = $help] pub const $name: &str = $text;)+

        fn describe() {
            $(metrics_table!(@describe $kind $name, $unit, $help);)+
        }

        /// The names of all metrics.
        pub const ALL: &[&str] = &[$($name,)+];
    };
    (@describe counter $name:ident, $unit:expr, $help:literal) => { describe_counter!($name, $unit, $help) };
    (@describe gauge $name:ident, $unit:expr, $help:literal) => { describe_gauge!($name, $unit, $help) };
    (@describe histogram $name:ident, $unit:expr, $help:literal) => { describe_histogram!($name, $unit, $help) };
}

metrics_table! {
    counter PURCHASES = "orbit_purchases_total", Unit::Count, "Purchase attempts, by outcome.";
    histogram PURCHASE_SECONDS = "orbit_purchase_seconds", Unit::Seconds, "Time that the live store took to decide a purchase.";
    counter PRODUCTS_PROJECTED = "orbit_products_projected_total", Unit::Count, "Products written into the live store by openings.";
    counter ORDERS_SETTLED = "orbit_orders_settled_total", Unit::Count, "Reservations confirmed as orders by settlements, repeats included.";
    counter RELEASES = "orbit_reservations_released_total", Unit::Count, "Reservations whose units went back, cancelled or expired.";
    counter PAYMENTS = "orbit_payments_total", Unit::Count, "Payments that were applied to their reservations, by outcome.";
    counter PAYMENT_CALLBACKS = "orbit_payment_callbacks_total", Unit::Count, "Callbacks of the payment gateway, by what became of them.";
    counter REFUNDS = "orbit_refunds_total", Unit::Count, "Refunds, by outcome; each one that was given up needs a person.";
    gauge PAYMENTS_UNAPPLIED = "orbit_payments_unapplied", Unit::Count, "Payments that have succeeded and are not applied to their reservations yet.";
    gauge REFUNDS_STUCK = "orbit_refunds_stuck", Unit::Count, "Refunds that were given up and wait for a person.";
    counter SCHEDULED = "orbit_sales_scheduled_total", Unit::Count, "What the schedule did: sales opened, ended, and openings refused.";
    counter VOUCHER_CLAIMS_REPAIRED = "orbit_voucher_claims_repaired_total", Unit::Count, "Claims on vouchers that were left behind by a process.";
    gauge VOUCHER_DRIFT = "orbit_voucher_drift", Unit::Count, "Vouchers that the last pump found in another pool than theirs.";
    counter DEAD_LETTERS = "orbit_dead_letters_total", Unit::Count, "Reservations that could not be settled; each one needs a person.";
    counter REPAIRS = "orbit_repairs_total", Unit::Count, "Sales that recovery repaired, by kind.";
    histogram SETTLE_LAG_SECONDS = "orbit_settle_lag_seconds", Unit::Seconds, "Time from a reservation to its order in the database.";
    gauge SALES_HELD = "orbit_sales_held", Unit::Count, "Sales that were paused because the live store had lost something, and that nobody has resumed yet.";
    counter REQUESTS = "orbit_http_requests_total", Unit::Count, "HTTP requests answered, by status class.";
    gauge STREAMS = "orbit_streams", Unit::Count, "Open streams of live stock.";
    gauge CONNECTIONS = "orbit_http_connections", Unit::Count, "Open HTTP connections.";
    counter WEBHOOK_MESSAGES = "orbit_webhook_messages_total", Unit::Count, "Messages written for sellers, repeats included.";
    counter WEBHOOK_ATTEMPTS = "orbit_webhook_attempts_total", Unit::Count, "Attempts to deliver a message, by outcome.";
    counter WEBHOOK_DELIVERIES_FAILED = "orbit_webhook_deliveries_failed_total", Unit::Count, "Messages that an endpoint did not take in any attempt.";
    counter PREFETCH_UNITS = "orbit_prefetch_units_total", Unit::Count, "Voucher codes that were ordered of vendors, by outcome; unresolved ones need a person.";
    gauge WEBHOOK_IN_FLIGHT = "orbit_webhook_attempts_in_flight", Unit::Count, "Attempts to deliver a message that are being made.";
    counter REVOCATION_FAILURES = "orbit_revocation_read_failures_total", Unit::Count, "Times that the newest revocations could not be read.";
    counter IMAGES_DELETED = "orbit_images_deleted_total", Unit::Count, "Images removed because nothing shows them any more.";
}

/// The process's metrics. Recording starts with the first call.
pub fn recorder() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];
            let lags = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];
            let builder = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Full(PURCHASE_SECONDS.to_owned()), &buckets)
                .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(SETTLE_LAG_SECONDS.to_owned()), &lags))
                .ok()?;
            let handle = builder.install_recorder().ok()?;
            describe();
            Some(handle)
        })
        .as_ref()
}
