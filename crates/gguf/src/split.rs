//! Models split over several files: what a part says of itself, what the others are called, and all of them as one.

use crate::{Gguf, GgufError, Optional, named::NamedList};

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Which part of a split model a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1 as in its name.
    pub number: u16,
    /// How many there are, at least 2.
    pub count: u16,
}

impl Part {
    /// What the parts of the model are called, in order, after the name of this one:
    /// `model-00001-of-00003.gguf`. What follows, as a URL's query does, is kept.
    ///
    /// # Errors
    /// If the name is not of this form, or says something else than the file.
    pub fn names(self, name: &str) -> Result<Vec<String>, GgufError> {
        let called = |number| format!("-{number:05}-of-{:05}.gguf", self.count);
        let own = called(self.number);
        let Some(at) = name.rfind(&own) else {
            return Err(GgufError::PartName { name: name.into(), part: self, wanted: own });
        };
        let (before, after) = (&name[..at], &name[at + own.len()..]);
        Ok((1..=self.count).map(|number| format!("{before}{}{after}", called(number))).collect())
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "part {} of {}", self.number, self.count)
    }
}

impl Gguf {
    /// Which part of a split model this file is; `None` if it is whole.
    ///
    /// # Errors
    /// If it says so in a way that cannot be.
    pub fn part(&self) -> Result<Option<Part>, GgufError> {
        let small = |key: &str, value: u64| {
            let value = u16::try_from(value);
            let expected = "u16";
            value.map_err(|_| GgufError::OutOfRange {
                key: key.into(),
                value: self.get(key).and_then(|value| value.integer()).unwrap_or_default(),
                expected,
            })
        };
        let Some(count) = self.u64(COUNT).optional()? else { return Ok(None) };
        let count = small(COUNT, count)?;
        if count < 2 || self.sources.len() > 1 {
            return Ok(None);
        }
        let number = small(NUMBER, self.u64(NUMBER)?)?;
        if number >= count {
            return Err(GgufError::PartNumber { number, count });
        }
        Ok(Some(Part { number: number + 1, count }))
    }

    /// The whole model of this first part and the others, in order.
    ///
    /// # Errors
    /// If they are not the parts of one model.
    pub fn join(self, others: Vec<Self>) -> Result<Self, GgufError> {
        let whole = match self.part()? {
            Some(part) if part.number == 1 => part,
            part => return Err(GgufError::NotFirstPart { part }),
        };
        let given = others.len() + 1;
        if given != usize::from(whole.count) {
            return Err(GgufError::PartCount { count: whole.count, given });
        }
        let promised = self.u64(TENSORS).optional()?;
        for (number, other) in (2..).zip(&others) {
            self.check_belongs(other, Part { number, ..whole })?;
        }
        let Self { mut sources, version, alignment, metadata, tensors } = self;
        let mut tensors = tensors.into_items();
        for other in others {
            let at = sources.len();
            sources.extend(other.sources);
            tensors.extend(other.tensors.into_items().into_iter().map(|tensor| tensor.of_part(at)));
        }
        let found = tensors.len() as u64;
        if let Some(promised) = promised.filter(|promised| *promised != found) {
            return Err(GgufError::PartTensors { promised, found });
        }
        let tensors =
            NamedList::new(tensors).map_err(|tensor| GgufError::DuplicateTensor { tensor })?;
        Ok(Self { sources, version, alignment, metadata, tensors })
    }

    /// Whether another file is the part of this model that is wanted.
    fn check_belongs(&self, other: &Self, wanted: Part) -> Result<(), GgufError> {
        let found = other.part()?;
        let file = || other.name().to_owned();
        if found != Some(wanted) {
            return Err(GgufError::WrongPart { file: file(), wanted, found });
        }
        // Later parts carry little, but nothing that says otherwise.
        let own = |key: &str| key == NUMBER || key == "general.alignment";
        let differs = other.metadata().iter().find(|entry| {
            !own(&entry.key) && self.get(&entry.key).is_some_and(|value| *value != entry.value)
        });
        match differs {
            None => Ok(()),
            Some(entry) => Err(GgufError::ForeignPart { file: file(), key: entry.key.clone() }),
        }
    }
}
