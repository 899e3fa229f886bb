//! Bringing bytes back from the device.

use std::time::Duration;

use super::Gpu;
use crate::error::EngineError;

/// How long a device may take to answer before we call it stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Copies the first `bytes` of a buffer to the host, after all that was queued before.
pub(super) async fn read(
    gpu: &Gpu,
    buffer: &wgpu::Buffer,
    bytes: u64,
) -> Result<Vec<u8>, EngineError> {
    let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
    let staging = gpu.buffer("readback", bytes, usage).await?;
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, bytes);
    gpu.queue.submit([encoder.finish()]);

    let (done, wait) = async_channel::bounded(1);
    staging.map_async(wgpu::MapMode::Read, .., move |result| {
        // The receiver may be gone: the caller stopped waiting.
        let _ = done.try_send(result);
    });
    // Natively this blocks until the callback has run; a browser calls it from its event loop.
    let poll =
        gpu.device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(PATIENCE) });
    if matches!(poll, Err(wgpu::PollError::Timeout)) {
        return Err(EngineError::Timeout);
    }
    wait.recv().await.map_err(|_| EngineError::DeviceLost)?.map_err(|_| EngineError::DeviceLost)?;
    let view = staging.get_mapped_range(..).map_err(|_| EngineError::DeviceLost)?;
    Ok(view.to_vec())
}
