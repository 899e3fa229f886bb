//! Memory of a device that is given back the moment nobody uses it.

use std::{ops::Deref, rc::Rc};

/// A buffer that several may hold. It is destroyed with its last holder: in a browser, dropping alone leaves it to the garbage
/// collector, which knows nothing of gigabytes on the other side.
#[derive(Debug, Clone)]
pub struct Buffer(Rc<Destroyed>);

#[derive(Debug)]
struct Destroyed(wgpu::Buffer);

impl Drop for Destroyed {
    fn drop(&mut self) {
        self.0.destroy();
    }
}

impl Buffer {
    pub(super) fn new(buffer: wgpu::Buffer) -> Self {
        Self(Rc::new(Destroyed(buffer)))
    }

    /// Bytes it takes on the device.
    pub fn bytes(&self) -> u64 {
        self.size()
    }
}

impl Deref for Buffer {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.0.0
    }
}
