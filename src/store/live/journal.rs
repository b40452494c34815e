//! The journal of a sale, read by a consumer group: every process drains, each entry goes to one of them, and what a
//! dead process had in hand is taken over.

use std::collections::HashMap;

use redis::Value;

use super::Live;
use super::link::{Link, ServerRun, Wire};
use crate::domain::ids::EventId;
use crate::domain::journal::{EntryId, JournalState};
use crate::domain::reservation::Reservation;
use crate::error::{Error, Result};

/// The consumer group that settles.
pub(super) const GROUP: &str = "orbit";

/// One entry.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// Its position.
    pub id: EntryId,
    /// What it holds.
    pub read: EntryRead,
}

/// What an entry holds.
#[derive(Debug, Clone)]
pub enum EntryRead {
    /// A whole reservation, as it was after the change.
    Whole(Reservation),
    /// Something that cannot be read as one.
    Unreadable {
        /// Every field as it is, for the dead-letter record.
        raw: HashMap<String, String>,
        /// What is wrong.
        reason: String,
    },
}

/// Entries handed to one consumer, and the live store's clock when it handed them over.
#[derive(Debug, Clone, Default)]
pub struct JournalBatch {
    /// The run of the server that handed them over.
    pub run: Option<ServerRun>,
    /// In order.
    pub entries: Vec<JournalEntry>,
    /// Milliseconds since 1970.
    pub read_at_ms: i64,
}

impl<L: Link> Live<L> {
    /// Hands the next entries that nobody has to this consumer.
    ///
    /// # Errors
    /// When the live store does not answer. Entries may have been handed over all the same; they are taken over later.
    pub async fn read_journal(&self, event: EventId, consumer: &str, count: usize) -> Result<JournalBatch> {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(consumer).arg("COUNT").arg(count);
        read.arg("STREAMS").arg(self.keys.journal(event)).arg(">");
        let Some((value, read_at_ms, run)) = self.ask_journal("reading a journal", event, read).await? else {
            return Ok(JournalBatch::default());
        };
        // One stream was asked for: nil, or one pair of its name and its entries.
        let streams: Option<Vec<(String, Vec<RawEntry>)>> = decoded("reading a journal", &value)?;
        let rows = streams.unwrap_or_default().into_iter().next().map(|(_, rows)| rows).unwrap_or_default();
        Ok(JournalBatch { run: Some(run), entries: entries(rows, event)?, read_at_ms })
    }

    /// Takes entries over that another consumer has had in hand for longer than `idle_ms`.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn take_over_journal(
        &self,
        event: EventId,
        consumer: &str,
        idle_ms: u64,
        count: usize,
    ) -> Result<JournalBatch> {
        let mut claim = redis::cmd("XAUTOCLAIM");
        claim.arg(self.keys.journal(event)).arg(GROUP).arg(consumer).arg(idle_ms).arg("0-0").arg("COUNT").arg(count);
        let Some((value, read_at_ms, run)) = self.ask_journal("taking over a journal", event, claim).await? else {
            return Ok(JournalBatch::default());
        };
        let reply: Vec<Value> = decoded("taking over a journal", &value)?;
        let rows = reply.get(1).map_or_else(|| Ok(Vec::new()), |rows| decoded("taking over a journal", rows))?;
        Ok(JournalBatch { run: Some(run), entries: entries(rows, event)?, read_at_ms })
    }

    /// One page of what the journal holds, after this position; reading it hands nothing over.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn journal_page(
        &self,
        event: EventId,
        after: Option<EntryId>,
        count: usize,
    ) -> Result<Vec<JournalEntry>> {
        let from = after.map_or_else(|| "-".to_owned(), |id| format!("({id}"));
        let mut call = redis::cmd("XRANGE");
        call.arg(self.keys.journal(event)).arg(from).arg("+").arg("COUNT").arg(count);
        let rows: Vec<RawEntry> = self.query("looking at a journal", &call).await?;
        entries(rows, event)
    }

    /// How far the journal has come; `None` if there is none.
    ///
    /// # Errors
    /// When the live store does not answer, or is too old to count (before Redis 7).
    pub async fn journal_state(&self, event: EventId) -> Result<Option<JournalState>> {
        const DOING: &str = "asking a journal how far it has come";
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        pipeline.cmd("XINFO").arg("STREAM").arg(self.keys.journal(event));
        let answer: Vec<redis::RedisResult<HashMap<String, Value>>> = self.query_all(DOING, &pipeline).await?;
        let fields = match answer.into_iter().next() {
            Some(Ok(fields)) => fields,
            Some(Err(error)) if error.to_string().contains("no such key") => return Ok(None),
            Some(Err(error)) => return Err(super::fault(DOING, error)),
            None => return Err(Error::internal(DOING, "no answer")),
        };
        let text = |name: &str| -> Result<String> {
            let missing = || Error::Damaged { doing: DOING, detail: format!("the server does not say {name}") };
            fields.get(name).and_then(|value| redis::from_redis_value_ref(value).ok()).ok_or_else(missing)
        };
        let unreadable = |detail: String| Error::Damaged { doing: DOING, detail };
        let number = |name: &str| text(name)?.parse().map_err(|_| unreadable(format!("{name} is not a number")));
        let last = text("last-generated-id")?;
        Ok(Some(JournalState {
            appended: number("entries-added")?,
            length: number("length")?,
            last: last.parse().map_err(|_| unreadable(last.clone()))?,
        }))
    }

    /// Lets a rebuilt journal go on behind what MongoDB has seen of the lost one. Never moves it back.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn advance_journal(&self, event: EventId, last: EntryId, appended: u64) -> Result<()> {
        self.make_group(event, true).await?;
        let state = self.journal_state(event).await?.unwrap_or_default();
        if state.last >= last && state.appended >= appended {
            return Ok(());
        }
        let mut call = redis::cmd("XSETID");
        call.arg(self.keys.journal(event)).arg(state.last.max(last).to_string());
        call.arg("ENTRIESADDED").arg(state.appended.max(appended)).arg("MAXDELETEDID").arg("0-0");
        self.query("advancing a journal", &call).await
    }

    /// Makes the consumer group from the journal's start, unless it is there. False if there is no journal.
    async fn make_group(&self, event: EventId, make_journal: bool) -> Result<bool> {
        let mut call = redis::cmd("XGROUP");
        call.arg("CREATE").arg(self.keys.journal(event)).arg(GROUP).arg("0");
        if make_journal {
            call.arg("MKSTREAM");
        }
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        pipeline.add_command(call);
        let answer: Vec<redis::RedisResult<String>> = self.query_all("making a journal's group", &pipeline).await?;
        match answer.into_iter().next() {
            Some(Err(error)) if error.to_string().contains("BUSYGROUP") => Ok(true),
            Some(Err(error)) if error.to_string().contains("requires the key to exist") => Ok(false),
            Some(Err(error)) => Err(super::fault("making a journal's group", error)),
            Some(Ok(_)) | None => Ok(true),
        }
    }

    /// Asks with the clock in the same round trip. A journal that lost its group gets it again; one that does not exist
    /// has nothing: `None`.
    async fn ask_journal(
        &self,
        doing: &'static str,
        event: EventId,
        ask: redis::Cmd,
    ) -> Result<Option<(Value, i64, ServerRun)>> {
        type Answers = (redis::RedisResult<Value>, redis::RedisResult<(i64, i64)>);
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        pipeline.add_command(ask).cmd("TIME");
        loop {
            let call = async {
                let mut wire = self.wire().await?;
                let answers: Answers = pipeline.query_async(&mut wire).await?;
                Ok((answers, wire.run()))
            };
            let ((value, time), run) = self.within(doing, call).await?;
            let (seconds, micros) = time.map_err(|error| super::fault(doing, error))?;
            match value {
                Ok(value) => return Ok(Some((value, seconds * 1_000 + micros / 1_000, run))),
                Err(error) if error.to_string().contains("NOGROUP") => {
                    if !self.make_group(event, false).await? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(super::fault(doing, error)),
            }
        }
    }

    /// Whether the server is still in this run.
    ///
    /// # Errors
    /// When the live store does not answer.
    pub async fn reaches(&self, run: ServerRun) -> Result<bool> {
        let call = async {
            let mut wire = self.wire().await?;
            redis::cmd("PING").query_async::<String>(&mut wire).await?;
            Ok(wire.run() == run)
        };
        self.within("asking whether the server is the same", call).await
    }
}

type RawEntry = (String, Option<HashMap<String, String>>);

fn decoded<T: redis::FromRedisValue>(doing: &'static str, value: &Value) -> Result<T> {
    redis::from_redis_value_ref(value).map_err(|error| Error::Damaged { doing, detail: error.to_string() })
}

fn entries(rows: Vec<RawEntry>, event: EventId) -> Result<Vec<JournalEntry>> {
    let read = |(id, fields): RawEntry| {
        let id: EntryId = id.parse().map_err(|_| Error::Damaged { doing: "reading a journal", detail: id })?;
        // An entry that was trimmed while somebody had it in hand comes without its fields.
        let Some(mut fields) = fields else { return Ok(None) };
        fields.insert("eventId".to_owned(), event.to_string());
        let read = match super::bookings::reservation(&fields, event) {
            Ok(reservation) => EntryRead::Whole(reservation),
            Err(reason) => EntryRead::Unreadable { raw: fields, reason },
        };
        Ok(Some(JournalEntry { id, read }))
    };
    rows.into_iter().filter_map(|row| read(row).transpose()).collect()
}
