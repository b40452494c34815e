//! Signatures of callbacks: HMAC-SHA256 over the moment and the raw body, compared in constant time.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::{ExposeSecret, SecretString};
use crate::error::{Code, Error, Result};

/// More signatures than this in one header are somebody's attempt to keep us busy.
const SIGNATURES_MAX: usize = 8;

/// What callbacks are signed with, and how old a signature may be.
#[derive(Debug, Clone)]
pub(super) struct Signing {
    secrets: Vec<SecretString>,
    tolerance_s: i64,
}

impl Signing {
    /// More than one secret while one is being replaced by another.
    pub(super) const fn new(secrets: Vec<SecretString>, tolerance_s: u32) -> Self {
        Self { secrets, tolerance_s: tolerance_s as i64 }
    }

    /// Stripe's scheme: `t=seconds,v1=hex[,v1=hex...]` over `t.body`. Whatever else the header has is ignored: `v0` is for
    /// test events.
    pub(super) fn check_stripe(&self, header: &str, body: &[u8], now: DateTime<Utc>) -> Result<()> {
        let parts = || header.split(',').filter_map(|part| part.trim().split_once('='));
        let (_, seconds) = parts().find(|(name, _)| *name == "t").ok_or_else(refused)?;
        self.check_moment(seconds, now)?;
        let given = parts().filter(|(name, _)| *name == "v1").filter_map(|(_, hex)| from_hex(hex));
        self.check(given, &[seconds.as_bytes(), b".", body])
    }

    /// The sandbox's scheme: `v1,base64` over `id.seconds.body`.
    pub(super) fn check_webhook(
        &self,
        (id, seconds, header): (&str, &str, &str),
        body: &[u8],
        now: DateTime<Utc>,
    ) -> Result<()> {
        self.check_moment(seconds, now)?;
        let given = header.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
        self.check(given, &[id.as_bytes(), b".", seconds.as_bytes(), b".", body])
    }

    /// Signs as [`Self::check_webhook`] expects it, with the first secret.
    pub(super) fn sign_webhook(&self, id: &str, seconds: &str, body: &[u8]) -> Result<String> {
        let none = || Error::internal("signing a sandbox event", "there is no secret");
        let mac = keyed(self.secrets.first().ok_or_else(none)?);
        let mac = over(mac, &[id.as_bytes(), b".", seconds.as_bytes(), b".", body]);
        Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }

    fn check_moment(&self, seconds: &str, now: DateTime<Utc>) -> Result<()> {
        let signed_at: i64 = seconds.parse().map_err(|_| refused())?;
        let age_s = now.timestamp().checked_sub(signed_at).ok_or_else(refused)?;
        if age_s.unsigned_abs() > self.tolerance_s.unsigned_abs() {
            return Err(Error::refused(
                Code::BadSignature,
                "the callback was signed too long ago, or by another clock",
            ));
        }
        Ok(())
    }

    fn check(&self, given: impl Iterator<Item = Vec<u8>>, signed: &[&[u8]]) -> Result<()> {
        let given: Vec<Vec<u8>> = given.take(SIGNATURES_MAX).collect();
        let good = |secret: &SecretString| {
            let mac = over(keyed(secret), signed);
            given.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
        };
        if self.secrets.iter().any(good) { Ok(()) } else { Err(refused()) }
    }
}

fn refused() -> Error {
    Error::refused(Code::BadSignature, "the callback is not signed by the payment gateway")
}

fn keyed(secret: &SecretString) -> Hmac<Sha256> {
    // A key of any length is one.
    Hmac::new_from_slice(secret.expose_secret().as_bytes()).unwrap_or_else(|_| unreachable!("HMAC takes any key"))
}

fn over(mut mac: Hmac<Sha256>, parts: &[&[u8]]) -> Hmac<Sha256> {
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;
    const SECRET: &str = "whsec_0123456789abcdef";
    /// `printf '1700000000.{"id":"evt_1","object":"event"}' | openssl dgst -sha256 -hmac whsec_0123456789abcdef`
    const BY_OPENSSL: &str = "72e471be2e284f3e2fd818c4c1b8a5914f7d3e997665d037910c446c5925043b";

    fn signing(secrets: &[&str]) -> Signing {
        Signing::new(secrets.iter().map(|secret| (*secret).to_owned().into()).collect(), 300)
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn stripe(secrets: &[&str], header: &str, body: &[u8], now: i64) -> bool {
        signing(secrets).check_stripe(header, body, at(now)).is_ok()
    }

    #[test]
    fn the_published_scheme_is_what_openssl_computes() {
        let header = format!("t=1700000000,v1={BY_OPENSSL},v0=00");
        assert!(stripe(&[SECRET], &header, BODY, 1_700_000_100));
        assert!(
            stripe(&["whsec_the_new_one", SECRET], &header, BODY, 1_700_000_100),
            "while a secret is being changed"
        );
        let twice = format!("t=1700000000,v1={},v1={BY_OPENSSL}", "00".repeat(32));
        assert!(stripe(&[SECRET], &twice, BODY, 1_700_000_100), "while the gateway changes it");
    }

    #[test]
    fn whatever_differs_is_refused() {
        let good = format!("t=1700000000,v1={BY_OPENSSL}");
        assert!(!stripe(&["whsec_of_somebody_else"], &good, BODY, 1_700_000_000));
        assert!(!stripe(&[], &good, BODY, 1_700_000_000));
        assert!(!stripe(&[SECRET], &good, br#"{"id":"evt_2","object":"event"}"#, 1_700_000_000));
        assert!(!stripe(&[SECRET], &good.replace("t=1700000000", "t=1700000001"), BODY, 1_700_000_000));
        let odd =
            ["", "t=1700000000", "v1=00", "t=x,v1=00", "t=1700000000,v1=", "t=1700000000,v1=zz", "t=1700000000,v1=é"];
        for header in odd {
            assert!(!stripe(&[SECRET], header, BODY, 1_700_000_000), "{header}");
        }
        let truncated = format!("t=1700000000,v1={}", &BY_OPENSSL[..62]);
        assert!(!stripe(&[SECRET], &truncated, BODY, 1_700_000_000));
        assert!(!stripe(&[SECRET], &format!("t=1700000000,v0={BY_OPENSSL}"), BODY, 1_700_000_000));
    }

    #[test]
    fn a_signature_is_good_for_the_tolerance_in_both_directions_and_no_longer() {
        let header = format!("t=1700000000,v1={BY_OPENSSL}");
        for (now, good) in
            [(1_700_000_300, true), (1_700_000_301, false), (1_699_999_700, true), (1_699_999_699, false)]
        {
            assert_eq!(stripe(&[SECRET], &header, BODY, now), good, "{now}");
        }
        let absurd = format!("t={},v1={BY_OPENSSL}", i64::MIN);
        assert!(!stripe(&[SECRET], &absurd, BODY, 1_700_000_000));
    }

    #[test]
    fn what_the_sandbox_signs_is_good_and_nothing_else_is() {
        let signing = signing(&[SECRET]);
        let signature = signing.sign_webhook("evt_1", "1700000000", BODY).unwrap();
        let check = |id: &str, seconds: &str, header: &str, body: &[u8]| {
            signing.check_webhook((id, seconds, header), body, at(1_700_000_000)).is_ok()
        };
        assert!(check("evt_1", "1700000000", &format!("v1,bm8= {signature}"), BODY));
        assert!(!check("evt_2", "1700000000", &signature, BODY));
        assert!(!check("evt_1", "1700000001", &signature, BODY));
        assert!(!check("evt_1", "1700000000", &signature, b"{}"));
        assert!(!check("evt_1", "1700000000", "v1,", BODY) && !check("evt_1", "1700000000", "", BODY));
    }
}
