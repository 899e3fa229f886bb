//! Memory of a device that is given back the moment nobody uses it, and how much of it is held.

use std::{cell::Cell, ops::Deref, rc::Rc};

/// Bytes of a device that are held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// By the buffers there are.
    pub now: u64,
    /// The most there were at once.
    pub most: u64,
}

/// A buffer that several may hold. It is destroyed with its last holder: in a browser, dropping alone leaves it to the garbage
/// collector, which knows nothing of gigabytes on the other side.
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

    /// Bytes it takes on the device.
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
