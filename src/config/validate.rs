//! What makes a configuration usable, across all sections. Each problem is a sentence that says what to do.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::{Config, ConfigError, Durability, Gateway, MediaBackend};

impl Config {
    /// Checks every rule and reports all broken ones together.
    ///
    /// # Errors
    /// One sentence for each setting that cannot be used.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        self.check_secrets(&mut problems);
        self.check_limits(&mut problems);
        self.check_stores(&mut problems);
        self.check_media(&mut problems);
        self.check_webhooks(&mut problems);
        self.check_payment(&mut problems);
        self.check_vouchers(&mut problems);
        self.check_prefetch(&mut problems);
        if problems.is_empty() { Ok(()) } else { Err(ConfigError { problems }) }
    }

    /// What is allowed but probably not meant; logged at start.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.auth.cookie_secure {
            warnings.push("auth.cookie_secure is false: session cookies travel over plain HTTP".to_owned());
        }
        if self.auth.bcrypt_cost < 10 {
            warnings.push(format!("auth.bcrypt_cost is {}: password hashes are cheap to guess", self.auth.bcrypt_cost));
        }
        if self.webhooks.allow_private {
            warnings
                .push("webhooks.allow_private is true: sellers can have requests sent into your network".to_owned());
        }
        if self.live.durability == Durability::None {
            warnings.push(format!("live.durability is \"none\": {}", Durability::None.at_risk()));
        }
        if self.payment.gateway == Gateway::Sandbox {
            warnings.push(
                "payment.gateway is \"sandbox\": anybody can mark any reservation as paid, for nothing".to_owned(),
            );
        }
        if self.prefetch.allow_http {
            warnings
                .push("prefetch.allow_http is true: voucher codes can be read on their way from a vendor".to_owned());
        }
        if self.prefetch.allow_private {
            warnings.push(
                "prefetch.allow_private is true: administrators can have requests sent into your network".to_owned(),
            );
        }
        if self.prefetch.sandbox {
            warnings.push("prefetch.sandbox is true: codes that are worth nothing can come into stock".to_owned());
        }
        if self.server.streams_max >= self.server.connections_max {
            warnings.push(
                "server.streams_max is not below server.connections_max: listeners can keep everybody else out"
                    .to_owned(),
            );
        }
        warnings
    }

    fn check_secrets(&self, problems: &mut Vec<String>) {
        if self.auth.jwt_secret.expose_secret().len() < 32 {
            problems.push(
                "auth.jwt_secret must have at least 32 bytes; make one with `openssl rand -base64 48` and set \
                 ORBIT__AUTH__JWT_SECRET"
                    .to_owned(),
            );
        }
        if crate::auth::seal::Sealer::new(&self.accounts.data_key).is_none() {
            problems.push(
                "accounts.data_key must be 32 bytes in base64; make one with `openssl rand -base64 32` and set \
                 ORBIT__ACCOUNTS__DATA_KEY"
                    .to_owned(),
            );
        }
        if !(4..=16).contains(&self.auth.bcrypt_cost) {
            problems.push("auth.bcrypt_cost must be from 4 to 16; 12 is right for production".to_owned());
        }
        let admin = &self.accounts;
        if !admin.bootstrap_admin_email.is_empty() && admin.bootstrap_admin_password.expose_secret().is_empty() {
            problems.push("accounts.bootstrap_admin_password is missing; set it together with the e-mail".to_owned());
        }
    }

    fn check_limits(&self, problems: &mut Vec<String>) {
        let positive: [(&str, u64); 31] = [
            ("server.connections_max", self.server.connections_max as u64),
            ("server.header_timeout_ms", self.server.header_timeout_ms),
            ("server.body_idle_timeout_ms", self.server.body_idle_timeout_ms),
            ("server.write_timeout_ms", self.server.write_timeout_ms),
            ("server.streams_max", self.server.streams_max as u64),
            ("server.request_timeout_ms", self.server.request_timeout_ms),
            ("server.body_bytes_max", self.server.body_bytes_max as u64),
            ("server.list_items_max", u64::from(self.server.list_items_max)),
            ("mongo.deadline_ms", self.mongo.deadline_ms),
            ("live.deadline_ms", self.live.deadline_ms),
            ("live.purchase_deadline_ms", self.live.purchase_deadline_ms),
            ("live.purchases_in_flight_max", self.live.purchases_in_flight_max as u64),
            ("live.purchase_wait_ms", self.live.purchase_wait_ms),
            ("live.connections", self.live.connections as u64),
            ("live.replicas_min", self.live.replicas_min as u64),
            ("live.replicas_wait_ms", self.live.replicas_wait_ms),
            ("sale.workers", self.sale.workers as u64),
            ("sale.channel_capacity", self.sale.channel_capacity as u64),
            ("sale.attempts_max", u64::from(self.sale.attempts_max)),
            ("sale.settle_page_size_max", self.sale.settle_page_size_max as u64),
            ("sale.opening_ttl_ms", self.sale.opening_ttl_ms),
            ("sale.end_answer_ms", self.sale.end_answer_ms),
            ("sale.sweep_interval_ms", self.sale.sweep_interval_ms),
            ("sale.schedule_interval_ms", self.sale.schedule_interval_ms),
            ("sale.drain_interval_ms", self.sale.drain_interval_ms),
            ("sale.drain_takeover_ms", self.sale.drain_takeover_ms),
            ("sale.recovery_interval_ms", self.sale.recovery_interval_ms),
            ("sale.lease_ttl_ms", self.sale.lease_ttl_ms),
            ("auth.revocation_poll_ms", self.auth.revocation_poll_ms),
            ("media.decode_workers", self.media.decode_workers as u64),
            ("media.deadline_ms", self.media.deadline_ms),
        ];
        problems.extend(
            positive.iter().filter(|(_, value)| *value == 0).map(|(name, _)| format!("{name} must be at least 1")),
        );
        if !(1..=1000).contains(&self.sale.batch_size_max) {
            problems
                .push("sale.batch_size_max must be from 1 to 1000, so that no script holds Redis for long".to_owned());
        }
        if self.auth.revocation_poll_ms > 500 {
            problems.push(
                "auth.revocation_poll_ms must be at most 500: a revocation takes effect within a second".to_owned(),
            );
        }
        if self.live.purchase_wait_ms.saturating_add(self.live.purchase_deadline_ms) >= self.server.request_timeout_ms {
            let rule =
                "live.purchase_wait_ms and live.purchase_deadline_ms together must be below server.request_timeout_ms";
            problems.push(rule.to_owned());
        }
        if self.sale.end_answer_ms >= self.server.long_request_timeout_ms {
            problems.push(
                "sale.end_answer_ms must be below server.long_request_timeout_ms, or an End is never answered"
                    .to_owned(),
            );
        }
        if Duration::from_millis(self.sale.opening_ttl_ms) < Duration::from_millis(2 * self.live.deadline_ms) {
            problems.push(
                "sale.opening_ttl_ms must be at least twice live.deadline_ms, or a slow call loses an opening"
                    .to_owned(),
            );
        }
    }

    fn check_stores(&self, problems: &mut Vec<String>) {
        let mongo = self.mongo.uri.expose_secret();
        if !mongo.starts_with("mongodb://") && !mongo.starts_with("mongodb+srv://") {
            problems.push("mongo.uri must start with mongodb:// or mongodb+srv://".to_owned());
        }
        let redis = self.live.url.expose_secret();
        if !["redis://", "rediss://"].iter().any(|scheme| redis.starts_with(scheme)) {
            problems.push("live.url must look like redis://[user:password@]host:port/0".to_owned());
        }
        let missing = [
            ("srv", cfg!(feature = "srv"), mongo.starts_with("mongodb+srv://"), "mongo.uri needs a DNS lookup"),
            ("s3", cfg!(feature = "s3"), self.media.backend == MediaBackend::S3, "media.backend is \"s3\""),
        ];
        for (feature, built, needed, what) in missing {
            if needed && !built {
                problems.push(format!(
                    "{what}, and this binary was built without the feature `{feature}`; build it with --features full"
                ));
            }
        }
        if self.live.key_prefix.contains(['{', '}']) {
            problems.push("live.key_prefix must not contain braces: they would move an event's keys apart".to_owned());
        }
        let waits = self.live.durability == Durability::Replicas;
        if waits && self.live.replicas_wait_ms >= self.live.purchase_deadline_ms.min(self.live.deadline_ms) {
            let rule = "live.replicas_wait_ms must be below live.purchase_deadline_ms, which it is a part of, and below \
                        live.deadline_ms; half of the first leaves time for the decision";
            problems.push(rule.to_owned());
        }
        if crate::domain::money::currency(&self.catalogue.currency).is_none() {
            problems.push("catalogue.currency must be an ISO 4217 code such as INR".to_owned());
        }
    }

    fn check_webhooks(&self, problems: &mut Vec<String>) {
        let positive: [(&str, u64); 6] = [
            ("webhooks.endpoints_per_seller_max", self.webhooks.endpoints_per_seller_max as u64),
            ("webhooks.in_flight_max", self.webhooks.in_flight_max as u64),
            ("webhooks.in_flight_per_endpoint_max", self.webhooks.in_flight_per_endpoint_max as u64),
            ("webhooks.attempt_deadline_ms", self.webhooks.attempt_deadline_ms),
            ("webhooks.poll_interval_ms", self.webhooks.poll_interval_ms),
            ("webhooks.listeners_known_for_ms", self.webhooks.listeners_known_for_ms),
        ];
        let zero = positive.iter().filter(|(_, value)| *value == 0);
        problems.extend(zero.map(|(name, _)| format!("{name} must be at least 1")));
        if self.webhooks.claim_ttl_ms < 2 * self.webhooks.attempt_deadline_ms {
            let rule = "webhooks.claim_ttl_ms must be at least twice webhooks.attempt_deadline_ms, or one message is sent \
                        by two processes";
            problems.push(rule.to_owned());
        }
    }

    fn check_media(&self, problems: &mut Vec<String>) {
        if self.media.backend != MediaBackend::S3 {
            return;
        }
        let s3 = &self.media.s3;
        for (name, value) in [
            ("endpoint", s3.endpoint.as_str()),
            ("bucket", s3.bucket.as_str()),
            ("access_key_id", s3.access_key_id.as_str()),
            ("secret_access_key", s3.secret_access_key.expose_secret()),
        ] {
            if value.is_empty() {
                problems.push(format!("media.s3.{name} is missing, and media.backend is \"s3\""));
            }
        }
        if self.media.public_url.is_empty() {
            problems.push("media.public_url is missing: buyers need the bucket's public address".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, DEMO, Durability, TEST};

    #[test]
    fn the_test_layer_is_valid_and_the_bare_defaults_ask_for_their_secrets() {
        Config::with_layer(TEST).unwrap().validate().unwrap();
        let error = Config::with_layer(DEMO).unwrap().validate().unwrap_err();
        assert_eq!(error.problems.len(), 2, "{error}");
        assert!(error.to_string().contains("openssl rand"));
    }

    #[test]
    fn risky_pairs_are_refused() {
        let mut config = Config::with_layer(TEST).unwrap();
        config.live.key_prefix = "a{b".to_owned();
        config.live.purchase_deadline_ms = 60_000;
        config.auth.revocation_poll_ms = 5_000;
        assert_eq!(config.validate().unwrap_err().problems.len(), 3);
    }

    #[test]
    fn waiting_for_replicas_must_fit_into_a_purchase() {
        let mut config = Config::with_layer(TEST).unwrap();
        config.live.replicas_wait_ms = config.live.purchase_deadline_ms;
        config.validate().unwrap();
        config.live.durability = Durability::Replicas;
        let error = config.validate().unwrap_err();
        assert!(error.to_string().contains("live.replicas_wait_ms must be below"), "{error}");
        config.live.replicas_wait_ms -= 1;
        config.validate().unwrap();
        config.live.deadline_ms = config.live.replicas_wait_ms;
        assert_eq!(config.validate().unwrap_err().problems.len(), 1);
    }

    #[test]
    fn an_unknown_setting_is_named() {
        let error = Config::with_layer("[server]\nprot = 1\n").unwrap_err();
        assert!(error.to_string().contains("prot"), "{error}");
    }
}
