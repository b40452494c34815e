//! The payment gateway in memory: it takes money, tells of it, and gives it back, once for each key. Whoever asks it asks
//! over a line that loses requests and replies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use orbit::domain::money::Money;
use orbit::domain::payment::Paid;
use orbit::error::{Code, Dependency, Error, Result};
use orbit::payment::gateway::{GatewayEvent, Intent, IntentState, NewIntent, Notice, PaymentGateway, Refunded};
use reqwest::header::HeaderMap;
use tokio::time::timeout;

use crate::network::Line;

/// What every process and every buyer reaches.
pub type SharedTill = Arc<Mutex<Till>>;

/// The money of one intent.
#[derive(Debug, Clone)]
pub struct Account {
    pub reservation: String,
    amount: Money,
    state: IntentState,
    /// In minor units.
    pub received: i64,
    pub refunded: i64,
    /// What was answered to each key, and is answered again.
    answers: BTreeMap<String, Refunded>,
}

/// Everything that the gateway knows.
#[derive(Debug, Default)]
pub struct Till {
    accounts: BTreeMap<String, Account>,
    /// Whatever was told, by the number that a callback carries instead of a signature.
    told: Vec<Notice>,
    /// Whether there is no money to give back now.
    empty: bool,
    /// On purpose, to see that it is found: whoever repeats a refund makes another one, and does not learn what went back.
    forgetful: bool,
}

impl Till {
    pub const fn forget_refunds(&mut self) {
        self.forgetful = true;
    }

    pub const fn set_empty(&mut self, empty: bool) {
        self.empty = empty;
    }

    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.values()
    }

    /// What was paid for a reservation, in minor units.
    pub fn received(&self, reservation: &str) -> i64 {
        self.accounts.get(&name(reservation)).map_or(0, |account| account.received)
    }

    /// The buyer pays, `off` by so many minor units; the callback that tells of it. `None` if it cannot be paid, or was.
    pub fn pay(&mut self, intent: &str, off: i64) -> Option<usize> {
        let account = self.accounts.get_mut(intent).filter(|account| account.state == IntentState::Open)?;
        account.state = IntentState::Succeeded;
        account.received = (account.amount.minor + off).max(1);
        let (reservation, paid) = (Some(account.reservation.clone()), account.paid());
        Some(self.tell(Notice::Succeeded { intent: intent.to_owned(), reservation, paid }))
    }

    /// The buyer's attempt fails; the callback that tells of it.
    pub fn decline(&mut self, intent: &str) -> usize {
        self.tell(Notice::Failed { intent: intent.to_owned() })
    }

    /// Nobody can pay it any more.
    pub fn cancel(&mut self, intent: &str) {
        if let Some(account) = self.accounts.get_mut(intent).filter(|account| account.state == IntentState::Open) {
            account.state = IntentState::Canceled;
        }
    }

    fn tell(&mut self, notice: Notice) -> usize {
        self.told.push(notice);
        self.told.len() - 1
    }

    fn create(&mut self, wanted: &NewIntent) -> Intent {
        let id = name(&wanted.reservation);
        let account = self.accounts.entry(id.clone()).or_insert_with(|| Account {
            reservation: wanted.reservation.clone(),
            amount: wanted.amount,
            state: IntentState::Open,
            received: 0,
            refunded: 0,
            answers: BTreeMap::new(),
        });
        account.shown(id)
    }

    fn refund(&mut self, intent: &str, minor: i64, key: &str) -> Option<Refunded> {
        let (empty, forgetful) = (self.empty, self.forgetful);
        let account = self.accounts.get_mut(intent)?;
        if let Some(answer) = account.answers.get(key).filter(|_| !forgetful) {
            return Some(answer.clone());
        }
        let answer = if empty || account.refunded + minor > account.received {
            Refunded::Refused("there is no such money".to_owned())
        } else {
            account.refunded += minor;
            Refunded::Made
        };
        account.answers.insert(key.to_owned(), answer.clone());
        Some(answer)
    }
}

impl Account {
    fn paid(&self) -> Paid {
        Paid { minor: self.received, currency: self.amount.currency.code().to_owned() }
    }

    fn shown(&self, id: String) -> Intent {
        Intent { id, state: self.state, received: self.paid(), client_secret: None, pay_url: None }
    }
}

fn name(reservation: &str) -> String {
    format!("intent of {reservation}")
}

/// One process's way to the gateway.
pub struct SimGateway {
    till: SharedTill,
    line: Line,
    deadline: Duration,
}

impl std::fmt::Debug for SimGateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimGateway").finish_non_exhaustive()
    }
}

impl SimGateway {
    pub const fn new(till: SharedTill, line: Line, deadline: Duration) -> Self {
        Self { till, line, deadline }
    }

    /// `None` from the work is a gateway that knows no such intent.
    async fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Till) -> Option<T> + Send + 'static,
    ) -> Result<T> {
        let till = Arc::clone(&self.till);
        let failed = |why| Error::unavailable(Dependency::PaymentGateway, doing, why);
        match timeout(self.deadline, self.line.ask(move || work(&mut till.lock().unwrap()))).await {
            Ok(Some(answer)) => answer.ok_or_else(|| failed("there is no such intent")),
            Ok(None) => Err(failed("the connection broke")),
            Err(_) => Err(Error::timed_out(Dependency::PaymentGateway, doing)),
        }
    }
}

impl PaymentGateway for SimGateway {
    fn create<'a>(&'a self, wanted: &'a NewIntent) -> BoxFuture<'a, Result<Intent>> {
        let wanted = wanted.clone();
        Box::pin(self.ask("making an intent", move |till| Some(till.create(&wanted))))
    }

    fn intent<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Intent>> {
        let id = id.to_owned();
        Box::pin(
            self.ask("asking about a payment", move |till| {
                till.accounts.get(&id).map(|account| account.shown(id.clone()))
            }),
        )
    }

    fn refunded_minor<'a>(&'a self, intent: &'a str) -> BoxFuture<'a, Result<i64>> {
        let intent = intent.to_owned();
        Box::pin(self.ask("asking about refunds", move |till| {
            till.accounts.get(&intent).map(|account| if till.forgetful { 0 } else { account.refunded })
        }))
    }

    fn refund<'a>(&'a self, intent: &'a str, back: &'a Paid, key: &'a str) -> BoxFuture<'a, Result<Refunded>> {
        let (intent, minor, key) = (intent.to_owned(), back.minor, key.to_owned());
        Box::pin(self.ask("refunding a payment", move |till| till.refund(&intent, minor, &key)))
    }

    /// The body is the number of what was told: nobody else knows how to write one.
    fn verify(&self, _headers: &HeaderMap, body: &[u8], _now: DateTime<Utc>) -> Result<GatewayEvent> {
        let number = std::str::from_utf8(body).ok().and_then(|text| text.parse::<usize>().ok());
        let till = self.till.lock().unwrap();
        let notice = number.and_then(|number| till.told.get(number));
        let notice = notice.ok_or_else(|| Error::refused(Code::BadSignature, "the gateway never told that"))?;
        Ok(GatewayEvent { id: format!("event {}", number.unwrap_or_default()), notice: notice.clone() })
    }
}
