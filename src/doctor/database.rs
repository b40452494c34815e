//! MongoDB, which remembers everything but the running sale.

use super::{Finding, clocks, within};
use crate::config;
use crate::domain::clock::Clock;
use crate::error::{Dependency, Error, Result};
use crate::store::mongo::Mongo;
use crate::store::mongo::indexes::DeclaredIndex;
use crate::store::mongo::server::ServerFacts;

const MONGODB_MAJOR_MIN: u32 = 7;
const DEPENDENCY: Dependency = Dependency::Database;

pub(super) async fn examine(config: &config::Mongo, clock: &dyn Clock) -> Vec<Finding> {
    const CHECK: &str = "mongodb";
    let address = config::address(&config.uri);
    let mongo = match within(DEPENDENCY, "connecting", Mongo::connect(config)).await {
        Ok(mongo) => mongo,
        Err(error) => {
            let found = format!("{address}: {}", error.chain());
            let advice = "start MongoDB or correct mongo.uri; what rests on it was not looked at";
            return vec![Finding::fail(CHECK, found, advice)];
        }
    };
    let mut findings = vec![Finding::ok(CHECK, format!("{address} answers"))];
    match within(DEPENDENCY, "asking for the version", mongo.server_facts()).await {
        Ok(facts) => findings.extend([version(&facts), replica_set(&facts)]),
        Err(error) => findings.push(no_answer("mongodb version", &error)),
    }
    findings.push(migrations(&mongo).await);
    findings.push(indexes(within(DEPENDENCY, "looking at indexes", mongo.missing_indexes()).await));
    let time = within(DEPENDENCY, "asking for the time", mongo.time_ms());
    findings.extend(clocks::compare("mongodb clock", clock, time).await);
    mongo.close().await;
    findings
}

fn no_answer(check: &'static str, error: &Error) -> Finding {
    Finding::fail(check, error.chain(), "see that the server answers, and what Orbit's user may do")
}

fn version(facts: &ServerFacts) -> Finding {
    const CHECK: &str = "mongodb version";
    let found = format!("MongoDB {}", facts.version);
    if facts.version_major < MONGODB_MAJOR_MIN {
        return Finding::warn(CHECK, found, "upgrade to MongoDB 7 or 8: older ones were never tried");
    }
    Finding::ok(CHECK, found)
}

fn replica_set(facts: &ServerFacts) -> Finding {
    const CHECK: &str = "replica set";
    match &facts.replica_set {
        Some(name) => Finding::ok(CHECK, name),
        None => Finding::warn(
            CHECK,
            "the server is in none",
            "make it a replica set, of one member at least: a single server cannot fail over",
        ),
    }
}

async fn migrations(mongo: &Mongo) -> Finding {
    const CHECK: &str = "migrations";
    let both = async { Ok((mongo.migrations().await?, mongo.newer_migrations().await?)) };
    let (states, newer) = match within(DEPENDENCY, "reading the ledger", both).await {
        Ok(both) => both,
        Err(error) => return no_answer(CHECK, &error),
    };
    let changed: Vec<&str> = states.iter().filter(|state| state.changed).map(|state| state.id.as_str()).collect();
    if !changed.is_empty() {
        let found = format!("changed after they were applied: {}", changed.join(", "));
        return Finding::fail(
            CHECK,
            found,
            "run the version of Orbit that this database was migrated by, or a newer one",
        );
    }
    if !newer.is_empty() {
        let found = format!("a newer version has applied {}", newer.join(", "));
        return Finding::warn(CHECK, found, "run that version");
    }
    let missing: Vec<&str> = states.iter().filter(|state| !state.applied).map(|state| state.id.as_str()).collect();
    if !missing.is_empty() {
        let found = format!("not applied yet: {}", missing.join(", "));
        return Finding::warn(CHECK, found, "the next start applies them, or `orbit migrate`");
    }
    Finding::ok(CHECK, format!("all {} are applied", states.len()))
}

fn indexes(missing: Result<Vec<DeclaredIndex>>) -> Finding {
    const CHECK: &str = "indexes";
    let missing = match missing {
        Ok(missing) => missing,
        Err(error) => return no_answer(CHECK, &error),
    };
    if missing.is_empty() {
        return Finding::ok(CHECK, "every index of the applied migrations is there");
    }
    let names: Vec<String> = missing.iter().map(|index| format!("{}.{}", index.collection, index.name())).collect();
    let make = |index: &DeclaredIndex| {
        format!("db.runCommand({{ createIndexes: \"{}\", indexes: [{}] }})", index.collection, index.spec)
    };
    let commands: Vec<String> = missing.iter().map(make).collect();
    let advice = format!("drop what has these names, and in mongosh: {}", commands.join("; "));
    Finding::fail(CHECK, format!("missing: {}", names.join(", ")), advice)
}
