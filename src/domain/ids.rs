//! Identifiers: 12 bytes, written as 24 lower-case hex digits.
//!
//! An id is parsed once and has one spelling from then on. (A key made from the raw path text would let an upper-case
//! spelling of the same event pass as another event.)

use serde::{Deserialize, Serialize};

/// The text is not 24 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 24 hexadecimal digits")]
pub struct MalformedId;

fn parse_hex(text: &str) -> Result<[u8; 12], MalformedId> {
    let bytes = text.as_bytes();
    if bytes.len() != 24 {
        return Err(MalformedId);
    }
    let digit = |b: u8| char::from(b).to_digit(16).ok_or(MalformedId);
    let mut id = [0_u8; 12];
    for (slot, pair) in id.iter_mut().zip(bytes.chunks_exact(2)) {
        let value = digit(pair[0])? * 16 + digit(pair[1])?;
        *slot = u8::try_from(value).map_err(|_| MalformedId)?;
    }
    Ok(id)
}

macro_rules! id_type {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 12]);

        impl $name {
            /// Wraps the twelve bytes of an existing id.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 12]) -> Self {
                Self(bytes)
            }

            /// The twelve bytes.
            #[must_use]
            pub const fn bytes(self) -> [u8; 12] {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let mut text = [0_u8; 24];
                for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
                    pair[0] = HEX[usize::from(byte >> 4)];
                    pair[1] = HEX[usize::from(byte & 15)];
                }
                f.write_str(std::str::from_utf8(&text).unwrap_or_default())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl std::str::FromStr for $name {
            type Err = MalformedId;
            fn from_str(text: &str) -> Result<Self, MalformedId> {
                parse_hex(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = MalformedId;
            fn try_from(text: String) -> Result<Self, MalformedId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    )+};
}

id_type! {
    /// An account.
    UserId,
    /// An event.
    EventId,
    /// A product of an event.
    ProductId,
    /// A seller's verification request.
    VerificationId,
    /// A settled order.
    OrderId,
    /// An endpoint of a seller.
    WebhookId,
    /// A message on its way to an endpoint.
    DeliveryId,
    /// What vouchers are of.
    VoucherProductId,
    /// An issuer of vouchers.
    VendorId,
    /// A customer for whom vouchers are kept and ordered.
    ClientId,
    /// An order of vouchers.
    VoucherOrderId,
    /// A spreadsheet of vouchers.
    ImportId,
    /// A job that buys voucher codes.
    PrefetchJobId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn upper_case_is_the_same_event() {
        let lower: EventId = "0123456789abcdef01234567".parse().unwrap();
        let upper: EventId = "0123456789ABCDEF01234567".parse().unwrap();
        assert_eq!(lower, upper);
        assert_eq!(upper.to_string(), "0123456789abcdef01234567");
    }

    #[test]
    fn refuses_what_is_not_an_id() {
        for text in
            ["", "0123456789abcdef0123456", "0123456789abcdef012345678", "0123456789abcdeg01234567", "éééééééééééé"]
        {
            assert_eq!(text.parse::<UserId>(), Err(MalformedId), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(bytes in any::<[u8; 12]>()) {
            let id = ProductId::from_bytes(bytes);
            prop_assert_eq!(id.to_string().parse::<ProductId>().unwrap(), id);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<OrderId>();
        }
    }
}
