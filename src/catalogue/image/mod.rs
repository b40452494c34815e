//! From an uploaded file to an image that may be shown.
//!
//! Nothing of the upload is kept: it is decoded and written again, which proves that it is an image, turns it the right
//! way up, and leaves behind what cameras and attackers add. Size, format and dimensions are looked at first, decoding has
//! a memory limit, and only a few images are decoded at once.

mod jpeg;

use std::borrow::Cow;
use std::io::Cursor;
use std::sync::Arc;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::error::{ImageError, LimitErrorKind};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader};
use tokio::sync::Semaphore;

use crate::config;
use crate::domain::media::{EncodedImage, ImageFormat, ImageKind};
use crate::error::{Code, Dependency, Error, Result};

const DOING: &str = "decoding an image";
const BANNER_QUALITY: u8 = 85;
const PRODUCT_QUALITY: u8 = 80;

/// Checks, decodes and re-encodes uploaded images.
#[derive(Debug, Clone)]
pub struct ImageProcessor {
    limits: Limits,
    /// Running and waiting.
    places: Arc<Semaphore>,
    /// Running.
    workers: Arc<Semaphore>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    banner_bytes_max: usize,
    product_bytes_max: usize,
    pixels_side_max: u32,
    decode_bytes_max: u64,
}

impl ImageProcessor {
    /// A pool of `decode_workers` and a queue of `decode_queue_max`.
    #[must_use]
    pub fn new(config: &config::Media) -> Self {
        let limits = Limits {
            banner_bytes_max: config.banner_bytes_max,
            product_bytes_max: config.product_bytes_max,
            pixels_side_max: config.pixels_side_max,
            decode_bytes_max: config.decode_bytes_max,
        };
        Self {
            limits,
            places: Arc::new(Semaphore::new(config.decode_workers + config.decode_queue_max)),
            workers: Arc::new(Semaphore::new(config.decode_workers)),
        }
    }

    /// Turns an uploaded file into an image that may be shown.
    ///
    /// # Errors
    /// [`Code::ImageRejected`] with the reason; [`Dependency::Capacity`] at once when the queue is full.
    pub async fn process<B>(&self, bytes: B, kind: ImageKind) -> Result<EncodedImage>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        self.limits.check_size(bytes.as_ref().len(), kind)?;
        let Some(format) = ImageFormat::of(bytes.as_ref()) else {
            return Err(rejected("invalid format: only JPEG and PNG images are accepted"));
        };
        let full = |_| Error::timed_out(Dependency::Capacity, DOING);
        let place = self.places.clone().try_acquire_owned().map_err(|error| full(error.to_string()))?;
        let worker = self.workers.clone().acquire_owned().await.map_err(|error| full(error.to_string()))?;
        let limits = self.limits;
        let work = tokio::task::spawn_blocking(move || {
            // Held by the thread, not by the caller: a caller that hangs up frees no core and no memory.
            let _held = (place, worker);
            let image = limits.decode(bytes.as_ref(), format)?;
            drop(bytes);
            encode(&image, format, kind)
        });
        match work.await {
            Ok(result) => result,
            Err(error) if error.is_panic() => {
                // The decoders are other people's code fed with hostile input; the panic is in the log.
                Err(rejected("image is corrupted or could not be decoded"))
            }
            Err(error) => Err(Error::internal(DOING, error)),
        }
    }
}

impl Limits {
    fn check_size(&self, length: usize, kind: ImageKind) -> Result<()> {
        let bytes_max = match kind {
            ImageKind::Banner => self.banner_bytes_max,
            ImageKind::Product => self.product_bytes_max,
        };
        if length <= bytes_max {
            return Ok(());
        }
        Err(rejected(format!("file too large: maximum allowed size is {}", size_text(bytes_max))))
    }

    fn decode(&self, bytes: &[u8], format: ImageFormat) -> Result<DynamicImage> {
        let failed = |error: ImageError| self.explain(&error);
        let mut reader = ImageReader::with_format(Cursor::new(bytes), codec(format));
        let mut limits = image::Limits::no_limits();
        limits.max_image_width = Some(self.pixels_side_max);
        limits.max_image_height = Some(self.pixels_side_max);
        limits.max_alloc = Some(self.decode_bytes_max);
        reader.limits(limits);
        // This reads the header only, and checks its dimensions.
        let mut decoder = reader.into_decoder().map_err(failed)?;
        let orientation = decoder.orientation().map_err(failed)?;
        let besides = match format {
            ImageFormat::Jpeg => jpeg::Outline::read(bytes).ok_or_else(corrupted)?.coefficient_bytes,
            // The encoder turns the bytes of 16-bit samples round in a copy.
            ImageFormat::Png if decoder.color_type().bytes_per_pixel() > decoder.color_type().channel_count() => {
                decoder.total_bytes()
            }
            ImageFormat::Png => 0,
        };
        let turned = if swaps_sides(orientation) { decoder.total_bytes() } else { 0 };
        if decoder.total_bytes().saturating_add(besides.max(turned)) > self.decode_bytes_max {
            return Err(too_much_memory());
        }
        let mut image = DynamicImage::from_decoder(decoder).map_err(failed)?;
        image.apply_orientation(orientation);
        Ok(image)
    }

    fn explain(&self, error: &ImageError) -> Error {
        match error {
            ImageError::Limits(limit) if limit.kind() == LimitErrorKind::DimensionError => {
                let side = self.pixels_side_max;
                rejected(format!("image dimensions too large: maximum is {side}x{side}"))
            }
            ImageError::Limits(_) => too_much_memory(),
            error => {
                tracing::debug!(%error, "an image could not be decoded");
                corrupted()
            }
        }
    }
}

/// Writes the pixels and nothing else: no metadata of the upload survives.
fn encode(image: &DynamicImage, format: ImageFormat, kind: ImageKind) -> Result<EncodedImage> {
    let mut bytes = Vec::new();
    match format {
        ImageFormat::Jpeg => {
            let quality = match kind {
                ImageKind::Banner => BANNER_QUALITY,
                ImageKind::Product => PRODUCT_QUALITY,
            };
            image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))
        }
        ImageFormat::Png => image.write_with_encoder(PngEncoder::new_with_quality(
            &mut bytes,
            CompressionType::Default,
            FilterType::Adaptive,
        )),
    }
    .map_err(|error| Error::internal("encoding an image", error))?;
    Ok(EncodedImage { bytes, format })
}

const fn codec(format: ImageFormat) -> image::ImageFormat {
    match format {
        ImageFormat::Jpeg => image::ImageFormat::Jpeg,
        ImageFormat::Png => image::ImageFormat::Png,
    }
}

/// Quarter turns are made in a second copy of the pixels.
const fn swaps_sides(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    )
}

fn rejected(message: impl Into<Cow<'static, str>>) -> Error {
    Error::refused(Code::ImageRejected, message)
}

fn corrupted() -> Error {
    rejected("image is corrupted or could not be decoded")
}

fn too_much_memory() -> Error {
    rejected("image takes too much memory to decode: reduce its dimensions or colour depth")
}

/// The limit as people write it, in the contract's spelling of MiB.
fn size_text(bytes: usize) -> String {
    const MIB: usize = 1 << 20;
    if bytes > 0 && bytes.is_multiple_of(MIB) { format!("{}MB", bytes / MIB) } else { format!("{bytes} bytes") }
}
