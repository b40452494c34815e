//! Session tokens: JWT, HS256 and nothing else.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::domain::account::{EmailAddress, Role, Standing};
use crate::domain::ids::UserId;
use crate::error::{Code, Error, Result};

/// What a token says. The names are those that existing clients know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claims {
    /// The account.
    #[serde(rename = "_id")]
    pub user: UserId,
    /// Its address.
    #[serde(rename = "emailId")]
    pub email: EmailAddress,
    /// Its role when the token was made.
    pub role: Role,
    /// Whether the address was proved.
    #[serde(rename = "isEmailVerified")]
    pub email_verified: bool,
    /// Whether the account was active.
    #[serde(rename = "isActive")]
    pub active: bool,
    /// Whether the account was approved.
    #[serde(rename = "isApproved")]
    pub approved: bool,
    /// Who made it.
    pub iss: String,
    /// Whom it is for.
    pub aud: String,
    /// When it was made, in seconds since 1970.
    pub iat: i64,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
    /// Its own id, for sign-out.
    pub jti: String,
}

impl Claims {
    /// What the account might do when the token was made.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        Standing { role: self.role, active: self.active, approved: self.approved, email_verified: self.email_verified }
    }
}

/// Makes and checks tokens.
#[derive(Clone)]
pub struct Tokens {
    encoding: EncodingKey,
    decoding: DecodingKey,
    validation: Validation,
    issuer: String,
    audience: String,
    ttl_s: i64,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Tokens under the configured secret.
    ///
    /// # Errors
    /// When the library refuses the secret, which a validated configuration does not have.
    pub fn new(config: &crate::config::Auth) -> Result<Self> {
        super::hs256::install();
        let secret = config.jwt_secret.expose_secret().as_bytes();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = 0;
        validation.set_issuer(&[&config.issuer]);
        validation.set_audience(&[&config.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let refused = |error| Error::internal("reading auth.jwt_secret", error);
        Ok(Self {
            encoding: EncodingKey::from_secret(secret).map_err(refused)?,
            decoding: DecodingKey::from_secret(secret).map_err(refused)?,
            validation,
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            ttl_s: i64::try_from(config.session_ttl_s).unwrap_or(7200),
        })
    }

    /// How long a session lasts, in seconds.
    #[must_use]
    pub const fn ttl_s(&self) -> i64 {
        self.ttl_s
    }

    /// Makes a token.
    ///
    /// # Errors
    /// [`Error::Internal`] if signing fails.
    pub fn issue(&self, user: UserId, email: &EmailAddress, standing: Standing, now_s: i64) -> Result<String> {
        let claims = Claims {
            user,
            email: email.clone(),
            role: standing.role,
            email_verified: standing.email_verified,
            active: standing.active,
            approved: standing.approved,
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            iat: now_s,
            exp: now_s + self.ttl_s,
            jti: uuid::Uuid::new_v4().simple().to_string(),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .map_err(|error| Error::internal("signing a token", error))
    }

    /// Checks a token: signature, algorithm, issuer, audience, end.
    ///
    /// # Errors
    /// [`Code::SessionExpired`] whatever is wrong with it.
    pub fn verify(&self, token: &str) -> Result<Claims> {
        jsonwebtoken::decode::<Claims>(token, &self.decoding, &self.validation)
            .map(|data| data.claims)
            .map_err(|_| Error::refused(Code::SessionExpired, "session expired"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    fn tokens() -> Tokens {
        Tokens::new(&crate::config::Config::with_layer(crate::config::TEST).unwrap().auth).unwrap()
    }

    fn issue(tokens: &Tokens, now_s: i64) -> String {
        let standing = Standing { role: Role::Buyer, active: true, approved: true, email_verified: true };
        tokens.issue(UserId::from_bytes([1; 12]), &EmailAddress::normalise("a@b.example"), standing, now_s).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "the library compares with the machine's clock")]
    fn now_s() -> i64 {
        chrono::Utc::now().timestamp()
    }

    #[test]
    fn only_our_own_unexpired_hs256_tokens_pass() {
        let tokens = tokens();
        let good = issue(&tokens, now_s());
        assert_eq!(tokens.verify(&good).unwrap().role, Role::Buyer);

        let (head, rest) = good.split_once('.').unwrap();
        let (body, signature) = rest.split_once('.').unwrap();
        let with_header = |header: &str| format!("{}.{body}.{signature}", URL_SAFE_NO_PAD.encode(header));
        let mut forged = vec![
            format!("{head}.{body}."),
            format!("{head}.{body}"),
            with_header(r#"{"alg":"none","typ":"JWT"}"#),
            with_header(r#"{"alg":"RS256","typ":"JWT"}"#),
            with_header(r#"{"alg":"HS384","typ":"JWT"}"#),
            with_header(r#"{"alg":"HS512","typ":"JWT"}"#),
            with_header(r#"{"alg":"HS256","typ":"JWT","kid":"../../dev/null"}"#),
            issue(&tokens, now_s() - 7201),
            String::new(),
            "a.b.c".to_owned(),
        ];
        let key = EncodingKey::from_secret("a secret that only tests use, long enough".as_bytes()).unwrap();
        for (iss, aud) in [("other", "orbit"), ("orbit", "other")] {
            let mut claims = tokens.verify(&good).unwrap();
            (claims.iss, claims.aud) = (iss.to_owned(), aud.to_owned());
            forged.push(jsonwebtoken::encode(&Header::default(), &claims, &key).unwrap());
        }
        for token in forged {
            assert_eq!(tokens.verify(&token).unwrap_err().code(), Code::SessionExpired, "{token}");
        }
    }
}
