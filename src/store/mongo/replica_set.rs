//! Making a replica set of one out of a `mongod` that was just started for a trial or a test.

use std::time::Duration;

use bson::{Document, doc};
use mongodb::Client;
use mongodb::error::{Error, ErrorKind};
use mongodb::options::ClientOptions;
use tokio::time::{Instant, sleep};

/// An election among one takes a second or two.
const ELECTION_DEADLINE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// MongoDB's error code for initiating a set that has been initiated.
const ALREADY_INITIALIZED: i32 = 23;

/// Initiates the replica set of the single server that `uri` names, unless it has been, and waits until
/// the server takes writes. The set's name is the one the server was started with.
///
/// # Errors
///
/// Whatever the driver reports, and a time-out of 30 s if the server does not become the primary.
pub async fn initiate_replica_set(uri: &str) -> Result<(), Error> {
    let options = ClientOptions::parse(uri).await?;
    let address = options.hosts.first().map(ToString::to_string).ok_or_else(|| {
        Error::custom(std::io::Error::new(std::io::ErrorKind::InvalidInput, "the MongoDB URI names no server"))
    })?;
    let admin = Client::with_options(options)?.database("admin");
    let set = admin.run_command(doc! { "hello": 1 }).await?.get_str("setName").map(str::to_owned);
    if set.is_err() {
        let config = doc! { "_id": "rs0", "members": [{ "_id": 0, "host": address }] };
        match admin.run_command(doc! { "replSetInitiate": config }).await {
            Ok(_) => {}
            Err(error) if is_already_initialized(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let deadline = Instant::now() + ELECTION_DEADLINE;
    loop {
        let hello: Document = admin.run_command(doc! { "hello": 1 }).await?;
        if hello.get_bool("isWritablePrimary").unwrap_or(false) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Error::custom(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                "the MongoDB server did not become the primary of its replica set within 30 s",
            )));
        }
        sleep(POLL).await;
    }
}

fn is_already_initialized(error: &Error) -> bool {
    matches!(&*error.kind, ErrorKind::Command(command) if command.code == ALREADY_INITIALIZED)
}
