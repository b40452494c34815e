//! Collection `webhookEndpoints`.

use std::time::Duration;

use bson::{DateTime, Document, doc, oid::ObjectId};
use futures::TryStreamExt;
use mongodb::options::ReturnDocument;
use mongodb::{Collection, Database};
use serde::{Deserialize, Serialize};

use super::super::error::{unreadable, within};
use crate::domain::ids::{EventId, UserId, WebhookId};
use crate::domain::message::{Listener, MessageKind};
use crate::domain::webhook::{PreviousSecret, Webhook, WebhookState};
use crate::error::{Error, Result};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndpointDocument {
    #[serde(rename = "_id")]
    id: ObjectId,
    seller_id: ObjectId,
    url: String,
    kinds: Vec<String>,
    state: String,
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<PreviousDocument>,
    created_at: DateTime,
    updated_at: DateTime,
}

#[derive(Debug, Serialize, Deserialize)]
struct PreviousDocument {
    sealed: String,
    until: DateTime,
}

impl From<&Webhook> for EndpointDocument {
    fn from(webhook: &Webhook) -> Self {
        let previous = webhook.previous.as_ref();
        Self {
            id: ObjectId::from_bytes(webhook.id.bytes()),
            seller_id: ObjectId::from_bytes(webhook.seller.bytes()),
            url: webhook.url.clone(),
            kinds: webhook.kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
            state: webhook.state.as_str().to_owned(),
            secret: webhook.secret.clone(),
            previous: previous.map(|previous| PreviousDocument {
                sealed: previous.sealed.clone(),
                until: DateTime::from_chrono(previous.until),
            }),
            created_at: DateTime::from_chrono(webhook.created_at),
            updated_at: DateTime::from_chrono(webhook.updated_at),
        }
    }
}

impl TryFrom<EndpointDocument> for Webhook {
    type Error = Error;

    fn try_from(document: EndpointDocument) -> Result<Self> {
        let broken = |what: &str| unreadable("reading a webhook", format!("{what} of webhook {}", document.id));
        let kinds = document.kinds.iter().map(|kind| MessageKind::parse(kind).ok_or_else(|| broken("kinds")));
        Ok(Self {
            id: WebhookId::from_bytes(document.id.bytes()),
            seller: UserId::from_bytes(document.seller_id.bytes()),
            kinds: kinds.collect::<Result<_>>()?,
            state: WebhookState::parse(&document.state).ok_or_else(|| broken("state"))?,
            url: document.url,
            secret: document.secret,
            previous: document
                .previous
                .map(|previous| PreviousSecret { sealed: previous.sealed, until: previous.until.to_chrono() }),
            created_at: document.created_at.to_chrono(),
            updated_at: document.updated_at.to_chrono(),
        })
    }
}

/// A secret that takes the place of another.
#[derive(Debug)]
pub struct NewSecret<'a> {
    /// The new one, sealed.
    pub sealed: &'a str,
    /// The one that it follows.
    pub previous: &'a PreviousSecret,
}

/// Endpoints of sellers.
#[derive(Debug)]
pub struct Endpoints {
    collection: Collection<EndpointDocument>,
    events: Collection<Document>,
    deadline: Duration,
}

fn by_id(id: WebhookId) -> Document {
    doc! { "_id": ObjectId::from_bytes(id.bytes()) }
}

fn of_seller(seller: UserId) -> Document {
    doc! { "sellerId": ObjectId::from_bytes(seller.bytes()) }
}

impl Endpoints {
    pub(in crate::store::mongo) fn new(database: &Database, deadline: Duration) -> Self {
        let events = database.collection("events");
        Self { collection: database.collection("webhookEndpoints"), events, deadline }
    }

    /// Adds an endpoint.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn insert(&self, webhook: &Webhook) -> Result<()> {
        let call = self.collection.insert_one(EndpointDocument::from(webhook));
        within(self.deadline, "adding a webhook", call).await.map(|_| ())
    }

    /// The endpoint with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn by_id(&self, id: WebhookId) -> Result<Option<Webhook>> {
        let call = self.collection.find_one(by_id(id));
        within(self.deadline, "reading a webhook", call).await?.map(Webhook::try_from).transpose()
    }

    /// A seller's endpoints, oldest first. Their number is limited where they are added.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of_seller(&self, seller: UserId) -> Result<Vec<Webhook>> {
        let call = async {
            let order = doc! { "createdAt": 1, "_id": 1 };
            self.collection.find(of_seller(seller)).sort(order).await?.try_collect::<Vec<_>>().await
        };
        within(self.deadline, "listing webhooks", call).await?.into_iter().map(Webhook::try_from).collect()
    }

    /// Who is to be told of an event's sale, and of what; `None` if nobody is.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn listener(&self, event: EventId) -> Result<Option<Listener>> {
        let which = doc! { "_id": ObjectId::from_bytes(event.bytes()) };
        let call = self.events.find_one(which).projection(doc! { "sellerId": 1 });
        let event = within(self.deadline, "reading an event's seller", call).await?;
        let Some(seller) = event.and_then(|event| event.get_object_id("sellerId").ok()) else { return Ok(None) };
        let seller = UserId::from_bytes(seller.bytes());
        let webhooks = self.of_seller(seller).await?;
        let wanted = |kind: &MessageKind| webhooks.iter().any(|webhook| webhook.wants(*kind));
        let kinds: Vec<_> = MessageKind::ALL.into_iter().filter(wanted).collect();
        Ok((!kinds.is_empty()).then_some(Listener { seller, kinds }))
    }

    /// Removes an endpoint.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn delete(&self, id: WebhookId) -> Result<()> {
        within(self.deadline, "deleting a webhook", self.collection.delete_one(by_id(id))).await.map(|_| ())
    }

    /// Moves an endpoint to a state, if it is in one of those; returns it as it is then, `None` if it was in none of them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn set_state(&self, id: WebhookId, from: &[WebhookState], to: WebhookState) -> Result<Option<Webhook>> {
        let mut which = by_id(id);
        which.insert("state", doc! { "$in": from.iter().map(|state| state.as_str()).collect::<Vec<_>>() });
        self.change(which, doc! { "state": to.as_str() }).await
    }

    /// Puts a secret in the place of the one that it follows; `None` if another has taken its place already.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn rotate(&self, id: WebhookId, new: NewSecret<'_>) -> Result<Option<Webhook>> {
        let mut which = by_id(id);
        which.insert("secret", &new.previous.sealed);
        let previous = doc! { "sealed": &new.previous.sealed, "until": DateTime::from_chrono(new.previous.until) };
        self.change(which, doc! { "secret": new.sealed, "previous": previous }).await
    }

    async fn change(&self, which: Document, set: Document) -> Result<Option<Webhook>> {
        let change = doc! { "$set": set, "$currentDate": { "updatedAt": true } };
        let call = self.collection.find_one_and_update(which, change).return_document(ReturnDocument::After);
        within(self.deadline, "changing a webhook", call).await?.map(Webhook::try_from).transpose()
    }
}
