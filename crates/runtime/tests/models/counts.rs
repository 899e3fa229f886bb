//! Cost of a token: dispatches, submits, bytes.

use pollster::block_on;
use rullama_runtime::session::DeviceSampling;

use crate::golden::{devices, exact, model};
use rullama_engine::executor::Device;

#[test]
fn a_token_needs_few_dispatches_and_one_readback() {
    for device in devices() {
        let Device::Gpu(gpu) = &device else { continue };
        for (name, per_layer) in [("micro-e2b-Q8_0", 8), ("micro-dense-BF16", 7)] {
            let model = model(name, &device);
            let mut session = model.session(&exact()).expect("a session");
            session.extend(&[2, 5, 6]).expect("it fits");
            let cost = block_on(session.step_cost(DeviceSampling::Greedy)).expect("a graph");
            let layers = model.config().layers.len() as u64;
            // Outside the layers: embedding, per-layer inputs, final norm, LM head, softcap and sampling.
            assert!(
                cost.dispatches <= per_layer * layers + 10,
                "{name} on {}: {} dispatches for {layers} layers",
                device.name(),
                cost.dispatches
            );
            block_on(session.next(DeviceSampling::Greedy)).expect("a token");
            let before = gpu.traffic();
            block_on(session.next(DeviceSampling::Greedy)).expect("a token");
            let after = gpu.traffic();
            assert_eq!(after.submits - before.submits, 1, "{name} on {}", device.name());
            let read = after.bytes_read_back - before.bytes_read_back;
            assert!(read <= 1024, "{name} on {}: {read} bytes read back", device.name());
        }
    }
}
