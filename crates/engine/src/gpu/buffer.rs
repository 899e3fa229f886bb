//! GPU buffers that are destroyed with their last reference, and the count of their bytes.

use std::{cell::Cell, ops::Deref, rc::Rc};

/// Bytes of all buffers on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Bytes of the buffers that exist now.
    pub now: u64,
    /// The peak so far.
    pub peak: u64,
}

/// A reference-counted buffer, destroyed with its last reference: in a browser, dropping a wgpu buffer leaves its memory to the garbage
/// collector, which does not see GPU memory and runs too late.
#[derive(Debug, Clone)]
pub struct Buffer(Rc<Destroyed>);

#[derive(Debug)]
struct Destroyed {
    buffer: wgpu::Buffer,
    allocated: Rc<Cell<Allocated>>,
}

impl Drop for Destroyed {
    fn drop(&mut self) {
        self.buffer.destroy();
        let Allocated { now, peak } = self.allocated.get();
        self.allocated.set(Allocated { now: now.saturating_sub(self.buffer.size()), peak });
    }
}

impl Buffer {
    pub(super) fn new(buffer: wgpu::Buffer, allocated: &Rc<Cell<Allocated>>) -> Self {
        let Allocated { now, peak } = allocated.get();
        let now = now + buffer.size();
        allocated.set(Allocated { now, peak: peak.max(now) });
        Self(Rc::new(Destroyed { buffer, allocated: allocated.clone() }))
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
