//! How ids, counts and times are numbers in a database.

use jiff::Timestamp;
use restante_mail::message::MessageId;

/// A number for the database, which has only signed ones. What does not fit is more than was ever stored.
pub fn integer(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// An id for the database.
pub fn key(id: MessageId) -> i64 {
    integer(id.number())
}

/// A time as it is stored. Times beyond the year 2262 do not fit and are moved there.
pub fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(if time < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX })
}

/// The time that was stored.
pub fn time(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}
