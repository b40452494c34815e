//! Voucher codes at rest: sealed with AES-256-GCM, and hashed with a key so that they can be found and compared.
//!
//! What is written is `v1:<key id>:<base64 of nonce and ciphertext>`. Unit and field are authenticated with it, so a
//! ciphertext that was moved to another unit or field does not open. Nonces are fresh and random (96 bits); a key should
//! seal fewer than 2^32 values (NIST SP 800-38D, 8.3), and is replaced by `orbit voucher rekey`.
//!
//! What older installations wrote is read as well: base64 of nonce and ciphertext under the SHA-256 of their `APP_KEY`, and
//! codes that were stored as they are.

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::auth::seal::Sealer;
use crate::config::{self, named_key};
use crate::domain::voucher::{Secrets, UnitId};
use crate::error::{Error, Result};
use crate::store::mongo::vouchers::units::SealedSecrets;

/// The name of the key that seals when no other is configured.
const DATA_KEY_ID: &str = "data";
const VERSION: &str = "v1";
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Every key of the configuration.
pub struct Keyring {
    /// The first seals, all open.
    keys: Vec<(String, Sealer)>,
    hash_key: [u8; 32],
    legacy: Option<Aes256Gcm>,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("any length will do"));
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Keyring {
    /// From the configuration. Without keys of their own, vouchers are sealed with the key of account data.
    ///
    /// # Errors
    /// When a key is not 32 bytes in base64.
    pub fn new(config: &config::Vouchers, data_key: &SecretString) -> Result<Self> {
        let broken = || Error::internal("reading voucher keys", "a key is not 32 bytes in base64");
        let mut named: Vec<(String, SecretString)> =
            config.keys.iter().map(|key| named_key(key).ok_or_else(broken)).collect::<Result<_>>()?;
        // Always the last: what it sealed before there were others still opens.
        named.push((DATA_KEY_ID.to_owned(), data_key.clone()));
        let sealer =
            |(id, key): (String, SecretString)| Sealer::new(&key).map(|sealer| (id, sealer)).ok_or_else(broken);
        let keys = named.into_iter().map(sealer).collect::<Result<Vec<_>>>()?;
        let hash_key = match config.hash_key.expose_secret() {
            "" => keyed(data_key.expose_secret().as_bytes(), &[b"voucher hashes"]),
            key => keyed(key.as_bytes(), &[b"voucher hashes"]),
        };
        let app_key = config.app_key.expose_secret();
        let legacy = (!app_key.is_empty()).then(|| Aes256Gcm::new(&Sha256::digest(app_key.as_bytes())));
        Ok(Self { keys, hash_key, legacy })
    }

    fn seal_text(&self, unit: UnitId, field: &str, text: &str) -> Result<String> {
        let (id, sealer) = self.keys.first().ok_or_else(|| Error::internal("sealing", "there is no key"))?;
        let sealed = sealer.seal(&context(unit, field), text)?;
        Ok(format!("{VERSION}:{id}:{sealed}"))
    }

    fn open_text(&self, unit: UnitId, field: &str, sealed: &str) -> Result<String> {
        let mut parts = sealed.splitn(3, ':');
        if let (Some(VERSION), Some(id), Some(sealed)) = (parts.next(), parts.next(), parts.next()) {
            let sealer = self.keys.iter().find(|(known, _)| known == id).map(|(_, sealer)| sealer);
            let unknown = || Error::internal("opening a voucher", format!("no key is named {id}"));
            return sealer.ok_or_else(unknown)?.open(&context(unit, field), sealed);
        }
        Ok(self.open_legacy(sealed).unwrap_or_else(|| sealed.to_owned()))
    }

    fn open_legacy(&self, sealed: &str) -> Option<String> {
        let bytes = STANDARD.decode(sealed).ok().filter(|bytes| bytes.len() >= NONCE_BYTES + TAG_BYTES)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        String::from_utf8(self.legacy.as_ref()?.decrypt(&Nonce::from(*nonce), sealed).ok()?).ok()
    }

    /// Seals a unit's secrets.
    ///
    /// # Errors
    /// [`Error::Internal`] if the cipher refuses, which it does not for texts of this size.
    pub fn seal(&self, unit: UnitId, secrets: &Secrets) -> Result<SealedSecrets> {
        let seal = |field: &str, secret: &Option<SecretString>| {
            secret.as_ref().map(|secret| self.seal_text(unit, field, secret.expose_secret())).transpose()
        };
        Ok(SealedSecrets {
            code: seal("code", &secrets.code)?,
            pin: seal("pin", &secrets.pin)?,
            claim_url: seal("claimUrl", &secrets.claim_url)?,
            voucher_reference: seal("voucherReference", &secrets.reference)?,
        })
    }

    /// Opens what [`Self::seal`] made for the same unit.
    ///
    /// # Errors
    /// [`Error::Internal`] when a key is missing, or the text belongs to another unit or field.
    pub fn open(&self, unit: UnitId, sealed: &SealedSecrets) -> Result<Secrets> {
        let open = |field: &str, sealed: &Option<String>| {
            let opened = sealed.as_ref().map(|sealed| self.open_text(unit, field, sealed));
            opened.transpose().map(|text| text.map(SecretString::from))
        };
        Ok(Secrets {
            code: open("code", &sealed.code)?,
            pin: open("pin", &sealed.pin)?,
            claim_url: open("claimUrl", &sealed.claim_url)?,
            reference: open("voucherReference", &sealed.voucher_reference)?,
        })
    }

    /// Whether everything of it is sealed with the key that seals now.
    #[must_use]
    pub fn is_current(&self, sealed: &SealedSecrets) -> bool {
        let Some((id, _)) = self.keys.first() else { return false };
        let start = format!("{VERSION}:{id}:");
        let SealedSecrets { code, pin, claim_url, voucher_reference } = sealed;
        [code, pin, claim_url, voucher_reference].into_iter().flatten().all(|text| text.starts_with(&start))
    }

    /// A keyed hash of a code, to find its unit by: 64 hex digits.
    #[must_use]
    pub fn code_hash(&self, code: &SecretString) -> String {
        hex(&keyed(&self.hash_key, &[b"code\0", code.expose_secret().as_bytes()]))
    }

    /// A keyed hash over `code|pin|link|reference`, in which `|` and `\` have a `\` before them: the same code never comes
    /// in twice.
    #[must_use]
    pub fn checksum(&self, secrets: &Secrets) -> [u8; 32] {
        let part = |secret: &Option<SecretString>| {
            let text = secret.as_ref().map_or("", |secret| secret.expose_secret());
            text.replace('\\', "\\\\").replace('|', "\\|")
        };
        let all = [&secrets.code, &secrets.pin, &secrets.claim_url, &secrets.reference].map(part).join("|");
        keyed(&self.hash_key, &[b"checksum\0", all.as_bytes()])
    }

    /// [`Self::checksum`] as it is stored: 64 hex digits.
    #[must_use]
    pub fn checksum_text(&self, secrets: &Secrets) -> String {
        hex(&self.checksum(secrets))
    }
}

fn context(unit: UnitId, field: &str) -> String {
    format!("voucher {unit} {field}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(keys: &[&str], app_key: &str) -> Keyring {
        let mut config = crate::config::Config::with_layer(crate::config::TEST).unwrap().vouchers;
        config.keys = keys.iter().map(|key| (*key).into()).collect();
        config.app_key = app_key.into();
        Keyring::new(&config, &STANDARD.encode([9_u8; 32]).into()).unwrap()
    }

    fn key(id: &str, byte: u8) -> String {
        format!("{id}:{}", STANDARD.encode([byte; 32]))
    }

    fn secrets(code: &str) -> Secrets {
        Secrets { code: Some(code.into()), pin: Some("0042".into()), ..Secrets::default() }
    }

    fn code(secrets: &Secrets) -> &str {
        secrets.code.as_ref().unwrap().expose_secret()
    }

    #[test]
    fn a_ciphertext_opens_only_where_it_was_made_and_never_repeats() {
        let ring = keyring(&[], "");
        let (one, two) = (UnitId::new(1), UnitId::new(2));
        let sealed = ring.seal(one, &secrets("AAAA-1111")).unwrap();
        assert_ne!(sealed, ring.seal(one, &secrets("AAAA-1111")).unwrap());
        assert_eq!(code(&ring.open(one, &sealed).unwrap()), "AAAA-1111");
        assert!(ring.open(two, &sealed).is_err(), "moved to another unit");
        let swapped = SealedSecrets { code: sealed.pin.clone(), pin: sealed.code.clone(), ..sealed };
        assert!(ring.open(one, &swapped).is_err(), "moved to another field");
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_still_opens() {
        let old = keyring(&[&key("a", 1)], "");
        let sealed = old.seal(UnitId::new(1), &secrets("X")).unwrap();
        let both = keyring(&[&key("b", 2), &key("a", 1)], "");
        assert_eq!(code(&both.open(UnitId::new(1), &sealed).unwrap()), "X");
        assert!(!both.is_current(&sealed));
        assert!(both.is_current(&both.seal(UnitId::new(1), &secrets("X")).unwrap()));
        let error = keyring(&[&key("b", 2)], "").open(UnitId::new(1), &sealed).unwrap_err();
        assert!(!format!("{error:?}").contains("v1:"), "{error:?}");
    }

    #[test]
    fn what_older_installations_wrote_is_read() {
        let cipher = Aes256Gcm::new(&Sha256::digest(b"their secret"));
        let nonce = [3_u8; NONCE_BYTES];
        let sealed = cipher.encrypt(&Nonce::from(nonce), b"OLD-1".as_slice()).unwrap();
        let stored = STANDARD.encode([nonce.as_slice(), &sealed].concat());
        let sealed = |text: &str| SealedSecrets { code: Some(text.to_owned()), ..SealedSecrets::default() };
        let ring = keyring(&[], "their secret");
        assert_eq!(code(&ring.open(UnitId::new(1), &sealed(&stored)).unwrap()), "OLD-1");
        assert_eq!(code(&ring.open(UnitId::new(1), &sealed("PLAIN-7")).unwrap()), "PLAIN-7");
        assert!(!ring.is_current(&sealed("PLAIN-7")));
    }

    #[test]
    fn checksums_tell_codes_apart_and_nothing_without_the_key() {
        let ring = keyring(&[], "");
        let of = |code: &str, pin: &str| {
            ring.checksum(&Secrets { code: Some(code.into()), pin: Some(pin.into()), ..Secrets::default() })
        };
        assert_eq!(of("A", "B"), of("A", "B"));
        assert_ne!(of("A|B", ""), of("A", "B|"));
        assert_ne!(of("A|B", ""), of("A", "B"));
        let mut config = crate::config::Config::with_layer(crate::config::TEST).unwrap().vouchers;
        config.hash_key = "0123456789abcdef0123456789abcdef".into();
        let other = Keyring::new(&config, &STANDARD.encode([9_u8; 32]).into()).unwrap();
        assert_ne!(ring.checksum_text(&secrets("A")), other.checksum_text(&secrets("A")));
        assert_ne!(ring.code_hash(&"A".into()), other.code_hash(&"A".into()));
    }
}
