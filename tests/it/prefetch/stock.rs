//! Stock of a test: a collection with one document for each code.

use std::sync::atomic::{AtomicU32, Ordering};

use bson::{Document, doc};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use mongodb::Collection;
use mongodb::error::ErrorKind;
use orbit::config::{Config, ExposeSecret};
use orbit::error::{Dependency, Error, Result};
use orbit::vouchers::prefetch::{Added, BoughtBatch, Stock};
use tokio::sync::Semaphore;

/// Codes in a database. After each batch it waits for a permit: what happens in between can be cut off there.
pub struct MongoStock {
    codes: Collection<Document>,
    pub permits: Semaphore,
    /// Batches that are added, and of which nobody is told.
    pub faults: AtomicU32,
}

impl MongoStock {
    pub async fn new(config: &Config) -> Self {
        let client = mongodb::Client::with_uri_str(config.mongo.uri.expose_secret()).await.unwrap();
        let codes = client.database(&config.mongo.database).collection("test_stock");
        Self { codes, permits: Semaphore::new(Semaphore::MAX_PERMITS), faults: AtomicU32::new(0) }
    }

    pub async fn units(&self) -> u64 {
        self.codes.count_documents(doc! {}).await.unwrap()
    }

    /// Every code with what it came with.
    pub async fn all(&self) -> Vec<Document> {
        self.codes.find(doc! {}).await.unwrap().try_collect().await.unwrap()
    }
}

impl Stock for MongoStock {
    fn add(&self, batch: BoughtBatch) -> BoxFuture<'_, Result<Added>> {
        Box::pin(async move {
            let row = |voucher: &orbit::vouchers::prefetch::BoughtVoucher| {
                doc! {
                    "_id": voucher.code.as_ref().unwrap().expose_secret(),
                    "pin": voucher.pin.as_ref().map(|pin| pin.expose_secret().to_owned()),
                    "expiresAt": voucher.expires_at.map(bson::DateTime::from_chrono),
                    "externalId": &batch.external_id,
                    "job": batch.job.to_string(),
                    "vendor": batch.vendor.to_string(),
                    "client": batch.client.map(|client| client.to_string()),
                }
            };
            if let Err(error) = self.codes.insert_many(batch.vouchers.iter().map(row)).ordered(false).await {
                let ErrorKind::InsertMany(failed) = error.kind.as_ref() else { panic!("{error}") };
                assert!(failed.write_errors.as_ref().unwrap().iter().all(|one| one.code == 11_000), "{error}");
            }
            let units = self.codes.count_documents(doc! { "externalId": &batch.external_id }).await.unwrap();
            self.permits.acquire().await.unwrap().forget();
            if self.faults.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                return Err(Error::timed_out(Dependency::Database, "adding codes"));
            }
            Ok(Added { units: u32::try_from(units).unwrap() })
        })
    }
}
