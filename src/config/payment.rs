//! Payment: who takes the money, and what makes that usable.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::Config;

/// Who takes the money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gateway {
    /// Nobody.
    None,
    /// A page with a button, for trials.
    Sandbox,
    /// Stripe, or what speaks its API.
    Stripe,
}

impl Gateway {
    /// The text in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sandbox => "sandbox",
            Self::Stripe => "stripe",
        }
    }
}

/// Payments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct Payment {
    pub gateway: Gateway,
    pub base_url: String,
    pub api_version: String,
    pub secret_key: SecretString,
    pub webhook_secrets: Vec<SecretString>,
    pub tolerance_s: u32,
    pub callback_bytes_max: usize,
    pub deadline_ms: u64,
    pub reconcile_interval_ms: u64,
    pub retry_pause_ms: u64,
    pub refund_attempts_max: u32,
}

/// A shorter secret could be guessed from one callback.
const WEBHOOK_SECRET_BYTES_MIN: usize = 16;

impl Config {
    pub(super) fn check_payment(&self, problems: &mut Vec<String>) {
        let payment = &self.payment;
        let positive = [
            ("tolerance_s", u64::from(payment.tolerance_s)),
            ("callback_bytes_max", payment.callback_bytes_max as u64),
            ("deadline_ms", payment.deadline_ms),
            ("reconcile_interval_ms", payment.reconcile_interval_ms),
            ("retry_pause_ms", payment.retry_pause_ms),
            ("refund_attempts_max", u64::from(payment.refund_attempts_max)),
        ];
        let zero = positive.iter().filter(|(_, value)| *value == 0);
        problems.extend(zero.map(|(name, _)| format!("payment.{name} must be at least 1")));
        if payment.webhook_secrets.iter().any(|secret| secret.expose_secret().len() < WEBHOOK_SECRET_BYTES_MIN) {
            problems.push(format!("payment.webhook_secrets must each have at least {WEBHOOK_SECRET_BYTES_MIN} bytes"));
        }
        match payment.gateway {
            Gateway::None => {}
            Gateway::Sandbox => {
                // Whatever is reached over HTTPS is taken for real.
                if self.auth.cookie_secure {
                    problems.push(
                        "payment.gateway \"sandbox\" lets anybody pay for nothing; it is refused where auth.cookie_secure \
                         is true"
                            .to_owned(),
                    );
                }
            }
            Gateway::Stripe => self.check_stripe(problems),
        }
    }

    fn check_stripe(&self, problems: &mut Vec<String>) {
        let payment = &self.payment;
        let local = ["http://127.0.0.1:", "http://localhost:"];
        let secure = payment.base_url.starts_with("https://");
        if !secure && !local.iter().any(|start| payment.base_url.starts_with(start)) {
            problems.push("payment.base_url must start with https://: the secret key travels over it".to_owned());
        }
        if !payment.api_version.bytes().all(|byte| byte.is_ascii_graphic()) {
            problems.push("payment.api_version must be a version such as 2025-09-30.clover, or empty".to_owned());
        }
        if payment.secret_key.expose_secret().is_empty() {
            problems.push("payment.secret_key is missing; set ORBIT__PAYMENT__SECRET_KEY".to_owned());
        }
        if payment.webhook_secrets.is_empty() {
            problems.push(
                "payment.webhook_secrets is empty: no callback could be trusted; set \
                 ORBIT__PAYMENT__WEBHOOK_SECRETS='[\"whsec_...\"]'"
                    .to_owned(),
            );
        }
        if payment.deadline_ms.saturating_mul(2) >= self.server.request_timeout_ms {
            problems.push("payment.deadline_ms must be below half of server.request_timeout_ms".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, TEST};
    use super::*;

    fn problems(change: impl FnOnce(&mut Config)) -> Vec<String> {
        let mut config = Config::with_layer(TEST).unwrap();
        change(&mut config);
        config.validate().err().map(|error| error.problems).unwrap_or_default()
    }

    #[test]
    fn the_sandbox_is_refused_where_money_may_be_real() {
        assert!(problems(|config| config.payment.gateway = Gateway::Sandbox).is_empty());
        let refused = problems(|config| config.auth.cookie_secure = true);
        assert!(refused.len() == 1 && refused[0].contains("anybody pay for nothing"), "{refused:?}");
    }

    #[test]
    fn a_gateway_needs_its_key_its_secrets_and_a_safe_way_there() {
        let bare = problems(|config| config.payment.gateway = Gateway::Stripe);
        assert_eq!(bare.len(), 2, "{bare:?}");
        let plain = problems(|config| {
            config.payment.gateway = Gateway::Stripe;
            config.payment.secret_key = "sk_test".into();
            config.payment.webhook_secrets = vec!["whsec_0123456789abcdef".into()];
            config.payment.base_url = "http://api.stripe.com".to_owned();
        });
        assert!(plain.len() == 1 && plain[0].contains("https://"), "{plain:?}");
        let odd = problems(|config| {
            config.payment.gateway = Gateway::Stripe;
            config.payment.secret_key = "sk_test".into();
            config.payment.webhook_secrets = vec!["whsec_0123456789abcdef".into()];
            config.payment.api_version = "2025-09-30\r\nx: y".to_owned();
        });
        assert!(odd.len() == 1 && odd[0].contains("api_version"), "{odd:?}");
        let short = problems(|config| config.payment.webhook_secrets = vec!["short".into()]);
        assert_eq!(short.len(), 1, "{short:?}");
    }
}
