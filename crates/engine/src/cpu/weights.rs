//! The weights of a model in host memory, in their file's formats.

use std::collections::HashMap;

use bytes::Bytes;
use rullama_gguf::DType;

use super::Weight;
use crate::{
    error::EngineError,
    graph::{Origin, Type},
};

/// Whether memory is allocated before anything is read: an allocation that fails ends a wasm module. Elsewhere weights are pages of a mapped file.
const ALLOCATES: bool = cfg!(target_arch = "wasm32");
/// Bytes that a page is asked for at a time.
const PIECE_BYTES: u64 = 16 << 20;

/// Weights by name.
#[derive(Debug, Default)]
pub struct Weights {
    known: HashMap<String, Weight>,
    /// Memory of tensors that have not all their rows yet.
    incomplete: HashMap<String, Vec<u8>>,
}

impl Weights {
    pub(crate) fn get(&self, tensor: &str) -> Option<&Weight> {
        self.known.get(tensor)
    }

    /// Names the tensors of a weight, whose rows follow.
    pub(crate) fn reserve(
        &mut self,
        origin: &Origin,
        dtype: DType,
        ty: &Type,
    ) -> Result<(), EngineError> {
        for (tensor, _, ty) in origin.tensors(ty) {
            if ALLOCATES {
                self.allocate(tensor, ty.bytes())?;
            }
            let weight = Weight { dtype, shape: ty.shape, parts: Vec::new() };
            self.known.insert(tensor.into(), weight);
        }
        Ok(())
    }

    fn allocate(&mut self, tensor: &str, bytes: u64) -> Result<(), EngineError> {
        let failed = || EngineError::OutOfMemory { what: tensor.into(), bytes };
        let mut memory = Vec::new();
        let size = usize::try_from(bytes).map_err(|_| failed())?;
        memory.try_reserve_exact(size).map_err(|_| failed())?;
        self.incomplete.insert(tensor.into(), memory);
        Ok(())
    }

    /// Adds the next rows of a tensor.
    pub(crate) fn write(&mut self, tensor: &str, bytes: Bytes) -> Result<(), EngineError> {
        let missing = || EngineError::MissingWeight { name: tensor.into() };
        let weight = self.known.get_mut(tensor).ok_or_else(missing)?;
        let Some(memory) = self.incomplete.get_mut(tensor) else {
            weight.parts.push(bytes);
            return Ok(());
        };
        memory.extend_from_slice(&bytes);
        if memory.len() as u64 >= weight.whole_bytes() {
            weight.parts.extend(self.incomplete.remove(tensor).map(Bytes::from));
        }
        Ok(())
    }

    /// The union with others, without copying any.
    pub(crate) fn with(&self, others: &Self) -> Self {
        let all = self.known.iter().chain(&others.known);
        let known = all.map(|(name, weight)| (name.clone(), weight.clone())).collect();
        Self { known, incomplete: HashMap::new() }
    }

    /// Maximum bytes of one write: all of a mapped file.
    pub(crate) fn piece_bytes() -> u64 {
        if ALLOCATES { PIECE_BYTES } else { u64::MAX }
    }

    /// Bytes of a mapped file or of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.known.values().flat_map(|weight| &weight.parts).map(|part| part.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rullama_gguf::DType;

    use super::Weights;
    use crate::{
        error::EngineError,
        graph::{Element, Origin, Shape, Type},
    };

    fn reserved(rows: usize) -> Weights {
        let mut weights = Weights::default();
        let shape: Shape = [rows, 32].into();
        let ty = Type { element: Element::Weight(DType::Q8_0), shape };
        weights.reserve(&Origin::Weight("w".into()), DType::Q8_0, &ty).expect("there is memory");
        weights
    }

    #[test]
    fn rows_that_come_in_pieces_become_the_tensor() {
        let bytes: Vec<u8> = (0..3 * 34).map(|i| i as u8).collect();
        for allocated in [false, true] {
            let mut weights = reserved(3);
            if allocated {
                weights.allocate("w", 3 * 34).expect("there is memory");
            }
            for piece in [&bytes[..34], &bytes[34..]] {
                weights.write("w", Bytes::copy_from_slice(piece)).expect("it was reserved");
            }
            let weight = weights.get("w").expect("it is known");
            for row in 0..3 {
                assert_eq!(weight.row_bytes(row), &bytes[34 * row..][..34]);
            }
            assert_eq!(weights.bytes(), 3 * 34);
        }
    }

    #[test]
    fn unknown_tensors_and_impossible_sizes_are_refused() {
        let mut weights = reserved(1);
        let written = weights.write("other", Bytes::new());
        assert!(matches!(written, Err(EngineError::MissingWeight { .. })), "{written:?}");
        let allocated = weights.allocate("w", u64::MAX);
        assert!(matches!(allocated, Err(EngineError::OutOfMemory { .. })), "{allocated:?}");
    }
}
