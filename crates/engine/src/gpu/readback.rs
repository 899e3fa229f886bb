//! Reading buffers back from the device.

use std::{cell::RefCell, time::Duration};

use super::{Buffer, Gpu};
use crate::error::EngineError;

/// Timeout after which a device counts as stuck.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a software renderer, whose machine may be busy with other work.
const SOFTWARE_TIMEOUT: Duration = Duration::from_secs(1200);
/// Staging buffers kept for reuse; a decode loop with several steps in flight needs a few small ones.
const KEPT: usize = 16;
/// Maximum bytes of staging buffers, except for a larger one while it is read.
pub const STAGING_BYTES: u64 = 16 << 20;

/// Staging buffers that are not in use.
#[derive(Debug, Default)]
pub(super) struct StagingPool(RefCell<Vec<Buffer>>);

impl StagingPool {
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
        if buffer.size() > STAGING_BYTES {
            return;
        }
        // The least recently used buffers are dropped.
        while kept.len() >= KEPT
            || kept.iter().map(|buffer| buffer.size()).sum::<u64>() + buffer.size() > STAGING_BYTES
        {
            kept.remove(0);
        }
        kept.push(buffer);
    }
}

/// A readback in flight; there may be several.
#[derive(Debug)]
pub struct PendingReadback {
    gpu: Gpu,
    staging: Buffer,
    /// Bytes of each requested buffer, in order.
    parts: Vec<usize>,
    submission: wgpu::SubmissionIndex,
    mapped: async_channel::Receiver<Result<(), wgpu::BufferAsyncError>>,
}

/// Submits commands together with copies of the first bytes of some buffers.
pub(super) async fn submit(
    gpu: &Gpu,
    commands: Option<wgpu::CommandBuffer>,
    wanted: &[(&wgpu::Buffer, u64)],
) -> Result<PendingReadback, EngineError> {
    let bytes = wanted.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let staging = gpu.staging.take(gpu, bytes).await?;
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut at = 0;
    for (buffer, bytes) in wanted {
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, at, *bytes);
        at += bytes;
    }
    let submission = gpu.submit(commands.into_iter().chain([encoder.finish()]));
    let mut traffic = gpu.traffic.get();
    traffic.bytes_read_back += bytes;
    gpu.traffic.set(traffic);
    let (done, mapped) = async_channel::bounded(1);
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        // The receiver may be gone: the caller stopped waiting.
        let _ = done.try_send(result);
    });
    let parts = wanted.iter().map(|(_, bytes)| usize::try_from(*bytes).unwrap_or(0)).collect();
    Ok(PendingReadback { gpu: gpu.clone(), staging, parts, submission, mapped })
}

impl PendingReadback {
    /// Waits for the bytes of each buffer.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn wait(self) -> Result<Vec<Vec<u8>>, EngineError> {
        // Natively this blocks until the callback has run; browsers run it from their event loop.
        let poll = self.gpu.device.poll(wgpu::PollType::Wait {
            submission_index: Some(self.submission),
            timeout: Some(timeout(&self.gpu)),
        });
        if matches!(poll, Err(wgpu::PollError::Timeout)) {
            return Err(EngineError::Timeout);
        }
        let mapped = self.mapped.recv().await.map_err(|_| EngineError::DeviceLost)?;
        mapped.map_err(|_| EngineError::DeviceLost)?;
        let parts = {
            let view = self.staging.get_mapped_range(..).map_err(|_| EngineError::DeviceLost)?;
            let mut rest: &[u8] = &view;
            let mut part = |bytes: &usize| {
                let (part, after) = rest.split_at(*bytes);
                rest = after;
                part.to_vec()
            };
            self.parts.iter().map(&mut part).collect()
        };
        self.gpu.staging.give_back(self.staging);
        Ok(parts)
    }
}

fn timeout(gpu: &Gpu) -> Duration {
    if gpu.is_software() { SOFTWARE_TIMEOUT } else { TIMEOUT }
}

/// Reads the first `bytes` of a buffer, after everything that was queued.
pub(super) async fn read(
    gpu: &Gpu,
    buffer: &wgpu::Buffer,
    bytes: u64,
) -> Result<Vec<u8>, EngineError> {
    let parts = submit(gpu, None, &[(buffer, bytes)]).await?.wait().await?;
    Ok(parts.into_iter().next().unwrap_or_default())
}

/// A point in the device's queue.
#[derive(Debug)]
pub struct Fence {
    gpu: Gpu,
    submission: wgpu::SubmissionIndex,
    done: async_channel::Receiver<()>,
}

impl Fence {
    /// Submits the queued writes and marks this point of the queue.
    pub(super) fn new(gpu: &Gpu) -> Result<Self, EngineError> {
        gpu.check()?;
        let submission = gpu.submit([]);
        let (sender, done) = async_channel::bounded(1);
        gpu.queue.on_submitted_work_done(move || {
            // The receiver may be gone: the caller stopped waiting.
            let _ = sender.try_send(());
        });
        Ok(Self { gpu: gpu.clone(), submission, done })
    }

    /// Waits until the device has reached this point.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn wait(self) -> Result<(), EngineError> {
        let poll = self.gpu.device.poll(wgpu::PollType::Wait {
            submission_index: Some(self.submission),
            timeout: Some(timeout(&self.gpu)),
        });
        if matches!(poll, Err(wgpu::PollError::Timeout)) {
            return Err(EngineError::Timeout);
        }
        self.done.recv().await.map_err(|_| EngineError::DeviceLost)?;
        self.gpu.check()
    }
}
