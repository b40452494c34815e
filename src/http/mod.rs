//! HTTP: requests in, use cases called, answers out. Nothing is decided here.

mod admin;
mod auth;
mod buyer;
mod cancel;
mod docs;
mod extract;
mod health;
mod layer;
pub mod openapi;
mod patience;
mod payment;
mod plan;
pub mod problem;
pub mod router;
mod seller;
pub mod serve;
mod voucher;
