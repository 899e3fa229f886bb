//! Kernels as data: WGSL text, the parts it is composed from, and a dispatch of it.

use crate::graph::Value;

/// A WGSL file with one entry point `main`, completed by parts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Name in labels and messages: `folder/file`.
    pub name: &'static str,
    /// The text; lines `//#use kind` are replaced by the part of that kind.
    pub source: &'static str,
}

/// WGSL that replaces a `//#use` line. Parts of one kind define the same names and share a folder of that name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// The kind that `//#use` lines name.
    pub kind: &'static str,
    /// The part's name within its kind.
    pub name: &'static str,
    /// The text.
    pub source: &'static str,
}

/// A buffer that a kernel binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferRef {
    /// Input of the operation.
    Input(usize),
    /// A slab of a weight (input, slab): rows that fit one binding.
    Slab(usize, usize),
    /// Result of the operation.
    Output(usize),
    /// Input of the only operation that reads the first result; a weight in one slab.
    ReaderInput(usize),
    /// Scratch memory: its index and its bytes.
    Scratch(usize, u64),
}

/// A storage binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// `var<storage, read>`
    Read(BufferRef),
    /// `var<storage, read_write>`
    Write(BufferRef),
}

/// One dispatch. Binding 0 is the parameters, binding 1 the step; storage bindings follow in order. WGSL declares them by number, or with
/// `@binding(auto)` if they are bound by the variable's name.
#[derive(Debug, Clone)]
pub struct Dispatch {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The parts that complete it.
    pub parts: Vec<&'static Part>,
    /// Values of its `override` constants.
    pub constants: Vec<(&'static str, f64)>,
    /// Bytes of its parameter struct.
    pub params: Vec<u8>,
    /// Storage bindings.
    pub bindings: Vec<Bind>,
    /// WGSL variables declared with `@binding(auto)`, with the indices of their storage bindings.
    pub named: Vec<(&'static str, usize)>,
    /// Values that the next, independent dispatch reads: bound last and invisible to this kernel, so that both share a barrier.
    pub shared_reads: Vec<Value>,
    /// Workgroups in each dimension.
    pub grid: [u32; 3],
}

impl Dispatch {
    /// A dispatch of one workgroup without parts, constants, parameters or bindings.
    pub fn new(kernel: &'static Kernel) -> Self {
        Self {
            kernel,
            parts: vec![],
            constants: vec![],
            params: vec![],
            bindings: vec![],
            named: vec![],
            shared_reads: vec![],
            grid: [1, 1, 1],
        }
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, part: &'static Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Sets an `override` constant.
    #[must_use]
    pub fn constant(mut self, name: &'static str, value: impl Into<f64>) -> Self {
        self.constants.push((name, value.into()));
        self
    }

    /// Sets the parameter struct, of four-byte scalars; it is padded to 16 bytes.
    #[must_use]
    pub fn params(mut self, params: &impl bytemuck::NoUninit) -> Self {
        self.params = bytemuck::bytes_of(params).to_vec();
        self.params.resize(self.params.len().next_multiple_of(16), 0);
        self
    }

    /// Adds a read-only binding.
    #[must_use]
    pub fn read(mut self, buffer: BufferRef) -> Self {
        self.bindings.push(Bind::Read(buffer));
        self
    }

    /// Adds a writable binding.
    #[must_use]
    pub fn write(mut self, buffer: BufferRef) -> Self {
        self.bindings.push(Bind::Write(buffer));
        self
    }

    /// Adds a read-only binding for the WGSL variable of this name.
    #[must_use]
    pub fn read_as(mut self, name: &'static str, buffer: BufferRef) -> Self {
        self.named.push((name, self.bindings.len()));
        self.read(buffer)
    }

    /// Adds a writable binding for the WGSL variable of this name.
    #[must_use]
    pub fn write_as(mut self, name: &'static str, buffer: BufferRef) -> Self {
        self.named.push((name, self.bindings.len()));
        self.write(buffer)
    }

    /// The key of its pipeline, which is also the pipeline's debug label.
    pub fn label(&self) -> String {
        let mut label = self.kernel.name.to_owned();
        for part in &self.parts {
            label.push_str(&format!(" {}", part.name));
        }
        for (name, value) in &self.constants {
            label.push_str(&format!(" {name}={value}"));
        }
        label.push(' ');
        label.extend(self.bindings.iter().map(|bind| match bind {
            Bind::Read(_) => 'r',
            Bind::Write(_) => 'w',
        }));
        label.extend(self.shared_reads.iter().map(|_| 's'));
        label
    }

    /// Sets a grid of `n` workgroups in one row, or in several if a row would exceed WebGPU's limit; the kernel gets its index from
    /// `grid_index`.
    #[must_use]
    pub fn grid_over(self, n: usize) -> Self {
        const LONGEST: usize = 65_535;
        if n <= LONGEST { self.grid(n, 1, 1) } else { self.grid(LONGEST, n.div_ceil(LONGEST), 1) }
    }

    /// Sets the grid.
    #[must_use]
    pub fn grid(mut self, x: usize, y: usize, z: usize) -> Self {
        self.grid =
            [x, y, z].map(|n| u32::try_from(n).expect("a grid has fewer than 2^32 workgroups"));
        self
    }
}
