//! Rekeying: what is sealed with an older key, or not at all, is sealed with the newest.

use super::Vouchers;
use crate::error::Result;

/// Units in memory at once.
const UNITS_AT_ONCE: u32 = 500;

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rekeyed {
    /// Units that were looked at.
    pub units: u64,
    /// Of those, units whose secrets were sealed anew.
    pub sealed: u64,
}

impl Vouchers {
    /// Seals every unit's secrets with the newest key, in the order of their numbers; `progress` is told after each page. Can
    /// be interrupted and repeated, while the service runs.
    ///
    /// # Errors
    /// When a key is missing that something is sealed with, or the database does not answer.
    pub async fn rekey(&self, mut progress: impl FnMut(Rekeyed)) -> Result<Rekeyed> {
        let (mut done, mut after) = (Rekeyed::default(), None);
        loop {
            let page = self.durable.voucher_units.secrets_page(after, UNITS_AT_ONCE).await?;
            let Some((last, _)) = page.last() else { return Ok(done) };
            after = Some(*last);
            for (id, sealed) in page {
                done.units += 1;
                if !self.keyring.is_current(&sealed) {
                    let anew = self.keyring.seal(id, &self.keyring.open(id, &sealed)?)?;
                    // Of two that do this at once, one is first, and both have done it.
                    done.sealed += u64::from(self.durable.voucher_units.reseal(id, &sealed, &anew).await?);
                }
            }
            progress(done);
        }
    }
}
