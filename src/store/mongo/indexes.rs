//! The indexes that the migrations declare, compared with those that the database has.

use bson::{Bson, Document};
use futures::TryStreamExt;
use mongodb::IndexModel;
use mongodb::error::ErrorKind;

use super::Mongo;
use super::error::within;
use super::migrate;
use crate::error::Result;

/// An index that a migration declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredIndex {
    /// Its collection.
    pub collection: String,
    /// As it stands in the migration: `name`, `key`, and what else there is.
    pub spec: Document,
}

impl DeclaredIndex {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.spec.get_str("name").unwrap_or_default()
    }

    /// What the order and the direction of its fields, and its guarantees, are compared by.
    fn essence(&self) -> (Vec<(String, i64)>, bool, Option<i64>) {
        let key = self.spec.get_document("key").map(fields).unwrap_or_default();
        let expiry_s = self.spec.get("expireAfterSeconds").and_then(integer);
        (key, self.spec.get_bool("unique").unwrap_or(false), expiry_s)
    }
}

fn fields(key: &Document) -> Vec<(String, i64)> {
    key.iter().map(|(field, direction)| (field.clone(), integer(direction).unwrap_or_default())).collect()
}

/// Servers and files spell the same number in different types.
fn integer(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) if number.fract() == 0.0 => format!("{number:.0}").parse().ok(),
        _ => None,
    }
}

impl Mongo {
    /// Indexes that applied migrations declare and that the database does not have, whatever it calls them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn missing_indexes(&self) -> Result<Vec<DeclaredIndex>> {
        let applied: Vec<String> =
            self.migrations().await?.into_iter().filter(|state| state.applied).map(|state| state.id).collect();
        let declared = migrate::declared_indexes(&applied)?;
        let mut collections: Vec<&str> = declared.iter().map(|index| index.collection.as_str()).collect();
        collections.dedup();
        let mut present = Vec::new();
        for collection in collections {
            for index in self.indexes_of(collection).await? {
                let options = index.options.unwrap_or_default();
                let expiry_s = options.expire_after.map(|time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
                let essence = (fields(&index.keys), options.unique.unwrap_or(false), expiry_s);
                present.push((collection.to_owned(), essence));
            }
        }
        let missing = |index: &DeclaredIndex| !present.contains(&(index.collection.clone(), index.essence()));
        Ok(declared.into_iter().filter(missing).collect())
    }
    async fn indexes_of(&self, collection: &str) -> Result<Vec<IndexModel>> {
        const NO_SUCH_COLLECTION: i32 = 26;
        let rows = self.database.collection::<Document>(collection);
        let call = async {
            match rows.list_indexes().await {
                Ok(cursor) => cursor.try_collect().await,
                Err(error) => match error.kind.as_ref() {
                    ErrorKind::Command(refused) if refused.code == NO_SUCH_COLLECTION => Ok(Vec::new()),
                    _ => Err(error),
                },
            }
        };
        within(self.deadline, "looking at indexes", call).await
    }
}
