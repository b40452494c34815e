//! An endpoint over HTTPS: it is sent to only if somebody whom this machine trusts vouches for it.

use std::path::Path;
use std::sync::Arc;

use orbit::domain::webhook::DeliveryState;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::receiver::{Behave, Receiver};
use super::{app_with_clock, register, tell_openings};
use crate::harness::eventually;
use crate::harness::process::OrbitProcess;

/// A certificate authority of the test's own: its certificate, and what an endpoint at 127.0.0.1 speaks TLS with by it.
fn authority() -> (String, TlsAcceptor) {
    orbit::tls::install();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let endpoint = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![endpoint.der().clone()], private).unwrap();
    (certificate, TlsAcceptor::from(Arc::new(server)))
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn an_endpoint_whose_authority_is_trusted_is_told_over_https_and_another_is_told_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ((ours, tls), (others, _)) = (authority(), authority());
    let (ours, others) = (written(folder.path(), "ours.pem", &ours), written(folder.path(), "others.pem", &others));
    let receiver = Receiver::start_secure(Behave::Answer(200), tls).await;
    // This process sends nothing itself, and the others send over HTTPS only.
    let (app, _) = app_with_clock(|config| config.webhooks.poll_interval_ms = 600_000).await;
    let mut config = app.config().clone();
    config.webhooks.poll_interval_ms = 50;
    config.webhooks.allow_http = false;
    let seller = app.approved_seller().await;
    let webhook = register(&seller, &receiver, &["sale.opened"]).await;

    let stranger = OrbitProcess::start_in(&config, &[("SSL_CERT_FILE", &others)]).await;
    tell_openings(&seller, 1).await;
    let recorded = || async { webhook.deliveries(&app).await.first().is_some_and(|one| !one.log.is_empty()) };
    eventually("the attempt is recorded", recorded).await;
    stranger.kill().await;
    let delivery = webhook.deliveries(&app).await.remove(0);
    assert_eq!(delivery.state, DeliveryState::Pending);
    let why = delivery.log[0].error.clone().unwrap();
    assert!(why.starts_with("no connection: ") && why.contains("certificate"), "{why}");
    assert!(receiver.received().is_empty());

    let trusts = OrbitProcess::start_in(&config, &[("SSL_CERT_FILE", &ours)]).await;
    seller.post(&webhook.path(&format!("/deliveries/{}/replays", delivery.id))).await.expect(202);
    let received = receiver.until(1).await;
    assert!(received[0].signed_with(&webhook.secret));
    let delivered = || async { webhook.deliveries(&app).await[0].state == DeliveryState::Delivered };
    eventually("it is recorded", delivered).await;
    trusts.kill().await;
    app.finish().await;
}
