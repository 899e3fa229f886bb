//! Bringing bytes back from the device.

use std::{cell::RefCell, time::Duration};

use super::{Buffer, Gpu};
use crate::error::EngineError;

/// How long a device may take to answer before we call it stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same for a program that plays a device, on a machine that may do other things.
const SOFTWARE_PATIENCE: Duration = Duration::from_secs(1200);
/// Landing buffers that are kept for the next read; a token loop with several steps in flight needs a few small ones.
const KEPT: usize = 16;
/// Bytes of a device that landing buffers take at most, but for a large one while it is read.
pub const LANDING_BYTES: u64 = 16 << 20;

/// Landing buffers that are not in use.
#[derive(Debug, Default)]
pub(super) struct Landing(RefCell<Vec<Buffer>>);

impl Landing {
    async fn take(&self, gpu: &Gpu, bytes: u64) -> Result<Buffer, EngineError> {
        let free = self.0.borrow().iter().position(|buffer| buffer.size() == bytes);
        if let Some(at) = free {
            return Ok(self.0.borrow_mut().remove(at));
        }
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
        gpu.buffer("readback", bytes, usage).await
    }

    fn give_back(&self, buffer: Buffer) {
        buffer.unmap();
        let mut kept = self.0.borrow_mut();
        if buffer.size() > LANDING_BYTES {
            return;
        }
        // The least recently used ones make room.
        while kept.len() >= KEPT
            || kept.iter().map(|buffer| buffer.size()).sum::<u64>() + buffer.size() > LANDING_BYTES
        {
            kept.remove(0);
        }
        kept.push(buffer);
    }
}

/// Bytes that are being read back; several reads may be in flight.
#[derive(Debug)]
pub struct Arriving {
    gpu: Gpu,
    landing: Buffer,
    /// Bytes of each requested buffer, in order.
    parts: Vec<usize>,
    submission: wgpu::SubmissionIndex,
    mapped: async_channel::Receiver<Result<(), wgpu::BufferAsyncError>>,
}

/// Submits commands and copies of the first bytes of some buffers after them, all at once.
pub(super) async fn submit(
    gpu: &Gpu,
    commands: Option<wgpu::CommandBuffer>,
    wanted: &[(&wgpu::Buffer, u64)],
) -> Result<Arriving, EngineError> {
    let bytes = wanted.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let landing = gpu.landing.take(gpu, bytes).await?;
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut at = 0;
    for (buffer, bytes) in wanted {
        encoder.copy_buffer_to_buffer(buffer, 0, &landing, at, *bytes);
        at += bytes;
    }
    let submission = gpu.submit(commands.into_iter().chain([encoder.finish()]));
    let mut traffic = gpu.traffic.get();
    traffic.bytes_read_back += bytes;
    gpu.traffic.set(traffic);
    let (done, mapped) = async_channel::bounded(1);
    landing.map_async(wgpu::MapMode::Read, .., move |result| {
        // The receiver may be gone: the caller stopped waiting.
        let _ = done.try_send(result);
    });
    let parts = wanted.iter().map(|(_, bytes)| usize::try_from(*bytes).unwrap_or(0)).collect();
    Ok(Arriving { gpu: gpu.clone(), landing, parts, submission, mapped })
}

impl Arriving {
    /// Waits for the bytes, one list per buffer.
    ///
    /// # Errors
    /// If the device is gone or does not answer.
    pub async fn wait(self) -> Result<Vec<Vec<u8>>, EngineError> {
        // Natively this blocks until the callback has run; a browser calls it from its event loop.
        let poll = self.gpu.device.poll(wgpu::PollType::Wait {
            submission_index: Some(self.submission),
            timeout: Some(patience(&self.gpu)),
        });
        if matches!(poll, Err(wgpu::PollError::Timeout)) {
            return Err(EngineError::Timeout);
        }
        let mapped = self.mapped.recv().await.map_err(|_| EngineError::DeviceLost)?;
        mapped.map_err(|_| EngineError::DeviceLost)?;
        let parts = {
            let view = self.landing.get_mapped_range(..).map_err(|_| EngineError::DeviceLost)?;
            let mut rest: &[u8] = &view;
            let mut part = |bytes: &usize| {
                let (part, after) = rest.split_at(*bytes);
                rest = after;
                part.to_vec()
            };
            self.parts.iter().map(&mut part).collect()
        };
        self.gpu.landing.give_back(self.landing);
        Ok(parts)
    }
}

fn patience(gpu: &Gpu) -> Duration {
    if gpu.is_software() { SOFTWARE_PATIENCE } else { PATIENCE }
}

/// Copies the first `bytes` of a buffer to the host, after all that was queued before.
pub(super) async fn read(
    gpu: &Gpu,
    buffer: &wgpu::Buffer,
    bytes: u64,
) -> Result<Vec<u8>, EngineError> {
    let parts = submit(gpu, None, &[(buffer, bytes)]).await?.wait().await?;
    Ok(parts.into_iter().next().unwrap_or_default())
}

/// A mark after all that was queued.
#[derive(Debug)]
pub struct Fence {
    gpu: Gpu,
    submission: wgpu::SubmissionIndex,
    taken: async_channel::Receiver<()>,
}

impl Fence {
    /// Submits what was written and marks the place.
    pub(super) fn new(gpu: &Gpu) -> Result<Self, EngineError> {
        gpu.check()?;
        let submission = gpu.submit([]);
        let (done, taken) = async_channel::bounded(1);
        gpu.queue.on_submitted_work_done(move || {
            // The receiver may be gone: the caller stopped waiting.
            let _ = done.try_send(());
        });
        Ok(Self { gpu: gpu.clone(), submission, taken })
    }

    /// Waits until the device has come here.
    ///
    /// # Errors
    /// If the device is gone or does not answer.
    pub async fn wait(self) -> Result<(), EngineError> {
        let poll = self.gpu.device.poll(wgpu::PollType::Wait {
            submission_index: Some(self.submission),
            timeout: Some(patience(&self.gpu)),
        });
        if matches!(poll, Err(wgpu::PollError::Timeout)) {
            return Err(EngineError::Timeout);
        }
        self.taken.recv().await.map_err(|_| EngineError::DeviceLost)?;
        self.gpu.check()
    }
}
