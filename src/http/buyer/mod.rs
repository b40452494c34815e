//! `/api/buyer`: browsing, buying, and what one has bought.

mod events;
mod orders;
mod purchase;
mod stream;
mod timing;

pub(super) use events::*;
pub(super) use orders::*;
pub(super) use purchase::*;
pub(super) use stream::*;
