//! Simulated failures: SMTP sessions refuse senders, recipients and logins at random, so that the errors of a client can be
//! tested. The settings can be changed while the server runs. This module decides, the sessions apply the decision.

use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use parking_lot::RwLock;
use thiserror::Error;

/// The current triggers. Shared by all sessions and the HTTP server.
pub type Chaos = RwLock<Triggers>;

/// When failures are simulated. By default none are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// Refuses senders.
    pub sender: Trigger,
    /// Refuses recipients.
    pub recipient: Trigger,
    /// Refuses logins.
    pub authentication: Trigger,
}

/// A reply code, and how often it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    code: u16,
    probability: u8,
}

/// The reason why a trigger is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TriggerError {
    /// The text does not have the right form.
    #[error("must have the form NAME:CODE:PROBABILITY, such as Sender:451:5")]
    Form,
    /// There is no trigger of this name.
    #[error("unknown key {0}")]
    Name(String),
    /// The code is not one of a refusal.
    #[error("error code must be between 400 and 599")]
    Code,
    /// The probability is not a percentage.
    #[error("probability must be between 0 and 100")]
    Probability,
}

impl Trigger {
    /// Creates a trigger that sends this reply code with this probability in percent.
    pub fn new(code: i64, probability: i64) -> Result<Self, TriggerError> {
        let code = u16::try_from(code).ok().filter(|code| (400..=599).contains(code)).ok_or(TriggerError::Code)?;
        let probability = u8::try_from(probability).ok().filter(|probability| *probability <= 100);
        Ok(Self { code, probability: probability.ok_or(TriggerError::Probability)? })
    }

    /// Returns the reply code.
    pub fn code(self) -> u16 {
        self.code
    }

    /// Returns the probability in percent.
    pub fn probability(self) -> u8 {
        self.probability
    }

    /// Decides at random whether to fail. Returns the reply code of the failure.
    pub fn fire(self) -> Option<u16> {
        // `RandomState` has new random keys each time.
        let is_fired = self.probability > 0 && RandomState::new().hash_one(()) % 100 < u64::from(self.probability);
        is_fired.then_some(self.code)
    }
}

impl Default for Triggers {
    fn default() -> Self {
        let never = |code| Trigger { code, probability: 0 };
        Self { sender: never(451), recipient: never(451), authentication: never(535) }
    }
}

/// Parses triggers that are separated by commas: `Sender:451:5,Recipient:451:10,Authentication:535:100`. Those that are
/// missing never fire.
impl FromStr for Triggers {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        let mut triggers = Self::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let mut fields = item.split(':');
            let (Some(name), Some(code), Some(probability), None) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return Err(TriggerError::Form);
            };
            let number = |text: &str| text.trim().parse().map_err(|_| TriggerError::Form);
            let trigger = Trigger::new(number(code)?, number(probability)?)?;
            match name.trim().to_ascii_lowercase().as_str() {
                "sender" => triggers.sender = trigger,
                "recipient" | "recipients" => triggers.recipient = trigger,
                "auth" | "authentication" => triggers.authentication = trigger,
                unknown => return Err(TriggerError::Name(unknown.to_owned())),
            }
        }
        Ok(triggers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_parsed() {
        let parse = |text: &str| text.parse::<Triggers>();
        let expected = Triggers {
            sender: Trigger { code: 450, probability: 5 },
            authentication: Trigger { code: 599, probability: 100 },
            ..Triggers::default()
        };
        assert_eq!(parse("Sender:450:5, auth:599:100"), Ok(expected));
        assert_eq!(parse(" SENDER:450:5,Authentication:599:100,"), Ok(expected));
        assert_eq!(parse(""), Ok(Triggers::default()));
        let table = [
            ("Sender", TriggerError::Form),
            ("Sender:451", TriggerError::Form),
            ("Sender:451:5:6", TriggerError::Form),
            ("Sender:x:5", TriggerError::Form),
            ("Data:451:5", TriggerError::Name("data".to_owned())),
            ("Sender:399:5", TriggerError::Code),
            ("Sender:600:5", TriggerError::Code),
            ("Sender:451:101", TriggerError::Probability),
            ("Sender:451:-1", TriggerError::Probability),
        ];
        for (text, error) in table {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn probabilities_are_percentages() {
        let count = |probability| {
            let trigger = Trigger { code: 451, probability };
            (0..1000).filter(|_| trigger.fire() == Some(451)).count()
        };
        assert_eq!((count(0), count(100)), (0, 1000));
        // The probability of a result outside of this range is below 10^-30.
        assert!((250..750).contains(&count(50)));
    }

    #[test]
    fn triggers_can_be_changed() {
        let chaos = Chaos::default();
        let failures = || {
            let Triggers { sender, recipient, authentication } = *chaos.read();
            [sender, recipient, authentication].map(Trigger::fire)
        };
        assert_eq!(failures(), [None; 3]);
        *chaos.write() = "sender:450:100,recipient:550:100,auth:535:100".parse().unwrap();
        assert_eq!(failures(), [Some(450), Some(550), Some(535)]);
    }
}
