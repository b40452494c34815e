//! How safe an answered reservation is: `live.durability`.

use serde::Deserialize;

/// What an answered reservation is safe from, until it is an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing.
    None,
    /// It is in an append-only file that is made safe on disk each second.
    Everysec,
    /// It is on disk.
    Always,
    /// As [`Self::Everysec`], and replicas have acknowledged it.
    Replicas,
}

impl Durability {
    /// Its name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Everysec => "everysec",
            Self::Always => "always",
            Self::Replicas => "replicas",
        }
    }

    /// What a crash can lose, for people.
    #[must_use]
    pub const fn at_risk(self) -> &'static str {
        match self {
            Self::None => "a crash of Redis loses the running sale",
            Self::Everysec => {
                "a crash of the Redis machine can lose about the last second of reservations, and one of the process \
                 alone up to two if the disk was behind, unless they are orders already"
            }
            Self::Always => "a crash loses no answered reservation as long as the disk survives",
            Self::Replicas => {
                "a crash loses no answered reservation if a replica that acknowledged it takes over; if the crashed \
                 server comes back instead, what everysec can lose"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_written_as_it_is_read() {
        #[derive(Deserialize)]
        struct Row {
            level: Durability,
        }
        for level in [Durability::None, Durability::Everysec, Durability::Always, Durability::Replicas] {
            let text = serde_json::json!({ "level": level.as_str() });
            assert_eq!(serde_json::from_value::<Row>(text).unwrap().level, level);
        }
    }
}
