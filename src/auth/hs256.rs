//! The one way in which session tokens are signed: HMAC with SHA-256.
//!
//! The token library is given this and nothing else, so a token that names another algorithm cannot be checked, let alone
//! pass; and a build needs no second cryptography library.

use hmac::{Hmac, KeyInit as _, Mac as _};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use sha2::Sha256;
use signature::{Signer, Verifier};

/// Makes the token library sign and check with HS256 in this process. Doing it again does nothing.
pub(super) fn install() {
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, EncodingKey::as_bytes(key))?)),
        verifier_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, DecodingKey::try_get_as_bytes(key)?)?)),
        key_utils: KeyUtils::new_unimplemented(),
    };
    let _installed_before = PROVIDER.install_default();
}

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, secret: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        let keyed = Hmac::new_from_slice(secret).map_err(|_| Error::from(ErrorKind::InvalidKeyFormat))?;
        Ok(Self(keyed))
    }

    fn over(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.over(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        // In constant time.
        self.over(message).verify_slice(signature).map_err(signature::Error::from_source)
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
