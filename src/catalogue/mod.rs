//! Events and products as their sellers keep them, and their images.

pub mod image;
