//! Every route, in one list, by audience. A route is registered together with its OpenAPI entry, so they cannot part.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tower::Layer;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::{Problem, finish};
use super::{admin, auth, buyer, docs, health, layer, openapi, payment, seller, voucher};
use crate::app::AppState;
use crate::error::{Code, Error};

/// Room for a form's fields and boundaries beside its file.
const FORM_OVERHEAD_BYTES: usize = 64 * 1024;
/// Room for a thousand codes with links: as much as a vendor's own answer may have.
const DELIVERY_BYTES_MAX: usize = 1024 * 1024;

/// Routes that are answered at once.
fn quick() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        // anybody
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(auth::sign_up))
        .routes(routes!(auth::sign_in))
        // anybody who is signed in
        .routes(routes!(auth::sign_out))
        .routes(routes!(auth::check))
        // buyers
        .routes(routes!(buyer::list_open_events))
        .routes(routes!(buyer::show_event))
        .routes(routes!(buyer::show_status))
        .routes(routes!(buyer::show_own_reservation))
        .routes(routes!(buyer::show_own_codes))
        .routes(routes!(buyer::list_own_orders))
        .routes(routes!(buyer::cancel_own_reservation))
        .routes(routes!(buyer::pay))
        .routes(routes!(buyer::show_payment))
        // sellers
        .routes(routes!(seller::is_verified))
        .routes(routes!(seller::request_verification))
        .routes(routes!(seller::list_own_events))
        .routes(routes!(seller::show_own_event))
        .routes(routes!(seller::update_event))
        .routes(routes!(seller::list_products))
        .routes(routes!(seller::show_product))
        .routes(routes!(seller::delete_product))
        .routes(routes!(seller::pause_sale))
        .routes(routes!(seller::resume_sale))
        .routes(routes!(seller::show_sale))
        .routes(routes!(seller::restock_product))
        .routes(routes!(seller::cancel_order))
        .routes(routes!(seller::list_orders))
        .routes(routes!(seller::show_analytics))
        .routes(routes!(seller::show_product_sales))
        .routes(routes!(seller::show_series))
        .routes(routes!(seller::export_csv))
        .routes(routes!(seller::export_ndjson))
        .routes(routes!(seller::create_webhook, seller::list_webhooks))
        .routes(routes!(seller::show_webhook, seller::update_webhook, seller::delete_webhook))
        .routes(routes!(seller::rotate_webhook_secret))
        .routes(routes!(seller::list_deliveries))
        .routes(routes!(seller::replay_delivery))
        // administrators
        .routes(routes!(admin::list_pending_verifications))
        .routes(routes!(admin::show_verification))
        .routes(routes!(admin::approve_verification))
        .routes(routes!(admin::reject_verification))
        .routes(routes!(admin::cancel_any_order))
        .routes(routes!(admin::block_account))
        .routes(routes!(admin::unblock_account))
        .merge(vouchers())
}

/// Vouchers: for administrators, and for those who order for a client.
fn vouchers() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(voucher::enter_vendor, voucher::list_vendors))
        .routes(routes!(voucher::set_connection, voucher::show_connection, voucher::remove_connection))
        .routes(routes!(voucher::enter_client, voucher::list_clients))
        .routes(routes!(voucher::change_client))
        .routes(routes!(voucher::enter_voucher_product, voucher::list_voucher_products))
        .routes(routes!(voucher::show_availability))
        .routes(routes!(voucher::tag_vouchers))
        .routes(routes!(voucher::untag_vouchers))
        .routes(routes!(voucher::pump_vouchers))
        .routes(routes!(voucher::block_voucher))
        .routes(routes!(voucher::unblock_voucher))
        .routes(routes!(voucher::change_expiry))
        .routes(routes!(voucher::reset_voucher_order))
        .routes(routes!(voucher::order_vouchers, voucher::list_voucher_orders))
        .routes(routes!(voucher::show_voucher_order))
        .routes(routes!(voucher::cancel_voucher_order))
        .routes(routes!(voucher::show_codes))
        .routes(routes!(voucher::complete_voucher_order))
        .routes(routes!(voucher::list_imports))
        .routes(routes!(voucher::show_import))
        .routes(routes!(voucher::show_import_report))
        .routes(routes!(voucher::show_template_xlsx))
        .routes(routes!(voucher::show_template_csv))
        .routes(routes!(voucher::make_prefetch_job, voucher::list_prefetch_jobs))
        .routes(routes!(voucher::show_prefetch_job))
        .routes(routes!(voucher::kill_prefetch_job))
}

/// Routes that wait for a vendor, or take what one has delivered.
fn deliveries() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(voucher::ask_about_batch)).routes(routes!(voucher::resolve_batch))
}

/// Routes that the payment gateway calls.
fn callbacks() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(payment::receive_callback))
}

/// The payment gateway of trials, where it is configured.
fn sandbox() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(payment::show_sandbox, payment::press_sandbox))
}

/// The purchase, whose script knows the buyer's key: no database is asked.
fn purchases() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(buyer::purchase))
}

/// Routes that walk over a whole event.
fn long() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(seller::open_sale))
        .routes(routes!(seller::end_sale))
        .routes(routes!(seller::delete_event))
}

/// Routes whose answers go on. The deadline is for the beginning of an answer, and body limits are for what comes in.
fn streams() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(buyer::stream_event))
}

/// Routes that take a banner.
fn banner_uploads() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(seller::create_event))
}

/// Routes that take a product's picture.
fn product_uploads() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(seller::register_product)).routes(routes!(seller::update_product))
}

/// Routes that take a spreadsheet.
fn spreadsheet_uploads() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(voucher::import_vouchers))
}

/// The OpenAPI document.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    let all = quick()
        .merge(purchases())
        .merge(callbacks())
        .merge(sandbox())
        .merge(long())
        .merge(streams())
        .merge(banner_uploads())
        .merge(product_uploads())
        .merge(spreadsheet_uploads())
        .merge(deliveries());
    let mut document = OpenApiRouter::with_openapi(openapi::Document::openapi()).merge(all).split_for_parts().1;
    openapi::mention_keys(&mut document);
    document
}

/// The whole API with its layers, and its document.
pub fn build(app: AppState) -> (Router, utoipa::openapi::OpenApi) {
    let config = &app.config().server;
    let media = &app.config().media;
    let deadline = |ms| from_fn_with_state(layer::Deadline(Duration::from_millis(ms)), layer::enforce_deadline);
    let body = DefaultBodyLimit::max;
    let short = deadline(config.request_timeout_ms);
    let long_deadline = deadline(config.long_request_timeout_ms);
    let once = from_fn_with_state(app.clone(), layer::answer_once);
    let (banner_bytes, product_bytes) = (media.banner_bytes_max, media.product_bytes_max);
    let mut at_once = quick();
    if app.payments().sandbox().is_some() {
        at_once = at_once.merge(sandbox());
    }
    let callback_bytes_max = app.config().payment.callback_bytes_max;
    let routes = at_once
        .layer(once.clone())
        .merge(purchases())
        .merge(streams())
        .layer(short.clone())
        .layer(body(config.body_bytes_max))
        .merge(callbacks().layer(short).layer(body(callback_bytes_max)))
        .merge(long().layer(once.clone()).layer(long_deadline.clone()).layer(body(config.body_bytes_max)))
        .merge(deliveries().layer(once.clone()).layer(long_deadline.clone()).layer(body(DELIVERY_BYTES_MAX)))
        .merge(
            banner_uploads()
                .layer(once.clone())
                .layer(long_deadline.clone())
                .layer(body(banner_bytes + FORM_OVERHEAD_BYTES)),
        )
        .merge(
            spreadsheet_uploads()
                .layer(once.clone())
                .layer(long_deadline.clone())
                .layer(body(app.config().vouchers.import_bytes_max + FORM_OVERHEAD_BYTES)),
        )
        .merge(product_uploads().layer(once).layer(long_deadline).layer(body(product_bytes + FORM_OVERHEAD_BYTES)));
    let (router, mut document) =
        OpenApiRouter::with_openapi(openapi::Document::openapi()).merge(routes).split_for_parts();
    openapi::mention_keys(&mut document);
    let mut router = router.merge(docs::routes(&document));
    if let Some(dir) = app.media().served_dir() {
        let files = ServeDir::new(dir).append_index_html_on_directories(false);
        // A picture's key is never used again for another picture.
        let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
        let layer = SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, forever);
        router = router.nest_service("/media", layer.layer(files));
    }
    let idle = Duration::from_millis(config.body_idle_timeout_ms);
    let allowed = Arc::new(config.allowed_origins.clone());
    // The last layer is the outermost one; `layer/mod.rs` gives the reasons in order.
    let router = router
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(idle, layer::idle_timeout))
        .layer(from_fn_with_state(Arc::clone(&allowed), layer::refuse_cross_site))
        .layer(layer::cors(&allowed))
        .layer(from_fn(layer::security_headers))
        .layer(from_fn(layer::count))
        .layer(CatchPanicLayer::custom(layer::panicked))
        .layer(from_fn(finish))
        .layer(from_fn(layer::identify))
        .with_state(app);
    (router, document)
}

/// The metrics listener: `/metrics`, and nothing else.
pub fn metrics(recorder: &'static PrometheusHandle) -> Router {
    Router::new().route("/metrics", get(move || async move { recorder.render() }))
}

async fn not_found() -> Problem {
    Error::refused(Code::RouteNotFound, "there is no such route").into()
}

async fn method_not_allowed() -> Response {
    use axum::response::IntoResponse;
    Problem::from(Error::refused(Code::MethodNotAllowed, "the route does not have this method")).into_response()
}
