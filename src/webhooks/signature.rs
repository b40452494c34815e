//! Standard Webhooks signatures: HMAC with SHA-256 over id, timestamp and body, under a secret that only we and the seller
//! know.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// The standard asks for 24 to 64.
const SECRET_BYTES: usize = 32;

/// A new secret, as it is shown to the seller, once.
pub(super) fn new_secret() -> SecretString {
    let bytes: [u8; SECRET_BYTES] = rand::random();
    format!("{PREFIX}{}", STANDARD.encode(bytes)).into()
}

/// The header `webhook-signature`: one signature for each secret. `None` if a secret is none of ours.
pub(super) fn sign(secrets: &[SecretString], id: &str, timestamp_s: i64, body: &str) -> Option<String> {
    let signed: Option<Vec<String>> = secrets.iter().map(|secret| sign_with(secret, id, timestamp_s, body)).collect();
    signed.map(|signatures| signatures.join(" "))
}

fn sign_with(secret: &SecretString, id: &str, timestamp_s: i64, body: &str) -> Option<String> {
    let key = STANDARD.decode(secret.expose_secret().strip_prefix(PREFIX)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp_s}.{body}").as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &str = r#"{"test": 2432232314}"#;

    #[test]
    fn signs_as_the_published_example_does() {
        let secret: SecretString = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into();
        let signature = sign(&[secret], ID, 1_614_265_330, BODY).unwrap();
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_secrets_sign_side_by_side() {
        let (one, two) = (new_secret(), new_secret());
        let both = sign(&[one.clone(), two.clone()], ID, 1, BODY).unwrap();
        let single = |secret| sign(&[secret], ID, 1, BODY).unwrap();
        assert_eq!(both, format!("{} {}", single(one), single(two)));
    }

    #[test]
    fn secrets_are_long_and_new() {
        let (one, two) = (new_secret(), new_secret());
        assert_ne!(one.expose_secret(), two.expose_secret());
        let bytes = STANDARD.decode(one.expose_secret().strip_prefix(PREFIX).unwrap()).unwrap();
        assert!((24..=64).contains(&bytes.len()));
        assert!(sign(&["no secret".into()], ID, 1, BODY).is_none());
    }
}
