//! Yardsticks: the least that a server has to do for what is asked of the pools, through one pipelined connection. They are
//! for measuring; nothing else uses them.

use std::time::{Duration, Instant};

use futures::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisError, Script};
use secrecy::ExposeSecret;

use super::Placement;
use super::keys::Keys;
use crate::config;
use crate::domain::ids::VoucherProductId;
use crate::domain::voucher::denomination_text;
use crate::error::{Dependency, Error, Result};

/// Commands in one pipeline.
const PIPELINE: usize = 200;
/// Pipelines under way at once.
const UNDER_WAY: usize = 8;

/// Takes the first member of a pool, and does nothing else.
const BARE_POP: &str = "return redis.call('ZPOPMIN', KEYS[1])";

/// A connection that does the least.
pub struct Yardstick {
    connection: MultiplexedConnection,
    keys: Keys,
}

impl std::fmt::Debug for Yardstick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Yardstick").finish_non_exhaustive()
    }
}

fn away(error: RedisError) -> Error {
    Error::unavailable(Dependency::LiveStore, "measuring", error)
}

impl Yardstick {
    /// To the same server as the live store, under the same key prefix.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn connect(config: &config::Live) -> Result<Self> {
        let client = redis::Client::open(config.url.expose_secret()).map_err(away)?;
        let connection = client.get_multiplexed_async_connection().await.map_err(away)?;
        Ok(Self { connection, keys: Keys::new(&config.key_prefix) })
    }

    async fn run(&self, pipelines: impl Iterator<Item = Pipeline> + Send) -> Result<Duration> {
        let started = Instant::now();
        let mut answers = futures::stream::iter(pipelines)
            .map(|pipeline| {
                let mut connection = self.connection.clone();
                async move { pipeline.query_async::<()>(&mut connection).await }
            })
            .buffer_unordered(UNDER_WAY);
        while let Some(answer) = answers.next().await {
            answer.map_err(away)?;
        }
        Ok(started.elapsed())
    }

    /// Writes what a placement writes, and asks nothing before: metadata, member, and the list of pools.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn write(&self, product: VoucherProductId, placements: &[Placement<'_>]) -> Result<Duration> {
        let pools = self.keys.pools(product);
        let written = |Placement { unit, pool, .. }: &Placement<'_>, pipeline: &mut Pipeline| {
            let Some(pool) = pool.as_ref().map(|pool| self.keys.pool(pool)) else { return };
            let meta = redis::cmd("HSET")
                .arg(self.keys.unit(product, unit.id))
                .arg(&["revision", &unit.revision.to_string(), "pool", &pool, "vendor", &unit.vendor.to_string()])
                .arg(&["denomination", &denomination_text(unit.denomination), "expiry", &unit.score().to_string()])
                .arg(&["client", &unit.client.map(|client| client.to_string()).unwrap_or_default()])
                .to_owned();
            let mut member = redis::cmd("ZADD");
            member.arg(&pool).arg(unit.score()).arg(unit.id.member());
            let mut listed = redis::cmd("SADD");
            listed.arg(&pools).arg(&pool);
            pipeline.add_command(meta).ignore().add_command(member).ignore().add_command(listed).ignore();
        };
        let pipelines = placements.chunks(PIPELINE).map(|chunk| {
            let mut pipeline = redis::pipe();
            chunk.iter().for_each(|placement| written(placement, &mut pipeline));
            pipeline
        });
        self.run(pipelines.collect::<Vec<_>>().into_iter()).await
    }

    /// Takes `count` members out of a pool, one by one, by a script that does nothing else.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn pop(&self, pool: &crate::domain::voucher::Pool, count: usize) -> Result<Duration> {
        let (script, key) = (Script::new(BARE_POP), self.keys.pool(pool));
        let () = script.prepare_invoke().load_async(&mut self.connection.clone()).await.map(drop).map_err(away)?;
        let pipeline = |number: usize| {
            let mut pipeline = redis::pipe();
            for _ in 0..PIPELINE.min(count - number * PIPELINE) {
                pipeline.cmd("EVALSHA").arg(script.get_hash()).arg(1).arg(&key).ignore();
            }
            pipeline
        };
        self.run((0..count.div_ceil(PIPELINE)).map(pipeline)).await
    }

    /// Removes every key under the prefix: of a measurement that is over.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn clear(&self, prefix: &str) -> Result<()> {
        let mut connection = self.connection.clone();
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(5_000);
            let (next, keys): (u64, Vec<String>) = scan.query_async(&mut connection).await.map_err(away)?;
            if !keys.is_empty() {
                let () = redis::cmd("UNLINK").arg(keys).query_async(&mut connection).await.map_err(away)?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }
}
