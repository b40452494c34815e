//! Batches of prefetch jobs whose outcome nobody could find out: an administrator sees to them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use utoipa::ToSchema;

use super::connections::secret;
use super::prefetch_shapes::PrefetchJobBody;
use crate::app::AppState;
use crate::error::{Error, FieldError, Result};
use crate::http::extract::{Admin, NamedBatch, ValidJson};
use crate::http::problem::{Answer, ProblemBody};
use crate::vouchers::prefetch::{BoughtVoucher, Told};

/// Bytes of a code, a pin, a link or a reference.
const SECRET_BYTES_MAX: usize = 4096;

/// What a vendor has told an administrator of a batch.
#[derive(Deserialize, Validate, ToSchema)]
pub(in crate::http) struct ResolveRequest {
    /// `SOLD`, with what was sold; or `NOTHING_SOLD`.
    #[garde(length(max = 16))]
    outcome: String,
    /// What was sold: 1 to 1000 vouchers, each with a code or a link. It comes into stock.
    #[serde(default)]
    #[garde(length(max = 1000))]
    vouchers: Vec<SoldVoucher>,
    /// Who said so, and how: it is kept with the batch. No code belongs into it.
    #[garde(inner(length(chars, max = 500)))]
    note: Option<String>,
}

/// A voucher that a vendor has sold.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct SoldVoucher {
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    code: Option<SecretString>,
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    pin: Option<SecretString>,
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    claim_url: Option<SecretString>,
    /// The vendor's name for it.
    #[serde(default, deserialize_with = "secret")]
    #[schema(value_type = Option<String>)]
    reference: Option<SecretString>,
    /// Without it, a year from now.
    expires_at: Option<DateTime<Utc>>,
}

impl SoldVoucher {
    /// What is wrong is said without what it is.
    fn read(self, index: usize) -> Result<BoughtVoucher> {
        let present = |text: Option<SecretString>| text.filter(|text| !text.expose_secret().is_empty());
        let (code, pin, claim_url, reference) =
            (present(self.code), present(self.pin), present(self.claim_url), present(self.reference));
        let refused = |message: &str| {
            let (field, message) = (format!("vouchers[{index}]"), message.to_owned());
            Error::Invalid { fields: vec![FieldError { field, message }] }
        };
        if code.is_none() && claim_url.is_none() {
            return Err(refused("must have a code or a claimUrl"));
        }
        let all = [&code, &pin, &claim_url, &reference];
        if all.into_iter().flatten().any(|text| text.expose_secret().len() > SECRET_BYTES_MAX) {
            return Err(refused("is too long: a part has at most 4096 bytes"));
        }
        Ok(BoughtVoucher { code, pin, claim_url, reference, expires_at: self.expires_at })
    }
}

impl ResolveRequest {
    fn told(outcome: &str, vouchers: Vec<SoldVoucher>) -> Result<Told> {
        match outcome {
            "SOLD" if vouchers.is_empty() => Err(Error::invalid("vouchers", "are required: what was sold?")),
            "SOLD" => {
                let read = |(index, one): (usize, SoldVoucher)| one.read(index);
                Ok(Told::Sold(vouchers.into_iter().enumerate().map(read).collect::<Result<_>>()?))
            }
            "NOTHING_SOLD" if vouchers.is_empty() => Ok(Told::Nothing),
            "NOTHING_SOLD" => Err(Error::invalid("vouchers", "must be left away: nothing was sold")),
            _ => Err(Error::invalid("outcome", "must be SOLD or NOTHING_SOLD")),
        }
    }
}

/// Asks the vendor of an unresolved batch once more what became of it, and records what it says: what was sold comes into
/// stock. Nothing is ordered. Of a batch that was resolved nothing is asked.
#[utoipa::path(post, path = "/api/admin/vouchers/prefetch-jobs/{jobId}/batches/{batch}/ask", tag = "vouchers",
    params(("jobId" = String, Path, description = "Job id"), ("batch" = u32, Path, description = "Number of the batch")),
    responses(
    (status = 200, description = "The job as it is now", body = PrefetchJobBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such job, or batch", body = ProblemBody),
    (status = 409, description = "voucher_state: the batch is not unresolved, its vendor has no connection or is not ready", body = ProblemBody),
    (status = 503, description = "vendor_unavailable, or a store is away: ask again", body = ProblemBody)))]
pub(in crate::http) async fn ask_about_batch(
    State(app): State<AppState>,
    Admin(session): Admin,
    NamedBatch { job, number }: NamedBatch,
) -> Answer<Json<PrefetchJobBody>> {
    let (prefetch, admin) = (Arc::clone(app.prefetch()), session.user());
    // Finished even if the caller hangs up.
    let work = async move { prefetch.ask_again(admin, job, number).await };
    Ok(Json(app.tasks().complete("asking about a batch", work).await?.into()))
}

/// Records what the vendor has told you of an unresolved batch; what was sold comes into stock. Who said so is kept with the
/// batch. Nothing is ordered: what is missing is bought by a new job.
#[utoipa::path(post, path = "/api/admin/vouchers/prefetch-jobs/{jobId}/batches/{batch}/resolve", tag = "vouchers",
    request_body = ResolveRequest,
    params(("jobId" = String, Path, description = "Job id"), ("batch" = u32, Path, description = "Number of the batch")),
    responses(
    (status = 200, description = "The job as it is now", body = PrefetchJobBody),
    (status = 400, description = "A field breaks a rule", body = ProblemBody),
    (status = 401, description = "Not signed in", body = ProblemBody),
    (status = 403, description = "Not an administrator", body = ProblemBody),
    (status = 404, description = "No such job, or batch", body = ProblemBody),
    (status = 409, description = "voucher_state: the batch is not unresolved; or codes of it are in stock, and nothing is to have been sold", body = ProblemBody),
    (status = 413, description = "The body is too large", body = ProblemBody),
    (status = 415, description = "Not JSON", body = ProblemBody),
    (status = 503, description = "A store is away: resolve it again", body = ProblemBody)))]
pub(in crate::http) async fn resolve_batch(
    State(app): State<AppState>,
    Admin(session): Admin,
    NamedBatch { job, number }: NamedBatch,
    ValidJson(request): ValidJson<ResolveRequest>,
) -> Answer<Json<PrefetchJobBody>> {
    let ResolveRequest { outcome, vouchers, note } = request;
    let told = ResolveRequest::told(&outcome, vouchers)?;
    let (prefetch, admin) = (Arc::clone(app.prefetch()), session.user());
    let work = async move { prefetch.resolve(admin, (job, number), told, note).await };
    Ok(Json(app.tasks().complete("resolving a batch", work).await?.into()))
}
