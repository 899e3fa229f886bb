//! What can go wrong outside the graph itself: weights and devices.

/// Why a graph cannot be made ready or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The graph names a weight that nobody brought.
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
        /// What was brought.
        found: String,
    },
    /// No adapter was found.
    #[error("no GPU found; update the GPU driver, or use the CPU")]
    NoAdapter {
        /// What wgpu says.
        source: wgpu::RequestAdapterError,
    },
    /// The adapter gave no device.
    #[error("cannot open the GPU; update its driver, or use the CPU")]
    NoDevice {
        /// What wgpu says.
        source: wgpu::RequestDeviceError,
    },
    /// The device is gone: a driver reset, a sleeping laptop, a closed tab.
    #[error("the GPU device was lost; reload the model")]
    DeviceLost,
    /// The device refused a command, and nothing it computes afterwards can be trusted: a bug of ours.
    #[error("the GPU rejected a command; reload the model, and please report this: {message}")]
    Refused {
        /// What wgpu says.
        message: String,
    },
    /// There is no memory for a buffer.
    #[error(
        "out of GPU memory: no room for {bytes} bytes ({what}); use a smaller model or a shorter context"
    )]
    OutOfMemory {
        /// What it was for.
        what: String,
        /// How much was asked for.
        bytes: u64,
    },
    /// A cache is larger than what a kernel can bind.
    #[error(
        "the cache `{name}` takes {bytes} bytes, but this GPU binds at most {limit} at a time; use a context of at most \
         {fits} positions or a smaller cache format"
    )]
    CacheTooLarge {
        /// Which state.
        name: String,
        /// How large it is.
        bytes: u64,
        /// How large a binding may be.
        limit: u64,
        /// Slots that would fit.
        fits: u64,
    },
    /// Waiting for the device took too long.
    #[error("the GPU did not respond in time; try again, or use the CPU")]
    Timeout,
    /// A kernel was refused by the driver's compiler.
    #[error("the driver rejected kernel {kernel}: {message}")]
    Kernel {
        /// Which one.
        kernel: String,
        /// What the compiler says.
        message: String,
    },
    /// No kernel reads this block format.
    #[error(
        "tensor `{name}` is stored as {format}, which no GPU kernel reads; run the model on the CPU (`--device cpu`) or use \
         another quantisation of it"
    )]
    UnsupportedFormat {
        /// Which weight.
        name: String,
        /// Its format.
        format: &'static str,
    },
    /// A piece of a weight is not made of whole rows.
    #[error("tensor `{name}`: {bytes} bytes from row {first} are not whole rows")]
    NotWholeRows {
        /// Which weight.
        name: String,
        /// First row of the piece.
        first: usize,
        /// Its length.
        bytes: usize,
    },
}
