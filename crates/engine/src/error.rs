//! The crate's error type.

/// Why a graph cannot be prepared or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A weight of the graph was not loaded.
    #[error("the model has no tensor `{name}`")]
    MissingWeight {
        /// Name in the graph.
        name: String,
    },
    /// A weight is not what the graph expects.
    #[error("tensor `{name}` should be {wanted}, but is {found}")]
    WrongWeight {
        /// Name in the graph.
        name: String,
        /// Type in the graph.
        wanted: String,
        /// Type of the given weight.
        found: String,
    },
    /// No adapter was found.
    #[error("no GPU found; update the GPU driver, or use the CPU")]
    NoAdapter {
        /// wgpu's error.
        source: wgpu::RequestAdapterError,
    },
    /// The adapter could not be opened.
    #[error("cannot open the GPU; update its driver, or use the CPU")]
    NoDevice {
        /// wgpu's error.
        source: wgpu::RequestDeviceError,
    },
    /// The device was lost: a driver reset, a sleeping laptop, a closed tab.
    #[error("the GPU device was lost; reload the model")]
    DeviceLost,
    /// The device rejected a command, a bug in the engine; later results cannot be trusted.
    #[error("the GPU rejected a command; reload the model, and please report this: {message}")]
    Refused {
        /// wgpu's message.
        message: String,
    },
    /// Out of memory for a buffer.
    #[error(
        "out of GPU memory: cannot allocate {bytes} bytes ({what}); use a smaller model or a shorter context"
    )]
    OutOfMemory {
        /// What the buffer is for.
        what: String,
        /// Bytes requested.
        bytes: u64,
    },
    /// A KV cache is larger than a binding.
    #[error(
        "the cache `{name}` takes {bytes} bytes, but this GPU binds at most {limit} at a time; use a context of at most \
         {fits} positions or a smaller cache format"
    )]
    CacheTooLarge {
        /// Name of the state.
        name: String,
        /// Bytes of the cache.
        bytes: u64,
        /// Maximum bytes of a binding.
        limit: u64,
        /// Positions that would fit.
        fits: u64,
    },
    /// The device did not respond in time.
    #[error("the GPU did not respond in time; try again, or use the CPU")]
    Timeout,
    /// The driver's compiler rejected a kernel.
    #[error("the driver rejected kernel {kernel}: {message}")]
    Kernel {
        /// Label of the pipeline.
        kernel: String,
        /// The compiler's message.
        message: String,
    },
    /// No kernel reads this block format.
    #[error(
        "tensor `{name}` is stored as {format}, which no GPU kernel reads; run the model on the CPU (`--device cpu`) or use \
         another quantisation of it"
    )]
    UnsupportedFormat {
        /// Name of the tensor.
        name: String,
        /// Its format.
        format: &'static str,
    },
    /// A piece of a weight that does not consist of whole rows.
    #[error("tensor `{name}`: {bytes} bytes from row {first} are not whole rows")]
    NotWholeRows {
        /// Name of the tensor.
        name: String,
        /// First row of the piece.
        first: usize,
        /// Bytes of the piece.
        bytes: usize,
    },
}
