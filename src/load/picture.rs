//! Product pictures, drawn: nothing is shipped, and each product looks different.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

use super::error::{LoadError, Result};

/// Draws a JPEG for the product of this number: a disc on a gradient, in a hue of its own.
pub(super) fn jpeg(number: usize, width: u32, height: u32) -> Result<Vec<u8>> {
    // The golden angle keeps the hues of neighbours apart.
    let [red, green, blue] = hue(u32::try_from(number * 137 % 360).unwrap_or(0));
    let (middle_x, middle_y) = (i64::from(width / 2), i64::from(height / 2));
    let radius_squared = (i64::from(width.min(height)) / 3).pow(2);
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (i64::from(x) - middle_x, i64::from(y) - middle_y);
        let light = 255 - 140 * y / height.max(1);
        if dx * dx + dy * dy < radius_squared {
            let shade = |channel: u32| byte(channel * (100 + 80 * x / width.max(1)) / 180);
            Rgb([shade(red), shade(green), shade(blue)])
        } else {
            Rgb([byte((light + red) / 2), byte((light + green) / 2), byte((light + blue) / 2)])
        }
    });
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, ImageFormat::Jpeg).map_err(LoadError::Picture)?;
    Ok(file.into_inner())
}

fn byte(value: u32) -> u8 {
    u8::try_from(value.min(255)).unwrap_or(u8::MAX)
}

/// A full colour of this hue, in degrees.
fn hue(degrees: u32) -> [u32; 3] {
    let channel = |shift: u32| {
        let distance = ((degrees + shift) % 360).abs_diff(180);
        (distance.saturating_sub(60) * 255 / 60).min(255)
    };
    [channel(0), channel(240), channel(120)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_go_round() {
        assert_eq!(hue(0), [255, 0, 0]);
        assert_eq!(hue(120), [0, 255, 0]);
        assert_eq!(hue(240), [0, 0, 255]);
    }

    #[test]
    fn draws_a_jpeg_of_the_size() {
        let file = jpeg(7, 64, 48).unwrap();
        assert_eq!(&file[..3], [0xff, 0xd8, 0xff]);
        let read = image::load_from_memory(&file).unwrap();
        assert_eq!((read.width(), read.height()), (64, 48));
        assert_ne!(file, jpeg(8, 64, 48).unwrap());
    }
}
