//! Images as they are kept: a kind, a format, bytes, and a key that only we make.

use super::ids::EventId;

/// What an image is for. Each kind has its own size limit and quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    /// The wide picture of an event.
    Banner,
    /// The picture of a product.
    Product,
}

/// A format that we accept and write. Formats that can carry scripts (SVG) have no place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
}

impl ImageFormat {
    /// The format that the first bytes of a file announce; its name and declared type are the caller's to invent.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xD8, 0xFF, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Self::Png),
            _ => None,
        }
    }

    /// The end of a key, without the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
        }
    }

    /// The media type on the wire.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
        }
    }
}

/// An image that was decoded and written again by us, so it is what its format says and carries nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedImage {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// The format of the bytes.
    pub format: ImageFormat,
}

impl std::fmt::Debug for EncodedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedImage({:?}, {} bytes)", self.format, self.bytes.len())
    }
}

/// Where an image is kept, below the media store's root.
///
/// Made of an id, a number and a fixed word, so no part of it comes from a caller: nothing can climb out of the folder,
/// and no image ever replaces another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MediaKey(String);

impl MediaKey {
    /// The key of an event's banner. `nonce` is a fresh UUID (version 7) as a number.
    #[must_use]
    pub fn banner(event: EventId, nonce: u128, format: ImageFormat) -> Self {
        Self::new("event-banner", event, nonce, format)
    }

    /// The key of the image of one of an event's products. `nonce` is a fresh UUID (version 7) as a number.
    #[must_use]
    pub fn product(event: EventId, nonce: u128, format: ImageFormat) -> Self {
        Self::new("product", event, nonce, format)
    }

    fn new(folder: &str, event: EventId, nonce: u128, format: ImageFormat) -> Self {
        Self(format!("{folder}/{event}-{nonce:032x}.{}", format.extension()))
    }

    /// The text that records and the ledger keep.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for MediaKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<MediaKey> for String {
    fn from(key: MediaKey) -> Self {
        key.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_event_and_the_format() {
        let event: EventId = "0123456789abcdef01234567".parse().unwrap();
        let nonce = uuid::Uuid::parse_str("01890a5d-ac96-774b-bcce-b302099a8057").unwrap().as_u128();
        let banner = MediaKey::banner(event, nonce, ImageFormat::Jpeg);
        assert_eq!(banner.as_str(), "event-banner/0123456789abcdef01234567-01890a5dac96774bbcceb302099a8057.jpg");
        let product = MediaKey::product(event, 1, ImageFormat::Png);
        assert_eq!(product.as_str(), "product/0123456789abcdef01234567-00000000000000000000000000000001.png");
    }

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        assert_eq!(ImageFormat::of(b"\xFF\xD8\xFF\xE0rest"), Some(ImageFormat::Jpeg));
        assert_eq!(ImageFormat::of(b"\x89PNG\r\n\x1a\nrest"), Some(ImageFormat::Png));
        for other in [&b""[..], b"\xFF\xD8", b"GIF89a", b"<svg xmlns=", b"<!doctype html>", b"\x89PNG\n"] {
            assert_eq!(ImageFormat::of(other), None);
        }
    }
}
