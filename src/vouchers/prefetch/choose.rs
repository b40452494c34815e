//! Which vendor to buy from: all of them are asked what they have, at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;

use super::Prefetch;
use super::vendor::VendorApi;
use crate::domain::ids::VendorId;
use crate::domain::prefetch::{Candidate, Offer, PrefetchJob, best_offer};

/// The vendor to buy from.
#[derive(Debug)]
pub(super) struct Chosen {
    pub vendor: VendorId,
    pub api: Arc<dyn VendorApi>,
}

impl Prefetch {
    /// The best vendor that says that it has every unit that is still to be ordered, but for those that have just failed.
    pub(super) async fn choose(&self, job: &PrefetchJob, resting: &BTreeSet<VendorId>) -> Option<Chosen> {
        let willing = job.willing().filter(|candidate| !resting.contains(&candidate.vendor));
        let asked = join_all(willing.map(|candidate| self.offer(job, candidate))).await;
        let answered: Vec<(Offer, Arc<dyn VendorApi>)> = asked.into_iter().flatten().collect();
        let offers: Vec<Offer> = answered.iter().map(|(offer, _)| *offer).collect();
        let Offer { vendor, discount_bp, .. } = best_offer(&offers, job.to_order())?;
        let (_, api) = answered.into_iter().find(|(offer, _)| offer.vendor == vendor)?;
        tracing::debug!(job = %job.id, %vendor, discount_bp, "vendor chosen");
        Some(Chosen { vendor, api })
    }

    /// What a vendor offers; `None` if it does not say.
    async fn offer(&self, job: &PrefetchJob, candidate: &Candidate) -> Option<(Offer, Arc<dyn VendorApi>)> {
        let vendor = candidate.vendor;
        let api = self.api(vendor).await?;
        match api.available(&candidate.product_ref, job.denomination).await {
            Ok(available) => {
                let discount_bp = available.discount_bp.unwrap_or(candidate.discount_bp);
                Some((Offer { vendor, units: available.units, discount_bp }, api))
            }
            Err(error) => {
                tracing::warn!(job = %job.id, %vendor, error = %error.chain(), "a vendor does not say what it has");
                None
            }
        }
    }

    /// The way to a vendor.
    pub(super) async fn api(&self, vendor: VendorId) -> Option<Arc<dyn VendorApi>> {
        match self.vendors.api(vendor).await {
            Ok(Some(api)) => return Some(api),
            Ok(None) => tracing::warn!(%vendor, "there is no way to a vendor that a prefetch job names"),
            Err(error) => tracing::warn!(%vendor, error = %error.chain(), "the way to a vendor cannot be found"),
        }
        None
    }
}
