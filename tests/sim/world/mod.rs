//! A world: both stores, a few processes, buyers and a seller, on one thread whose time is paused, so that a seed has one
//! outcome.

mod buyer;
mod catalogue;
mod finale;
mod money;
mod payer;
mod process;
mod seller;
mod stage;
mod step;

pub use catalogue::Catalogue;
pub use seller::Control;
pub use stage::{Bug, Failure, Story, play};
pub use step::{Action, Machine, Step, schedule};
