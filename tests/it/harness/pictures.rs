//! Pictures, made in memory.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};

/// A JPEG of this size.
pub fn jpeg(width: u32, height: u32) -> Vec<u8> {
    encode(width, height, ImageFormat::Jpeg)
}

/// A PNG of this size.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    encode(width, height, ImageFormat::Png)
}

fn encode(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let gradient = |x: u32, y: u32| image::Rgb([(x % 256) as u8, (y % 256) as u8, 128]);
    let picture = DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, gradient));
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}
