//! A real S3 server in this process: plain HTTP on a free port, a folder below it, one bucket, one account.

use std::net::Ipv4Addr;

use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use orbit::config;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The server; it and what it keeps are gone when this is dropped.
pub struct S3Server {
    pub endpoint: String,
    pub bucket: String,
    pub access_key: String,
    pub secret_key: String,
    /// Dropped, and so aborted, together with the server.
    _accepting: JoinSet<()>,
    _folder: TempDir,
}

/// What a browser would get.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredObject {
    pub bytes: Vec<u8>,
    pub content_type: String,
    pub cache_control: String,
}

impl S3Server {
    pub async fn start() -> Self {
        let (bucket, access_key, secret_key) = ("orbit-images", "test-access-key", "test-secret-key-7f3a");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(bucket)).unwrap();
        let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(access_key, secret_key));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, service.build()));
        Self {
            endpoint,
            bucket: bucket.to_owned(),
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            _accepting: accepting,
            _folder: folder,
        }
    }

    /// Points a configuration at this server.
    pub fn configure(&self, media: &mut config::Media) {
        media.backend = config::MediaBackend::S3;
        media.public_url = format!("{}/{}", self.endpoint, self.bucket);
        media.s3 = config::S3Media {
            endpoint: self.endpoint.clone(),
            region: "auto".to_owned(),
            bucket: self.bucket.clone(),
            access_key_id: self.access_key.clone(),
            secret_access_key: self.secret_key.clone().into(),
            path_style: true,
        };
    }

    /// Reads an object back over HTTP; `None` if there is none.
    pub async fn object(&self, key: &str) -> Option<StoredObject> {
        let settings = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .credentials_provider(Credentials::new(&self.access_key, &self.secret_key, None, None, "test"))
            .region(Region::new("auto"))
            .endpoint_url(&self.endpoint)
            .force_path_style(true)
            .build();
        let client = aws_sdk_s3::Client::from_conf(settings);
        let object = match client.get_object().bucket(&self.bucket).key(key).send().await {
            Ok(object) => object,
            Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => return None,
            Err(error) => panic!("{error:?}"),
        };
        let content_type = object.content_type().unwrap_or_default().to_owned();
        let cache_control = object.cache_control().unwrap_or_default().to_owned();
        Some(StoredObject { bytes: object.body.collect().await.unwrap().to_vec(), content_type, cache_control })
    }
}

async fn accept(listener: TcpListener, service: S3Service) {
    // Dropped, and so aborted, together with this task.
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service.clone();
        connections.spawn(async move {
            // A client that hangs up is no failure of the server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
