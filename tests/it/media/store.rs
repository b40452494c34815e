//! Both media stores keep one promise, against a real S3 server and a real folder.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use orbit::config;
use orbit::domain::ids::EventId;
use orbit::domain::media::{EncodedImage, ImageFormat, MediaKey};
use orbit::error::{Code, Error};
use orbit::store::media::Media;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::settings;
use crate::harness::s3::{S3Server, StoredObject};

fn event() -> EventId {
    "0123456789abcdef01234567".parse().unwrap()
}

fn image(format: ImageFormat) -> EncodedImage {
    // Above the size from which the driver waits for "100 Continue".
    EncodedImage { bytes: (0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect(), format }
}

fn fresh_key(format: ImageFormat) -> MediaKey {
    MediaKey::product(event(), uuid::Uuid::now_v7().as_u128(), format)
}

fn in_folder(folder: &TempDir) -> config::Media {
    let mut media = settings();
    media.filesystem.dir = folder.path().join("not/there/yet");
    media
}

fn chain(error: &Error) -> String {
    let mut text = format!("{error} / {error:?} / {}", error.public_message());
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text} / {inner} / {inner:?}");
        cause = inner.source();
    }
    text
}

#[tokio::test]
async fn a_bucket_keeps_and_deletes_images_over_plain_http() {
    let server = S3Server::start().await;
    let mut config = settings();
    server.configure(&mut config);
    let media = Media::connect(&config).await.unwrap();
    for (format, content_type) in [(ImageFormat::Jpeg, "image/jpeg"), (ImageFormat::Png, "image/png")] {
        let key = fresh_key(format);
        media.put(&key, &image(format)).await.unwrap();
        let stored = StoredObject {
            bytes: image(format).bytes,
            content_type: content_type.to_owned(),
            cache_control: "public, max-age=31536000, immutable".to_owned(),
        };
        assert!(server.object(key.as_str()).await == Some(stored));
        media.delete(key.as_str()).await.unwrap();
        assert!(server.object(key.as_str()).await.is_none());
        media.delete(key.as_str()).await.unwrap();
    }
    assert_eq!(media.public_url("product/a.jpg"), format!("{}/orbit-images/product/a.jpg", server.endpoint));
    assert_eq!(media.served_dir(), None);
    assert!(!format!("{media:?}").contains(&server.secret_key));
}

#[tokio::test]
async fn a_folder_keeps_and_deletes_images() {
    let folder = tempfile::tempdir().unwrap();
    let media = Media::connect(&in_folder(&folder)).await.unwrap();
    let served = media.served_dir().unwrap().to_owned();
    assert!(served.starts_with(folder.path()) && served.is_dir());

    let key = MediaKey::banner(event(), 7, ImageFormat::Png);
    media.put(&key, &image(ImageFormat::Png)).await.unwrap();
    let path = served.join(key.as_str());
    assert!(std::fs::read(&path).unwrap() == image(ImageFormat::Png).bytes);
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, std::slice::from_ref(&path), "nothing but the image is left");

    media.delete(key.as_str()).await.unwrap();
    assert!(!path.exists());
    media.delete(key.as_str()).await.unwrap();
    assert_eq!(media.public_url("product/a.jpg"), "/media/product/a.jpg");
}

#[tokio::test]
async fn what_a_crash_left_half_written_goes_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let media = Media::connect(&in_folder(&folder)).await.unwrap();
    let key = fresh_key(ImageFormat::Jpeg);
    let part = media.served_dir().unwrap().join(format!("{key}.part"));
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    std::fs::write(&part, b"half").unwrap();
    media.delete(key.as_str()).await.unwrap();
    assert!(!part.exists());
}

#[tokio::test]
async fn no_key_reaches_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside.jpg");
    std::fs::write(&outside, b"precious").unwrap();
    let media = Media::connect(&in_folder(&folder)).await.unwrap();
    for key in ["", "../../../outside.jpg", "product/../../../../outside.jpg", outside.to_str().unwrap(), "./a.jpg"] {
        assert_eq!(media.delete(key).await.unwrap_err().code(), Code::MediaUnavailable, "{key}");
    }
    assert!(outside.exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_told_at_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("not"), b"a file where a folder should be").unwrap();
    let error = Media::connect(&in_folder(&folder)).await.unwrap_err();
    assert_eq!(error.code(), Code::MediaUnavailable);
}

#[tokio::test]
async fn a_public_address_may_end_with_a_slash() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = in_folder(&folder);
    config.public_url = "https://images.example/".to_owned();
    let media = Media::connect(&config).await.unwrap();
    assert_eq!(media.public_url("product/a.jpg"), "https://images.example/product/a.jpg");
}

#[tokio::test]
async fn wrong_credentials_and_unknown_buckets_are_told_at_start_without_secrets() {
    let server = S3Server::start().await;
    let mut wrong_secret = settings();
    server.configure(&mut wrong_secret);
    wrong_secret.s3.secret_access_key = "wrong-secret-key-0b51".to_owned().into();
    let mut wrong_account = settings();
    server.configure(&mut wrong_account);
    wrong_account.s3.access_key_id = "nobody".to_owned();
    let mut wrong_bucket = settings();
    server.configure(&mut wrong_bucket);
    wrong_bucket.s3.bucket = "no-such-bucket".to_owned();

    for (config, status) in [(wrong_secret, "403"), (wrong_account, "403"), (wrong_bucket, "404")] {
        let error = Media::connect(&config).await.unwrap_err();
        assert_eq!(error.code(), Code::MediaUnavailable);
        let text = chain(&error);
        assert!(text.contains(status), "{text}");
        for secret in [server.secret_key.as_str(), "wrong-secret-key"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(!error.public_message().contains("bucket"), "{}", error.public_message());
    }
}

#[tokio::test]
async fn a_bucket_that_goes_away_fails_uploads_and_deletions() {
    let server = S3Server::start().await;
    let mut config = settings();
    server.configure(&mut config);
    config.deadline_ms = 1_000;
    let media = Media::connect(&config).await.unwrap();
    drop(server);
    let key = fresh_key(ImageFormat::Jpeg);
    assert_eq!(media.put(&key, &image(ImageFormat::Jpeg)).await.unwrap_err().code(), Code::MediaUnavailable);
    assert_eq!(media.delete(key.as_str()).await.unwrap_err().code(), Code::MediaUnavailable);
}

/// Answers a connection's first request and nothing after it, until the client hangs up.
async fn answer_once(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    stream
}

#[tokio::test]
async fn a_bucket_that_never_answers_costs_one_deadline_and_the_call_is_really_cancelled() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let mut config = settings();
    config.backend = config::MediaBackend::S3;
    config.deadline_ms = 400;
    config.s3.endpoint = format!("http://{}", listener.local_addr().unwrap());
    config.s3.bucket = "silent".to_owned();

    let started = Instant::now();
    let error = Media::connect(&config).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { source: None, .. }), "{error:?}");
    assert_eq!(error.code(), Code::MediaUnavailable);
    drop(listener.accept().await.unwrap());

    let (media, mut stream) = tokio::join!(Media::connect(&config), answer_once(&listener));
    let media = media.unwrap();
    let put = media.put(&fresh_key(ImageFormat::Jpeg), &image(ImageFormat::Jpeg)).await;
    assert!(matches!(put, Err(Error::Unavailable { source: None, .. })), "{put:?}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());

    let mut sent = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut sent)).await.unwrap().unwrap();
    assert!(sent.starts_with(b"PUT /silent/product/"), "the upload was begun, and the connection closed");
}
