//! Images: from an uploaded file to the media store.

mod pipeline;
mod store;

use orbit::config::{self, Config};

/// The media section of the test configuration.
fn settings() -> config::Media {
    Config::with_layer(config::TEST).unwrap().media
}
