//! Sealing: AES-256-GCM under the configured key, for what must not be readable at rest.
//!
//! A sealed text is base64 of a fresh 96-bit nonce followed by the ciphertext. The context (whose record it is) is
//! authenticated with it, so a sealed value moved to another record does not open.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};

use crate::error::{Error, Result};

const NONCE_BYTES: usize = 12;

/// Seals and opens.
#[derive(Clone)]
pub struct Sealer(Aes256Gcm);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(***)")
    }
}

impl Sealer {
    /// From 32 bytes in base64; `None` if the text is not that.
    #[must_use]
    pub fn new(key: &SecretString) -> Option<Self> {
        let bytes = STANDARD.decode(key.expose_secret().trim()).ok()?;
        Aes256Gcm::new_from_slice(&bytes).ok().map(Self)
    }

    /// Seals a text for one context.
    ///
    /// # Errors
    /// [`Error::Internal`] if the cipher refuses, which it does not for texts of this size.
    pub fn seal(&self, context: &str, text: &str) -> Result<String> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload { msg: text.as_bytes(), aad: context.as_bytes() };
        let sealed = self
            .0
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| Error::Internal { doing: "sealing", source: None })?;
        Ok(STANDARD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Opens what [`Self::seal`] made for the same context.
    ///
    /// # Errors
    /// [`Error::Internal`] when the key, the context or the text is another one.
    pub fn open(&self, context: &str, sealed: &str) -> Result<String> {
        let broken = || Error::Internal { doing: "opening a sealed value", source: None };
        let bytes = STANDARD.decode(sealed).map_err(|_| broken())?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(broken)?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        let text = self.0.decrypt(&Nonce::from(*nonce), payload).map_err(|_| broken())?;
        String::from_utf8(text).map_err(|_| broken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer() -> Sealer {
        Sealer::new(&STANDARD.encode([7_u8; 32]).into()).unwrap()
    }

    #[test]
    fn opens_only_in_its_own_context_and_never_repeats() {
        let sealer = sealer();
        let (one, two) = (sealer.seal("a", "12345").unwrap(), sealer.seal("a", "12345").unwrap());
        assert_ne!(one, two);
        assert_eq!(sealer.open("a", &one).unwrap(), "12345");
        assert!(sealer.open("b", &one).is_err());
        assert!(sealer.open("a", "rubbish").is_err() && sealer.open("a", "").is_err());
    }

    #[test]
    fn keys_of_another_length_are_refused() {
        assert!(Sealer::new(&STANDARD.encode([7_u8; 16]).into()).is_none());
        assert!(Sealer::new(&"".into()).is_none());
    }
}
