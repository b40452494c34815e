//! Random calls of the two scripts of vouchers, on pools and claims that are in order and on some that are not.

use orbit::domain::ids::{ClientId, VendorId, VoucherProductId};
use orbit::domain::money::{Money, currency};
use orbit::domain::voucher::{Pool, UnitId};
use orbit::store::live::keys::Keys;
use rand::RngExt;
use rand::rngs::StdRng;

use super::production::{Line, call, line, pick};
use crate::redis::Bytes;

const SCORES: [&str; 4] = ["1800000000", "1800000000", "1800086400", "1900000000"];

/// A call of a script, or a command that makes something for it to find.
pub fn command(random: &mut StdRng) -> Vec<Bytes> {
    let words = match random.random_range(0..40) {
        0..=19 => place(random),
        20..=33 => allocate(random),
        34 | 35 => line(&["HDEL", &keys().claims(product()), &item(random)]),
        36 => line(&["ZREM", &pool(random), &unit(random).member()]),
        37 => line(&["SMEMBERS", &keys().pools(product())]),
        38 => line(&["DEL", &keys().claims(product())]),
        _ => damage(random),
    };
    words.into_iter().map(Bytes::from).collect()
}

fn keys() -> Keys {
    Keys::new("d:")
}

fn product() -> VoucherProductId {
    VoucherProductId::from_bytes([7; 12])
}

fn unit(random: &mut StdRng) -> UnitId {
    UnitId::new(random.random_range(1..9))
}

fn item(random: &mut StdRng) -> String {
    format!("item-{}", random.random_range(0..6))
}

/// One of two vendors', kept for a client or for nobody.
fn pool(random: &mut StdRng) -> String {
    let vendor = VendorId::from_bytes([random.random_range(1..3); 12]);
    let client = random.random_bool(0.4).then(|| ClientId::from_bytes([5; 12]));
    let denomination = Money { minor: 2_500, currency: currency("USD").unwrap() };
    keys().pool(&Pool { product: product(), denomination, vendor, client })
}

/// Now and then what no caller would say.
fn seldom(random: &mut StdRng, wrong: &[&str], right: &[&str]) -> String {
    if random.random_bool(0.02) { pick(random, wrong) } else { pick(random, right) }
}

fn place(random: &mut StdRng) -> Line {
    let mut names = vec![keys().claims(product()), keys().pools(product())];
    let mut arguments = line(&["100000000"]);
    for _ in 0..random.random_range(0..4) {
        let (unit, belongs) = (unit(random), random.random_bool(0.7));
        names.push(keys().unit(product(), unit));
        names.push(if belongs { pool(random) } else { keys().pools(product()) });
        arguments.push(unit.member());
        arguments.push(seldom(random, &["x", "1.5", "9999999999999999"], &["1", "2", "2", "3", "4", "5"]));
        arguments.push(seldom(random, &["", "x", "-1"], &SCORES));
        arguments.push(u8::from(belongs).to_string());
        arguments.push(if random.random_bool(0.3) { item(random) } else { String::new() });
        arguments.extend(line(&["a vendor", "25.00"]));
        arguments.push(pick(random, &["", "a client"]));
    }
    call("place", names, arguments)
}

fn allocate(random: &mut StdRng) -> Line {
    let pools: Vec<String> = (0..random.random_range(0..5)).map(|_| pool(random)).collect();
    let reserved = random.random_range(0..=pools.len());
    let mut arguments = vec![seldom(random, &["x", ""], &[&reserved.to_string()])];
    arguments.push(seldom(random, &["x", "-1", ""], &["0", "1800000001", "1850000000"]));
    let first = random.random_range(0..6);
    arguments.extend((first..first + random.random_range(0..4)).map(|number| format!("item-{}", number % 6)));
    let mut names = vec![keys().claims(product())];
    names.extend(pools);
    call("allocate", names, arguments)
}

/// What must never happen, and what a script must withstand.
fn damage(random: &mut StdRng) -> Line {
    let claims = keys().claims(product());
    let any = [claims.clone(), keys().pools(product()), pool(random), keys().unit(product(), unit(random))];
    let key = any[random.random_range(0..any.len())].clone();
    match random.random_range(0..6) {
        0 => line(&["SET", &key, "a string"]),
        1 | 2 => line(&["DEL", &key]),
        3 => line(&["HSET", &claims, &item(random), &pick(random, &["", "a claim", "inv-1 2 3 X", "inv-1 2"])]),
        4 => line(&["HSET", &any[3], "revision", &pick(random, &["", "x", "-1", "2.5"])]),
        _ => line(&["ZADD", &any[2], &pick(random, &SCORES), &unit(random).member()]),
    }
}
