//! What the routes of prefetch name. What is not there is refused before a body is read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::{path_id, path_text};
use crate::app::AppState;
use crate::domain::ids::PrefetchJobId;
use crate::domain::voucher::Vendor;
use crate::error::Error;
use crate::http::problem::Problem;

pub(in crate::http) const NO_JOB: &str = "prefetch job not found";

/// The vendor of the path parameter `vendorId`.
#[derive(Debug)]
pub(in crate::http) struct NamedVendor(pub Vendor);

impl FromRequestParts<AppState> for NamedVendor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let id = path_id(&path_text(parts, app, "vendorId").await, "vendor not found")?;
        Ok(Self(app.vouchers().vendor(id).await?))
    }
}

/// The batch of the path parameters `jobId` and `batch`.
#[derive(Debug)]
pub(in crate::http) struct NamedBatch {
    pub job: PrefetchJobId,
    pub number: u32,
}

impl FromRequestParts<AppState> for NamedBatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let job = path_id(&path_text(parts, app, "jobId").await, NO_JOB)?;
        let number = path_id(&path_text(parts, app, "batch").await, "the job has no such batch")?;
        if app.prefetch().job(job).await?.batch(number).is_none() {
            return Err(Error::not_found("the job has no such batch").into());
        }
        Ok(Self { job, number })
    }
}
