//! `/api/buyer`: browsing, buying, and what one has bought.

mod cancel;
mod codes;
mod events;
mod orders;
mod pay;
mod purchase;
mod stream;
mod timing;

pub(super) use cancel::*;
pub(super) use codes::*;
pub(super) use events::*;
pub(super) use orders::*;
pub(super) use pay::*;
pub(super) use purchase::*;
pub(super) use stream::*;
