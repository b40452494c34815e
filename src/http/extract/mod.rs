//! Extractors: what a handler may assume is in its signature.

mod client;
mod form;
mod idempotency;
mod json;
mod member;
mod owned;
mod page;
mod path;
mod prefetch;
mod raw;
mod session;
mod webhook;

pub(super) use client::ClientAddress;
pub(super) use form::{Fields, Form};
pub(super) use idempotency::{IDEMPOTENCY_KEY, idempotency_key};
pub(super) use json::{MaybeJson, ValidJson, body_bytes, content_type};
pub(super) use member::Member;
pub(super) use owned::{OwnedBookings, OwnedEvent, OwnedSale};
pub(super) use page::{PageQuery, Paged, next_cursor};
pub(super) use path::{NamedProduct, NamedUnit, NamedVoucherProduct, Path, path_id, path_text};
pub(super) use prefetch::{NO_JOB, NamedBatch, NamedVendor};
pub(super) use raw::RawBody;
pub(super) use session::{Admin, Buyer, COOKIE as SESSION_COOKIE, Seller, Session};
pub(super) use webhook::OwnedWebhook;
