//! What happens to an uploaded file before it is an image.

use std::io::Cursor;
use std::time::Duration;

use image::codecs::jpeg::JpegEncoder;
use image::{ImageReader, Rgb, RgbImage, Rgba, RgbaImage};
use orbit::catalogue::image::ImageProcessor;
use orbit::domain::media::{EncodedImage, ImageFormat, ImageKind};
use orbit::error::{Code, Error};

use super::settings;

const PROGRESSIVE: &[u8] = include_bytes!("../assets/progressive.jpg");
const CORRUPTED: &str = "image is corrupted or could not be decoded";
const TOO_MUCH: &str = "image takes too much memory to decode: reduce its dimensions or colour depth";
const SIDES: &str = "image dimensions too large: maximum is 5000x5000";
const FORMAT: &str = "invalid format: only JPEG and PNG images are accepted";

/// Red on the left, blue on the right.
fn two_colours(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, _| if x < width / 2 { Rgb([250, 5, 5]) } else { Rgb([5, 5, 250]) })
}

fn jpeg(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, 95)).unwrap();
    bytes
}

fn png(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A TIFF block with one entry: the orientation; and a text that must not survive.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    block.extend(b"SECRET-PLACE");
    block
}

fn with_segment(jpeg: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xFF, marker], &length, content, &jpeg[2..]].concat()
}

fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let body = [kind, content].concat();
    let mut crc = u32::MAX;
    for byte in &body {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[..], &body, &(!crc).to_be_bytes()].concat()
}

/// After the signature and the header.
const PNG_BODY: usize = 8 + 25;

async fn process(bytes: Vec<u8>, kind: ImageKind) -> Result<EncodedImage, Error> {
    ImageProcessor::new(&settings()).process(bytes, kind).await
}

async fn refusal(bytes: Vec<u8>) -> String {
    let error = process(bytes, ImageKind::Banner).await.unwrap_err();
    assert_eq!(error.code(), Code::ImageRejected, "{error:?}");
    error.public_message().into_owned()
}

fn decode(image: &EncodedImage) -> image::DynamicImage {
    let reader = ImageReader::new(Cursor::new(&image.bytes)).with_guessed_format().unwrap();
    let expected = match image.format {
        ImageFormat::Jpeg => image::ImageFormat::Jpeg,
        ImageFormat::Png => image::ImageFormat::Png,
    };
    assert_eq!(reader.format(), Some(expected));
    reader.decode().unwrap()
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

#[tokio::test]
async fn a_progressive_jpeg_is_accepted_and_written_as_baseline() {
    assert!(contains(PROGRESSIVE, &[0xFF, 0xC2]) && !contains(PROGRESSIVE, &[0xFF, 0xC0]), "SOF2, not SOF0");
    let image = process(PROGRESSIVE.to_vec(), ImageKind::Banner).await.unwrap();
    let decoded = decode(&image).to_rgb8();
    assert_eq!(decoded.dimensions(), (1920, 1920));
    let original = image::load_from_memory(PROGRESSIVE).unwrap().to_rgb8();
    for (x, y) in [(0, 0), (960, 960), (1919, 0), (1919, 1919)] {
        let (left, right) = (original.get_pixel(x, y).0, decoded.get_pixel(x, y).0);
        assert!(left.iter().zip(right).all(|(a, b)| a.abs_diff(b) < 8), "{left:?} became {right:?}");
    }
    assert!(contains(&image.bytes, &[0xFF, 0xC0]));
}

#[tokio::test]
async fn products_are_written_smaller_than_banners_and_png_keeps_its_pixels() {
    let noisy =
        RgbImage::from_fn(64, 64, |x, y| Rgb([(x * 37 % 251) as u8, (y * 91 % 241) as u8, (x * y % 239) as u8]));
    let banner = process(jpeg(&noisy), ImageKind::Banner).await.unwrap();
    let product = process(jpeg(&noisy), ImageKind::Product).await.unwrap();
    assert!(product.bytes.len() < banner.bytes.len());

    let glass = RgbaImage::from_fn(9, 5, |x, y| Rgba([x as u8, y as u8, 200, (x * 20) as u8]));
    let mut bytes = Cursor::new(Vec::new());
    glass.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let kept = process(bytes.into_inner(), ImageKind::Product).await.unwrap();
    assert_eq!(decode(&kept).as_rgba8(), Some(&glass));
}

#[tokio::test]
async fn what_is_too_large_is_refused_by_its_bytes_alone() {
    let config = settings();
    for (kind, bytes_max, text) in
        [(ImageKind::Banner, config.banner_bytes_max, "5MB"), (ImageKind::Product, config.product_bytes_max, "4MB")]
    {
        let error = process(vec![0; bytes_max + 1], kind).await.unwrap_err();
        assert_eq!(error.code(), Code::ImageRejected);
        assert_eq!(error.public_message(), format!("file too large: maximum allowed size is {text}"));
        let mut exact = png(&two_colours(4, 4));
        exact.resize(bytes_max, 0);
        process(exact, kind).await.unwrap();
    }
}

#[tokio::test]
async fn only_the_content_tells_the_format() {
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    let html = b"<!doctype html><script>alert(1)</script>";
    for bytes in [&b""[..], b"GIF89a\x01\0\x01\0\0\0\0;", svg, html, b"RIFF\0\0\0\0WEBPVP8 ", b"BM", b"\xFF\xD8"] {
        assert_eq!(refusal(bytes.to_vec()).await, FORMAT);
    }
    for disguise in [&b"\xFF\xD8\xFF\xE0"[..], b"\x89PNG\r\n\x1a\n"] {
        assert_eq!(refusal([disguise, html].concat()).await, CORRUPTED);
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let whole = jpeg(&two_colours(200, 200));
    for length in [whole.len() / 2, whole.len() * 9 / 10, whole.len() - 2, 300] {
        assert_eq!(refusal(whole[..length].to_vec()).await, CORRUPTED, "a JPEG cut at {length}");
    }
    for length in [PROGRESSIVE.len() / 2, PROGRESSIVE.len() - 2] {
        assert_eq!(refusal(PROGRESSIVE[..length].to_vec()).await, CORRUPTED, "a progressive JPEG cut at {length}");
    }
    let whole = png(&two_colours(200, 200));
    assert_eq!(refusal(whole[..whole.len() - 20].to_vec()).await, CORRUPTED);
    let mut flipped = whole.clone();
    flipped[whole.len() - 30] ^= 1;
    assert_eq!(refusal(flipped).await, CORRUPTED);
}

#[tokio::test]
async fn dimensions_are_refused_before_anything_is_decoded() {
    let wide = two_colours(6000, 10);
    // Both end long before their pixels do.
    assert_eq!(refusal(png(&wide)[..PNG_BODY].to_vec()).await, SIDES);
    assert_eq!(refusal(jpeg(&wide)[..700].to_vec()).await, SIDES);
    assert_eq!(refusal(jpeg(&two_colours(10, 5001))).await, SIDES);
    process(jpeg(&two_colours(5000, 8)), ImageKind::Banner).await.unwrap();
}

#[tokio::test]
async fn a_bomb_is_refused_by_the_memory_it_would_take() {
    let mut header = [5000_u32.to_be_bytes(), 5000_u32.to_be_bytes()].concat();
    header.extend([16, 6, 0, 0, 0]);
    let signature = b"\x89PNG\r\n\x1a\n".to_vec();
    let bomb = [signature, chunk(b"IHDR", &header), chunk(b"IDAT", &[0x78, 0x9C, 0, 0]), chunk(b"IEND", b"")].concat();
    assert_eq!(refusal(bomb).await, TOO_MUCH);

    // A progressive picture takes its coefficients besides its pixels.
    let mut bomb = PROGRESSIVE.to_vec();
    let frame = bomb.windows(2).position(|pair| pair == [0xFF, 0xC2]).unwrap();
    for at in [frame + 5, frame + 7] {
        bomb[at..at + 2].copy_from_slice(&5000_u16.to_be_bytes());
    }
    assert_eq!(refusal(bomb).await, TOO_MUCH);
}

#[tokio::test]
async fn a_photo_is_turned_upright_and_its_metadata_stays_behind() {
    // Orientation 6: the camera was turned; a quarter turn clockwise shows the picture, red on top.
    let photo = jpeg(&two_colours(64, 32));
    let photo = with_segment(&photo, 0xFE, b"SECRET-PLACE");
    let photo = with_segment(&photo, 0xE1, &[b"Exif\0\0", &exif(6)[..]].concat());
    let plain = png(&two_colours(64, 32));
    let meta = [chunk(b"eXIf", &exif(6)), chunk(b"tEXt", b"Comment\0SECRET-PLACE")].concat();
    let drawing = [&plain[..PNG_BODY], &meta, &plain[PNG_BODY..]].concat();

    for upload in [photo, drawing] {
        assert!(contains(&upload, b"SECRET-PLACE"));
        let image = process(upload, ImageKind::Product).await.unwrap();
        let upright = decode(&image).to_rgb8();
        assert_eq!(upright.dimensions(), (32, 64));
        let (top, bottom) = (upright.get_pixel(16, 8).0, upright.get_pixel(16, 56).0);
        assert!(top[0] > 200 && top[2] < 50 && bottom[0] < 50 && bottom[2] > 200, "{top:?} over {bottom:?}");
        for trace in [&b"SECRET-PLACE"[..], b"Exif", b"eXIf", b"tEXt"] {
            assert!(!contains(&image.bytes, trace));
        }
    }
}

#[tokio::test]
async fn what_hides_behind_an_image_stays_behind() {
    let upload = [jpeg(&two_colours(16, 16)), b"<script>alert(1)</script>PK\x03\x04".to_vec()].concat();
    let image = process(upload, ImageKind::Banner).await.unwrap();
    assert!(!contains(&image.bytes, b"<script>"));
}

#[tokio::test]
async fn beyond_the_queue_the_answer_is_overloaded_at_once() {
    let mut config = settings();
    config.decode_workers = 1;
    config.decode_queue_max = 1;
    let processor = ImageProcessor::new(&config);
    let upload = || processor.process(PROGRESSIVE, ImageKind::Banner);
    let (running, waiting, beyond) = tokio::join!(upload(), upload(), upload());
    running.unwrap();
    waiting.unwrap();
    assert_eq!(beyond.unwrap_err().code(), Code::Overloaded);
    upload().await.unwrap();
}

#[tokio::test]
async fn a_caller_that_hangs_up_frees_no_worker_before_its_image_is_done() {
    let mut config = settings();
    config.decode_workers = 1;
    config.decode_queue_max = 0;
    let processor = ImageProcessor::new(&config);
    let upload = || processor.process(PROGRESSIVE, ImageKind::Banner);
    tokio::time::timeout(Duration::ZERO, upload()).await.unwrap_err();
    assert_eq!(upload().await.unwrap_err().code(), Code::Overloaded);
    let freed = async {
        while upload().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), freed).await.unwrap();
}
