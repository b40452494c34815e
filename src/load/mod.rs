//! Sellers and buyers, played: a whole flash sale through the public HTTP API, measured and then checked.
//!
//! The demo and `orbit-load` share this. It knows the service only as a client does, so that it can be pointed at any
//! server that keeps the same contract, and so that what it finds is what a client would find:
//!
//! 1. [`plan::Plan`] says what is played. [`scene`] sets the stage: an approved seller, an event with products, buyers
//!    with sessions. [`crowd`] signs the buyers up.
//! 2. [`rush`] or [`steady`] is the sale. Each purchase becomes an [`attempt::Attempt`].
//! 3. [`invariants`] compares what the buyers were told with what the seller finds afterwards.
//! 4. [`report`] puts it in a table or JSON, [`html`] on a page.
//!
//! [`play::play`] runs it all.

pub mod actors;
mod again;
pub mod amount;
pub mod answers;
pub mod attempt;
mod chart;
pub mod client;
pub mod crowd;
pub mod error;
pub mod html;
pub mod invariants;
pub mod latency;
pub mod limits;
mod parallel;
pub mod payment;
mod picture;
pub mod plan;
pub mod play;
pub mod progress;
pub mod report;
pub mod rush;
pub mod scene;
pub mod steady;
pub mod table;
pub mod voucher;
