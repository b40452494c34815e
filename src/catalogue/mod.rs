//! The catalogue: events and products, as their sellers prepare them and as buyers browse them.

mod browse;
mod events;
pub mod image;
mod pictures;
mod products;

use std::sync::Arc;

pub use browse::{EventPage, ProductView};
pub use events::{EventDraft, EventEdit};
pub use products::{ProductDraft, ProductEdit};

use crate::domain::clock::Clock;
use crate::store::live::Live;
use crate::store::media::Media;
use crate::store::mongo::Mongo;
pub use crate::store::mongo::events::PlanChange;
use image::ImageProcessor;

/// Everything that can be done to events and products outside their sale.
pub struct Catalogue {
    mongo: Arc<Mongo>,
    live: Arc<Live>,
    media: Arc<Media>,
    images: ImageProcessor,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogue").finish_non_exhaustive()
    }
}

impl Catalogue {
    /// A catalogue over these stores.
    #[must_use]
    pub fn new(
        mongo: Arc<Mongo>,
        live: Arc<Live>,
        media: Arc<Media>,
        clock: Arc<dyn Clock>,
        config: &crate::config::Media,
    ) -> Self {
        Self { mongo, live, media, images: ImageProcessor::new(config), clock }
    }
}
