//! A list with an index by name.

/// An item with a name.
pub(crate) trait Named {
    fn name(&self) -> &str;
}

/// Items in file order, searchable by name.
///
/// The index is sorted instead of hashed, so that hostile names cannot make it slow.
pub(crate) struct NamedList<T> {
    items: Vec<T>,
    by_name: Vec<usize>,
}

impl<T: Named> NamedList<T> {
    /// The list, or a name that appears twice.
    pub(crate) fn new(items: Vec<T>) -> Result<Self, String> {
        let mut by_name: Vec<usize> = (0..items.len()).collect();
        by_name.sort_unstable_by_key(|&i| items[i].name());
        let twice = by_name.windows(2).find(|w| items[w[0]].name() == items[w[1]].name());
        if let Some(twice) = twice {
            return Err(items[twice[0]].name().to_owned());
        }
        Ok(Self { items, by_name })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        let index = self.by_name.binary_search_by_key(&name, |&i| self.items[i].name()).ok()?;
        Some(&self.items[self.by_name[index]])
    }

    /// Names must not be changed.
    pub(crate) fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    pub(crate) fn into_items(self) -> Vec<T> {
        self.items
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }
}
