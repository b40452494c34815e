//! The integration tests.

mod harness {
    pub mod s3;
}
mod media;
