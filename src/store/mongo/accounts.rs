//! Collection `users`.

use std::collections::HashSet;
use std::time::Duration;

use bson::{DateTime, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::error::{unless_duplicate, within};
use crate::domain::account::{Account, EmailAddress, PasswordHash, Role, Standing};
use crate::domain::ids::UserId;
use crate::error::Result;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    first_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_name: Option<String>,
    email_id: EmailAddress,
    password: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<i32>,
    role: Role,
    is_email_verified: bool,
    is_active: bool,
    is_approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_request_at: Option<DateTime>,
    created_at: DateTime,
    updated_at: DateTime,
}

impl From<AccountDocument> for Account {
    fn from(document: AccountDocument) -> Self {
        Self {
            id: UserId::from_bytes(document.id.bytes()),
            first_name: document.first_name,
            last_name: document.last_name,
            email: document.email_id,
            password: PasswordHash(document.password),
            age: document.age,
            standing: Standing {
                role: document.role,
                active: document.is_active,
                approved: document.is_approved,
                email_verified: document.is_email_verified,
            },
            next_request_at: document.next_request_at.map(DateTime::to_chrono),
            created_at: document.created_at.to_chrono(),
            updated_at: document.updated_at.to_chrono(),
        }
    }
}

impl From<&Account> for AccountDocument {
    fn from(account: &Account) -> Self {
        Self {
            id: ObjectId::from_bytes(account.id.bytes()),
            first_name: account.first_name.clone(),
            last_name: account.last_name.clone(),
            email_id: account.email.clone(),
            password: account.password.0.clone(),
            age: account.age,
            role: account.standing.role,
            is_email_verified: account.standing.email_verified,
            is_active: account.standing.active,
            is_approved: account.standing.approved,
            next_request_at: account.next_request_at.map(DateTime::from_chrono),
            created_at: DateTime::from_chrono(account.created_at),
            updated_at: DateTime::from_chrono(account.updated_at),
        }
    }
}

#[derive(Debug, Deserialize)]
struct IdOnly {
    #[serde(rename = "_id")]
    id: ObjectId,
}

/// Who may sign in. `emailId` is unique.
#[derive(Debug)]
pub struct Accounts {
    collection: Collection<AccountDocument>,
    deadline: Duration,
}

impl Accounts {
    pub(super) fn new(database: &Database, deadline: Duration) -> Self {
        Self { collection: database.collection("users"), deadline }
    }

    /// Adds an account; false if the address has one already.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(&self, account: &Account) -> Result<bool> {
        let document = AccountDocument::from(account);
        let call = self.collection.insert_one(document);
        Ok(unless_duplicate(self.deadline, "adding an account", call).await?.is_some())
    }

    /// The account with this address.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_email(&self, email: &EmailAddress) -> Result<Option<Account>> {
        let call = self.collection.find_one(doc! { "emailId": email.as_str() });
        Ok(within(self.deadline, "finding an account", call).await?.map(Account::from))
    }

    /// The account with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: UserId) -> Result<Option<Account>> {
        let call = self.collection.find_one(doc! { "_id": ObjectId::from_bytes(id.bytes()) });
        Ok(within(self.deadline, "reading an account", call).await?.map(Account::from))
    }

    /// What the account with this id may do.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn standing(&self, id: UserId) -> Result<Option<Standing>> {
        Ok(self.by_id(id).await?.map(|account| account.standing))
    }

    /// Which of these accounts are active and approved.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn approved_among(&self, ids: &[UserId]) -> Result<HashSet<UserId>> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let mut ids: Vec<_> = ids.iter().map(|id| ObjectId::from_bytes(id.bytes())).collect();
        ids.sort_unstable();
        ids.dedup();
        let filter = doc! { "_id": { "$in": ids }, "isActive": true, "isApproved": true };
        let documents = self.collection.clone_with_type::<IdOnly>();
        let find = documents.find(filter).projection(doc! { "_id": 1 });
        let found: Vec<IdOnly> =
            within(self.deadline, "reading accounts", async { find.await?.try_collect().await }).await?;
        Ok(found.into_iter().map(|account| UserId::from_bytes(account.id.bytes())).collect())
    }

    /// Blocks or unblocks an account, and returns it as it is then.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn set_active(&self, id: UserId, active: bool) -> Result<Option<Account>> {
        self.update(id, doc! { "$set": { "isActive": active } }).await
    }

    /// Approves a seller, and returns the account as it is then.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn approve(&self, id: UserId) -> Result<Option<Account>> {
        self.update(id, doc! { "$set": { "isApproved": true } }).await
    }

    /// Makes a rejected seller wait until `at`, or longer if a later rejection said so already.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn defer_requests(&self, id: UserId, at: chrono::DateTime<chrono::Utc>) -> Result<Option<Account>> {
        self.update(id, doc! { "$max": { "nextRequestAt": DateTime::from_chrono(at) } }).await
    }

    async fn update(&self, id: UserId, mut change: bson::Document) -> Result<Option<Account>> {
        change.insert("$currentDate", doc! { "updatedAt": true });
        let call = self
            .collection
            .find_one_and_update(doc! { "_id": ObjectId::from_bytes(id.bytes()) }, change)
            .return_document(ReturnDocument::After);
        Ok(within(self.deadline, "changing an account", call).await?.map(Account::from))
    }
}
