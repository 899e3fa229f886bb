//! GPU buffers that are destroyed with their last reference, and the count of their bytes.

use std::{cell::Cell, ops::Deref, rc::Rc};

/// Bytes of all buffers on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes of the buffers that exist now.
    pub now: u64,
    /// The peak so far.
    pub most: u64,
}

/// A reference-counted buffer, destroyed with its last reference: in a browser, dropping a wgpu buffer leaves its memory to the garbage
/// collector, which does not see GPU memory and runs too late.
#[derive(Debug, Clone)]
pub struct Buffer(Rc<Destroyed>);

#[derive(Debug)]
struct Destroyed {
    buffer: wgpu::Buffer,
    held: Rc<Cell<Held>>,
}

impl Drop for Destroyed {
    fn drop(&mut self) {
        self.buffer.destroy();
        let Held { now, most } = self.held.get();
        self.held.set(Held { now: now.saturating_sub(self.buffer.size()), most });
    }
}

impl Buffer {
    pub(super) fn new(buffer: wgpu::Buffer, held: &Rc<Cell<Held>>) -> Self {
        let Held { now, most } = held.get();
        let now = now + buffer.size();
        held.set(Held { now, most: most.max(now) });
        Self(Rc::new(Destroyed { buffer, held: held.clone() }))
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        self.size()
    }
}

impl Deref for Buffer {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.0.buffer
    }
}
