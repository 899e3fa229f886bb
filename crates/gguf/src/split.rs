//! Models split over several files: a part's number, the names of the others, and joining them.

use crate::{Gguf, GgufError, Optional, named::NamedList};

const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// Which part of a split model a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1 as in its name.
    pub number: u16,
    /// Number of parts, at least 2.
    pub count: u16,
}

impl Part {
    /// The names of all parts in order, derived from the name of this one:
    /// `model-00001-of-00003.gguf`. Text after it, such as a URL's query, is kept.
    ///
    /// # Errors
    /// If the name does not have this form, or its numbers differ from the file's.
    pub fn names(self, name: &str) -> Result<Vec<String>, GgufError> {
        let suffix = |number| format!("-{number:05}-of-{:05}.gguf", self.count);
        let own = suffix(self.number);
        let Some(at) = name.rfind(&own) else {
            return Err(GgufError::PartName { name: name.into(), part: self, wanted: own });
        };
        let (before, after) = (&name[..at], &name[at + own.len()..]);
        Ok((1..=self.count).map(|number| format!("{before}{}{after}", suffix(number))).collect())
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "part {} of {}", self.number, self.count)
    }
}

impl Gguf {
    /// The part of a split model that this file is; `None` if it is a whole model.
    ///
    /// # Errors
    /// If the numbers are invalid.
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

    /// Joins this first part and the others, in order.
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
        let expected = self.u64(TENSORS).optional()?;
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
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(GgufError::PartTensors { expected, found });
        }
        let tensors =
            NamedList::new(tensors).map_err(|tensor| GgufError::DuplicateTensor { tensor })?;
        Ok(Self { sources, version, alignment, metadata, tensors })
    }

    /// Checks that another file is the expected part of this model.
    fn check_belongs(&self, other: &Self, wanted: Part) -> Result<(), GgufError> {
        let found = other.part()?;
        let file = || other.name().to_owned();
        if found != Some(wanted) {
            return Err(GgufError::WrongPart { file: file(), wanted, found });
        }
        // Later parts have little metadata; it must not differ from the first part's.
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
