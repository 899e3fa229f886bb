//! Limits on what a template's values take, since one step can double a value.
//!
//! Every value a template makes passes through [`Budget::adopt`]. Lists and maps become [`Node`]s, which know their size
//! written out in full and their depth: what prints, compares or frees one is bounded, although its parts are shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr};
use minijinja::{Error, ErrorKind, Value};

use super::checks::Namespace;

/// Bytes of one value, in addition to four times the conversation.
const VALUE_LIMIT: usize = 16 << 20;
/// Bytes of all values and of all text made in a rendering, in addition to sixteen times the conversation. Freed ones count:
/// the engine does not tell when it frees a value.
const MEMORY_LIMIT: usize = 256 << 20;
/// Bytes read by searches, comparisons and filters, in addition to 256 times the conversation.
const WORK_LIMIT: usize = 256 << 20;
/// The maximum depth of lists and maps. JSON has at most 128 levels.
const DEPTH_LIMIT: usize = 200;
/// Bytes of an element of a list or map, or of a short value.
pub(super) const ELEMENT: usize = 64;

/// What is left for one rendering.
#[derive(Debug)]
pub(super) struct Budget {
    value: usize,
    memory: AtomicUsize,
    work: AtomicUsize,
}

impl Budget {
    /// A budget that limits nothing but depth, for the conversation itself.
    pub(super) fn unlimited() -> Self {
        let most = usize::MAX;
        Self { value: most, memory: most.into(), work: most.into() }
    }

    /// The budget for a template that is given `context` bytes of values.
    pub(super) fn new(context: usize) -> Self {
        let limit = |base: usize, times: usize| base.saturating_add(context.saturating_mul(times));
        Self {
            value: limit(VALUE_LIMIT, 4),
            memory: limit(MEMORY_LIMIT, 16).into(),
            work: limit(WORK_LIMIT, 256).into(),
        }
    }

    /// Counts `bytes` of new values or text.
    pub(super) fn allocate(&self, bytes: usize) -> Result<(), Error> {
        take(&self.memory, bytes, "it needs too much memory for its values")
    }

    /// Counts `bytes` that a search, comparison or filter reads.
    pub(super) fn read(&self, bytes: usize) -> Result<(), Error> {
        take(&self.work, bytes, "it searches or compares too much text")
    }

    /// Refuses a value that would be too large.
    pub(super) fn fits(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.value {
            return Err(refused(format!(
                "a value of {bytes} bytes is larger than the {} allowed",
                self.value
            )));
        }
        Ok(())
    }

    /// Checks and counts a new value.
    pub(super) fn adopt(&self, value: Value) -> Result<Value, Error> {
        self.adopt_at(value, 0)
    }

    fn adopt_at(&self, value: Value, level: usize) -> Result<Value, Error> {
        if let Some(text) = value.as_str() {
            self.fits(text.len())?;
            self.allocate(text.len() + ELEMENT)?;
            return Ok(value);
        }
        let Some(object) = value.as_object() else { return Ok(value) };
        if value.downcast_object_ref::<Node>().is_some() {
            return Ok(value);
        }
        if value.downcast_object_ref::<Namespace>().is_some() {
            return Err(refused("a namespace can be neither stored nor printed"));
        }
        if level > DEPTH_LIMIT {
            return Err(too_deep());
        }
        let mut node = Node { bytes: ELEMENT, depth: 1, object: object.clone() };
        match object.repr() {
            ObjectRepr::Seq | ObjectRepr::Iterable => {
                let mut items = Vec::new();
                for item in value.try_iter()? {
                    items.push(self.element(item, level, &mut node)?);
                }
                node.set_object(&Value::from(items));
            }
            ObjectRepr::Map => {
                let mut pairs = Vec::new();
                for (key, item) in object.try_iter_pairs().into_iter().flatten() {
                    let key = self.element(key, level, &mut node)?;
                    pairs.push((key, self.element(item, level, &mut node)?));
                }
                node.set_object(&pairs.into_iter().collect());
            }
            // A function.
            _ => return Ok(value),
        }
        self.allocate(ELEMENT)?;
        Ok(Value::from_object(node))
    }

    /// An element of `node`, whose size and depth it adds.
    fn element(&self, item: Value, level: usize, node: &mut Node) -> Result<Value, Error> {
        self.allocate(ELEMENT)?;
        let item = self.adopt_at(item, level + 1)?;
        let (bytes, depth) = size(&item);
        node.bytes = node.bytes.saturating_add(bytes);
        node.depth = node.depth.max(depth + 1);
        self.fits(node.bytes)?;
        if node.depth > DEPTH_LIMIT {
            return Err(too_deep());
        }
        Ok(item)
    }
}

fn take(left: &AtomicUsize, bytes: usize, error: &'static str) -> Result<(), Error> {
    let rest = left.load(Ordering::Relaxed).checked_sub(bytes);
    left.store(rest.ok_or_else(|| refused(error))?, Ordering::Relaxed);
    Ok(())
}

fn too_deep() -> Error {
    refused(format!("a value is nested more than {DEPTH_LIMIT} deep"))
}

/// An error with a sentence for the user.
pub(super) fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// The bytes of a value with all its parts, and its depth.
pub(super) fn size(value: &Value) -> (usize, usize) {
    match (value.as_str(), value.downcast_object_ref::<Node>()) {
        (Some(text), _) => (text.len() + ELEMENT, 0),
        (None, Some(node)) => (node.bytes, node.depth),
        (None, None) => (ELEMENT, 0),
    }
}

/// The number of elements of a list or map, of bytes of a string.
pub(super) fn length(value: &Value) -> usize {
    match value.as_str() {
        Some(text) => text.len(),
        None => value.len().unwrap_or(0),
    }
}

/// A list or map whose size and depth are known.
#[derive(Debug)]
struct Node {
    bytes: usize,
    depth: usize,
    object: DynObject,
}

impl Node {
    fn set_object(&mut self, value: &Value) {
        if let Some(object) = value.as_object() {
            self.object = object.clone();
        }
    }
}

impl Object for Node {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        self.object.repr()
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.object.get_value(key)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.object.get_value_by_str(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.object.enumerate()
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.object.enumerator_len()
    }
}
