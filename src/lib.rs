//! Orbit: flash sales that never sell a unit twice.
//!
//! The life of a sale, and where each step lives:
//!
//! 1. A seller prepares an event and its products: [`catalogue`], kept in MongoDB ([`store::mongo`]), images in S3
//!    ([`store::media`]). An administrator approves the seller: [`accounts`].
//! 2. Opening streams the inventory into Redis ([`store::live`]) through a worker pool, and flips the status last:
//!    [`sale`].
//! 3. Buyers reserve. One Lua script decides, in one round trip; nothing else is touched.
//! 4. A reservation that is to be paid is confirmed when its money has arrived, and what is kept is the price of the units
//!    that the buyer has: [`payment`].
//! 5. Ending stops the sale, writes every reservation as an order, compares the counts, and only then removes the keys.
//! 6. Seller and buyers read their orders: [`reports`]. Sellers are told all along: [`webhooks`].
//!
//! Beside the sales there are vouchers, codes that were bought before they are sold: [`vouchers`]. Units of a sale may be such
//! codes; then [`sale::Codes`] is what the sale knows of them.
//!
//! [`http`] is the way in and decides nothing. [`domain`] is pure. [`task`] is the only place that spawns. `supervisor`
//! starts the servers for trials and tests, [`load`] plays the buyers, and [`doctor`] looks whether a machine is fit for
//! all this.

pub mod accounts;
pub mod app;
pub mod auth;
pub mod catalogue;
pub mod config;
pub mod doctor;
pub mod domain;
pub mod error;
pub mod http;
pub mod idempotency;
pub mod load;
pub mod outbound;
pub mod payment;
pub mod reports;
pub mod sale;
pub mod store;
pub mod supervisor;
pub mod task;
pub mod telemetry;
pub mod tls;
pub mod vouchers;
pub mod webhooks;
