//! Random calls of the production scripts, on sales in every state and on records that somebody has damaged.

use orbit::domain::ids::{EventId, ProductId, UserId};
use orbit::store::live::keys::Keys;
use orbit::store::live::scripts::SOURCES;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::redis::Bytes;

pub type Line = Vec<String>;

const STATUSES: [&str; 4] = ["NOT_STARTED", "LIVE", "PAUSED", "STOPPED"];
const TOKENS: [&str; 2] = ["one token", "another token"];
const GROUP: &str = "a group";

/// A call of a script, or a command that makes something for it to find.
pub fn command(random: &mut StdRng) -> Vec<Bytes> {
    let words = match random.random_range(0..38) {
        0..=9 => reserve(random),
        10..=11 => transition(random),
        12..=13 => project(random),
        14..=15 => restore(random),
        16 => remove(random),
        17 => hold(random),
        18 => acknowledge(random),
        19..=22 => journal(random),
        23..=27 => prepare(random),
        28..=29 => confirm(random),
        30..=33 => release(random),
        34..=35 => restock(random),
        _ => damage(random),
    };
    words.into_iter().map(Bytes::from).collect()
}

fn keys() -> Keys {
    Keys::new("d:")
}

fn event() -> EventId {
    EventId::from_bytes([0xe; 12])
}

fn product(random: &mut StdRng) -> ProductId {
    ProductId::from_bytes([random.random_range(1..4); 12])
}

fn user(random: &mut StdRng) -> UserId {
    UserId::from_bytes([random.random_range(1..6); 12])
}

pub fn pick(random: &mut StdRng, from: &[&str]) -> String {
    from[random.random_range(0..from.len())].to_owned()
}

pub fn line(words: &[&str]) -> Line {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `EVAL` of a script of ours.
pub fn call(name: &str, keys: Line, arguments: Line) -> Line {
    let source = SOURCES.iter().find(|(script, _)| *script == name).unwrap().1;
    let mut words = line(&["EVAL", source, &keys.len().to_string()]);
    words.extend(keys);
    words.extend(arguments);
    words
}

fn reserve(random: &mut StdRng) -> Line {
    let (event, product, user, keys) = (event(), product(random), user(random), keys());
    let names = vec![
        keys.status(event),
        keys.product(product, event),
        keys.booking(user, product, event),
        keys.winners(event, product),
        keys.bookings(event),
        keys.product_keys(event),
        keys.journal(event),
        keys.holds(event),
    ];
    let quantity = pick(random, &["1", "1", "1", "2", "3", "0", "-1", "1.5", "1e3", "x", "", "9999999999999999"]);
    let mut arguments = line(&[&user.to_string(), &product.to_string(), &event.to_string()]);
    arguments.push(format!("reservation-{}", random.random_range(0..1000)));
    arguments.push(quantity);
    arguments.push(pick(random, &["", "", "key-1", "key-2"]));
    arguments.push(pick(random, &["", "", "1"]));
    call("reserve", names, arguments)
}

fn transition(random: &mut StdRng) -> Line {
    let (keys, event) = (keys(), event());
    let mut arguments = line(&[&pick(random, &STATUSES), &pick(random, &["", "", TOKENS[0], TOKENS[1]])]);
    // Long ago, in three thousand years, and no moment at all: whatever the two clocks say, the answer is one.
    arguments.push(pick(random, &["", "", "1", "99999999999999", "x"]));
    for _ in 0..random.random_range(0..3) {
        arguments.push(pick(random, &STATUSES));
    }
    call("transition", vec![keys.status(event), keys.opening(event), keys.held(event)], arguments)
}

fn project(random: &mut StdRng) -> Line {
    let (keys, event) = (keys(), event());
    let mut names = vec![
        keys.status(event),
        keys.opening(event),
        keys.product_keys(event),
        keys.catalogue(event),
        keys.bookings(event),
        keys.journal(event),
        keys.holds(event),
        keys.operations(event),
    ];
    let mut arguments = line(&[&pick(random, &TOKENS), "100000000", GROUP]);
    arguments.extend([pick(random, &["0", "100000000"]), pick(random, &["", "", "1", "99999999999999"])]);
    for _ in 0..random.random_range(0..3) {
        let product = product(random);
        names.extend([keys.product(product, event), keys.product_meta(product, event), keys.winners(event, product)]);
        let (stock, price, limit) = (random.random_range(0..5), random.random_range(0..500), random.random_range(1..3));
        arguments.extend([product.to_string(), stock.to_string(), pick(random, &["0", "2", "-1"])]);
        arguments.extend([price.to_string(), "INR".to_owned()]);
        arguments.push(limit.to_string());
        arguments.extend(line(&["a title", "its description", "image", "seller", &event.to_string()]));
    }
    call("project", names, arguments)
}

fn remove(random: &mut StdRng) -> Line {
    let (keys, event, product, user) = (keys(), event(), product(random), user(random));
    let (listed_in, key) = if random.random_bool(0.5) {
        (keys.bookings(event), keys.booking(user, product, event))
    } else {
        (keys.product_keys(event), keys.product(product, event))
    };
    let names = vec![keys.status(event), keys.opening(event), listed_in, key];
    call("remove", names, line(&[&pick(random, &STATUSES), &pick(random, &["", "", TOKENS[0]])]))
}

fn hold(random: &mut StdRng) -> Line {
    let (keys, event) = (keys(), event());
    let names = vec![keys.status(event), keys.held(event), keys.product_keys(event)];
    call("hold", names, line(&[&pick(random, &["a reason", "another reason"])]))
}

fn restore(random: &mut StdRng) -> Line {
    let (keys, event) = (keys(), event());
    let mut names = vec![keys.status(event), keys.opening(event), keys.bookings(event), keys.holds(event)];
    let mut arguments =
        line(&[&pick(random, &["NOT_STARTED", "PAUSED", "LIVE"]), &pick(random, &["", "", TOKENS[0]]), "100000000"]);
    for _ in 0..random.random_range(0..3) {
        let (product, user) = (product(random), user(random));
        names.extend([keys.product(product, event), keys.booking(user, product, event), keys.winners(event, product)]);
        arguments.push(format!("reservation-{}", random.random_range(0..50)));
        arguments.extend([user.to_string(), product.to_string(), event.to_string()]);
        arguments.extend(line(&[&random.random_range(1..3).to_string(), "100", "INR"]));
        arguments.push(pick(random, &["CONFIRMED", "PENDING_PAYMENT", "PENDING_PAYMENT", "CANCELLED", "EXPIRED"]));
        // Longer ago than any booking that `reserve` makes, or later.
        arguments.push(pick(random, &["1000", "2000", "99999999999999"]));
        arguments.extend([random.random_range(1..3).to_string(), pick(random, &["", "key-1"])]);
        // A hold that has run out long ago, or will in three thousand years.
        arguments.push(pick(random, &["1000", "99999999999999"]));
        arguments.extend([pick(random, &["0", "0", "1"]), pick(random, &["", "", "kept"])]);
    }
    call("restore", names, arguments)
}

/// A journal of another sale, whose entries have ids that both servers can be told.
fn other_journal() -> String {
    keys().journal(EventId::from_bytes([0xf; 12]))
}

fn entry_id(random: &mut StdRng) -> String {
    format!("{}-{}", random.random_range(1..20), random.random_range(0..2))
}

fn acknowledge(random: &mut StdRng) -> Line {
    let mut arguments = line(&[&pick(random, &[GROUP, GROUP, "no group"]), "2000"]);
    for _ in 0..random.random_range(0..6) {
        arguments.push(entry_id(random));
    }
    call("acknowledge", vec![other_journal()], arguments)
}

fn confirm(random: &mut StdRng) -> Line {
    let (keys, event, product, user) = (keys(), event(), product(random), user(random));
    let names = vec![
        keys.status(event),
        keys.product(product, event),
        keys.booking(user, product, event),
        keys.winners(event, product),
        keys.journal(event),
        keys.holds(event),
    ];
    let reservation = format!("reservation-{}", random.random_range(0..50));
    let mut arguments = line(&[&reservation, &user.to_string(), &product.to_string()]);
    arguments.push(pick(random, &["1", "1", "1", "2", "0", "-1", "x"]));
    call("confirm", names, arguments)
}

fn release(random: &mut StdRng) -> Line {
    let (keys, event) = (keys(), event());
    let mut names = vec![keys.status(event), keys.holds(event), keys.journal(event), keys.operations(event)];
    let mut arguments = Vec::new();
    for _ in 0..random.random_range(0..4) {
        let (product, user) = (product(random), user(random));
        names.extend([keys.product(product, event), keys.booking(user, product, event), keys.winners(event, product)]);
        arguments.push(pick(random, &["", "", "reservation-1", "reservation-2"]));
        arguments.extend([user.to_string(), product.to_string(), pick(random, &["CANCELLED", "EXPIRED"])]);
        arguments.push(pick(random, &["", "", "1", "2", "0", "-1", "x"]));
        arguments.extend([pick(random, &["", "1"]), pick(random, &["", "kept"])]);
        arguments.push(pick(random, &["", "", "operation-1", "operation-2"]));
    }
    call("release", names, arguments)
}

fn restock(random: &mut StdRng) -> Line {
    let (keys, event, product) = (keys(), event(), product(random));
    let names =
        vec![keys.status(event), keys.product(product, event), keys.operations(event), keys.product_keys(event)];
    let units = pick(random, &["1", "3", "-1", "-2", "0", "x", "9999999999999999"]);
    call("restock", names, line(&[&pick(random, &["operation-1", "operation-3", "operation-4"]), &units, "8"]))
}

/// What `acknowledge` works on.
fn journal(random: &mut StdRng) -> Line {
    let journal = other_journal();
    match random.random_range(0..8) {
        0 => line(&["XGROUP", "CREATE", &journal, GROUP, "0", "MKSTREAM"]),
        1..=4 => line(&["XADD", &journal, &entry_id(random), "reservationId", "a"]),
        5 => line(&["XREADGROUP", "GROUP", GROUP, "c", "COUNT", "2", "STREAMS", &journal, ">"]),
        6 => line(&["XREADGROUP", "GROUP", GROUP, "d", "COUNT", "1", "STREAMS", &journal, ">"]),
        _ => line(&["XINFO", "GROUPS", &journal]),
    }
}

/// What a sale needs so that its scripts have something to do.
fn prepare(random: &mut StdRng) -> Line {
    let (keys, event, product) = (keys(), event(), product(random));
    match random.random_range(0..6) {
        0 | 1 => line(&["SET", &keys.status(event), &pick(random, &["LIVE", "LIVE", "LIVE", "PAUSED", "STOPPED"])]),
        2 => line(&["DEL", &keys.status(event)]),
        3 => line(&["SET", &keys.opening(event), &pick(random, &TOKENS), "PX", "100000000"]),
        4 => line(&[
            "HSET",
            &keys.product(product, event),
            "stock",
            "3",
            "price",
            "100",
            "currency",
            "INR",
            "limit",
            "2",
            "initial",
            "3",
            "restocked",
            "0",
            "held",
            "0",
            "window",
            &pick(random, &["0", "100000000"]),
        ]),
        _ => line(&["HGETALL", &keys.product(product, event)]),
    }
}

/// What must never happen, and what a script must withstand.
fn damage(random: &mut StdRng) -> Line {
    let (keys, event, product, user) = (keys(), event(), product(random), user(random));
    let any = [
        keys.status(event),
        keys.product(product, event),
        keys.booking(user, product, event),
        keys.winners(event, product),
        keys.bookings(event),
        keys.product_keys(event),
        keys.journal(event),
        keys.holds(event),
        keys.operations(event),
    ];
    let key = any[random.random_range(0..any.len())].clone();
    match random.random_range(0..6) {
        0 => line(&["SET", &key, "a string"]),
        1 => line(&["DEL", &key]),
        2 => line(&[
            "HDEL",
            &keys.product(product, event),
            &pick(random, &["stock", "price", "limit", "currency", "held", "window", "restocked"]),
        ]),
        3 => line(&["HSET", &keys.product(product, event), "stock", &pick(random, &["x", "-1", "1e3", "", "1.5"])]),
        4 => line(&["SADD", &key, "a member"]),
        _ => line(&["DEL", &keys.bookings(event), &keys.winners(event, product), &keys.journal(event)]),
    }
}
