//! The printed plans of golden models on simulated devices, compared with committed text: changes of kernel selection show up in review.
//!
//! To accept new plans: `RULLAMA_UPDATE_PLANS=1 cargo test -p rullama-runtime --test plans`.

use std::{fs, path::Path, rc::Rc};

use pollster::block_on;
use rullama_engine::{
    gpu::{DeviceFacts, Tuning},
    suite::real_devices,
};
use rullama_gguf::Gguf;
use rullama_runtime::model::{LoadOptions, describe_plans};
use rullama_source::MemorySource;
use rullama_testkit::golden;

const MODELS: [&str; 4] =
    ["micro-dense-BF16", "tiny-e2b-Q4_K_M", "tiny-moe-Q4_K_M", "micro-llama-Q4_1"];

fn devices() -> [(&'static str, DeviceFacts); 3] {
    let find = |wanted: &str| {
        let device = real_devices().into_iter().find(|(name, _)| *name == wanted);
        device.unwrap_or_else(|| panic!("no device {wanted}")).1
    };
    let nvidia = find("NVIDIA, Vulkan");
    // A device that small models keep busy: it selects the kernels of large shapes.
    let small =
        DeviceFacts { tuning: Tuning { busy_lanes: 256, ..Tuning::default() }, ..nvidia.clone() };
    [("nvidia", nvidia), ("nvidia-small", small), ("floor", find("the least of WebGPU"))]
}

#[test]
fn plans_are_as_committed() {
    let update = std::env::var_os("RULLAMA_UPDATE_PLANS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let mut changed = Vec::new();
    for model in MODELS {
        let source = MemorySource::new(model, golden(&format!("gguf/{model}.gguf")));
        let gguf = block_on(Gguf::open(Rc::new(source))).expect("a golden file opens");
        for (device, facts) in devices() {
            let options = LoadOptions { context: Some(1024), ..LoadOptions::default() };
            let plan = describe_plans(&gguf, &facts, &options).expect("golden models have plans");
            let path = folder.join(format!("{model}-{device}.txt"));
            if update {
                fs::create_dir_all(&folder).expect("the folder can be created");
                fs::write(&path, &plan).expect("a plan can be written");
            }
            let committed = fs::read_to_string(&path).unwrap_or_default();
            let differs = |(i, (new, old)): (usize, (&str, &str))| {
                (new != old).then(|| format!("line {}:\n- {old}\n+ {new}", i + 1))
            };
            let lines = plan.lines().zip(committed.lines()).enumerate();
            if plan != committed {
                let first = lines.filter_map(differs).next();
                changed.push(format!(
                    "{model} on {device}: {}",
                    first.unwrap_or_else(|| "another number of lines".into())
                ));
            }
        }
    }
    assert!(
        changed.is_empty(),
        "plans changed; if intended, set RULLAMA_UPDATE_PLANS=1 and run this test again:\n{}",
        changed.join("\n")
    );
}
