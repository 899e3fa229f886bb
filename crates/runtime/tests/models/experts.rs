//! Experts on the host: the same output with less GPU memory.

use std::{ops::ControlFlow, rc::Rc};

use pollster::block_on;
use rullama_engine::{executor::Device, ops::Draw};
use rullama_gguf::Gguf;
use rullama_models::{Catalog, decoder::Config};
use rullama_runtime::{
    Model, RuntimeError,
    model::{LoadOptions, MemoryUse},
    session::{DeviceSampling, SessionOptions, Tap},
};
use rullama_source::MemorySource;
use rullama_testkit::golden;

use crate::{
    golden::{Golden, devices, exact, model},
    parity::{check_greedy, check_logits},
};

const MODELS: [&str; 3] = ["micro-moe-BF16", "micro-moe-Q8_0", "tiny-moe-Q4_K_M"];

fn file(name: &str) -> Gguf {
    let source = MemorySource::new(name, golden(&format!("gguf/{name}.gguf")));
    block_on(Gguf::open(Rc::new(source))).expect("the file opens")
}

fn load(name: &str, device: &Device, options: &LoadOptions) -> Result<Model, RuntimeError> {
    let mut go_on = |_| ControlFlow::Continue(());
    block_on(Model::load(file(name), device.clone(), options, &mut go_on))
}

fn on_host(name: &str, device: &Device, layers: usize) -> Model {
    let options = LoadOptions { host_experts: Some(layers), ..LoadOptions::default() };
    load(name, device, &options).expect("the model loads")
}

fn gpus() -> Vec<Device> {
    devices().into_iter().filter(|device| matches!(device, Device::Gpu(_))).collect()
}

fn memory(name: &str, options: &LoadOptions) -> MemoryUse {
    let gguf = file(name);
    let config = Config::of_file(&gguf).expect("a configuration");
    let catalog = Catalog::of_file(&gguf, &config.expected()).expect("its tensors");
    MemoryUse::estimate(&config, &catalog, options)
}

#[test]
fn host_experts_do_not_change_logits_and_tokens() {
    for device in gpus() {
        for name in MODELS {
            let golden = Golden::of(name);
            for layers in [1, usize::MAX] {
                let model = on_host(name, &device, layers);
                assert_eq!(model.host_experts(), layers.min(model.config().layers.len()));
                let what = format!("{name} with {layers} on the host of {}", device.name());
                check_logits(&model, &golden, "medium", &what);
                check_greedy(&model, &golden, "short", &what);
            }
        }
    }
}

#[test]
fn the_fewest_layers_that_fit_go_to_the_host() {
    for name in MODELS {
        let fixed = |layers| {
            memory(name, &LoadOptions { host_experts: Some(layers), ..LoadOptions::default() })
        };
        let most = fixed(usize::MAX).host_experts;
        let plans: Vec<MemoryUse> = (0..=most).map(fixed).collect();
        let sizes = plans.iter().map(|plan| plan.gpu(false));
        for budget in sizes.clone().flat_map(|size| [size - 1, size, size + 1]).chain([0]) {
            let wanted = plans[1..].iter().fold(plans[0], |best, more| {
                let keep = best.gpu(false) <= budget || best.gpu(false) <= more.gpu(false);
                if keep { best } else { *more }
            });
            let options = LoadOptions { gpu_budget: Some(budget), ..LoadOptions::default() };
            assert_eq!(memory(name, &options), wanted, "{name} with {budget} bytes");
        }
    }
}

#[test]
fn prompts_in_chunks_of_any_size() {
    let name = "tiny-moe-Q4_K_M";
    let golden = Golden::of(name);
    let (ids, all) = (golden.ids("medium.ids"), golden.f32("medium.logits"));
    for device in gpus() {
        let model = on_host(name, &device, 2);
        for chunk in [1, 7, 512] {
            let options = SessionOptions { chunk, ..exact() };
            let mut session = model.session(&options).expect("a session");
            session.extend(&ids).expect("the prompt fits");
            let made = block_on(session.logits()).expect("logits");
            let wanted = &all[all.len() - made.len()..];
            let worst = made.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-3, "chunks of {chunk} on {}: off by {worst}", device.name());
        }
    }
}

#[test]
fn sampled_tokens_are_the_same() {
    let name = "micro-moe-Q8_0";
    let ids = Golden::of(name).ids("short.ids");
    let draw = Draw { temperature: 0.8, top_p: 1.0, min_p: 0.0, top_k: 40.0 };
    let sampling = DeviceSampling::Drawn { draw, seed: 7 };
    let drawn = |model: Model| -> Vec<Option<u32>> {
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&ids).expect("the prompt fits");
        (0..8).map(|_| block_on(session.next(sampling)).expect("a token")).collect()
    };
    for device in gpus() {
        assert_eq!(drawn(on_host(name, &device, 2)), drawn(on_host(name, &device, 0)));
    }
}

#[test]
fn traces_of_split_graphs_are_the_same() {
    let name = "micro-moe-BF16";
    let ids = Golden::of(name).ids("short.ids");
    let trace = |model: Model| -> Vec<Tap> {
        let mut session = model.session(&exact()).expect("a session");
        session.extend(&ids).expect("the prompt fits");
        block_on(session.trace()).expect("taps")
    };
    for device in gpus() {
        let (cut, whole) =
            (trace(on_host(name, &device, usize::MAX)), trace(on_host(name, &device, 0)));
        let names = |taps: &[Tap]| {
            let mut names: Vec<String> = taps.iter().map(|tap| tap.name.clone()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&cut), names(&whole), "on {}", device.name());
        assert!(!whole.is_empty());
        for tap in &whole {
            let other = cut.iter().find(|other| other.name == tap.name).expect("it is there");
            let pairs = tap.values.iter().zip(&other.values);
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-3, "{} on {}: off by {worst}", tap.name, device.name());
        }
    }
}

#[test]
fn saved_sessions_move_between_models_with_and_without_host_experts() {
    let name = "micro-moe-Q8_0";
    let golden = Golden::of(name);
    for device in gpus() {
        let models = [0, 2].map(|layers| on_host(name, &device, layers));
        for (from, to) in [(0, 1), (1, 0), (1, 1)] {
            let mut session = models[from].session(&exact()).expect("a session");
            session.extend(&golden.ids("short.ids")).expect("the prompt fits");
            for wanted in &golden.ids("short.greedy")[..3] {
                assert_eq!(
                    block_on(session.next(DeviceSampling::Greedy)).expect("a token"),
                    Some(*wanted)
                );
            }
            let saved = block_on(session.save()).expect("bytes");
            let mut session = block_on(models[to].restore(&saved)).expect("the same model");
            assert!(session.cached() > 0);
            for wanted in &golden.ids("short.greedy")[3..6] {
                let token = block_on(session.next(DeviceSampling::Greedy)).expect("a token");
                assert_eq!(token, Some(*wanted), "{from} to {to} on {}", device.name());
            }
        }
    }
}

#[test]
fn experts_on_the_host_leave_the_gpu() {
    for device in gpus() {
        for name in MODELS {
            let bytes = [0, 1, 2].map(|layers| {
                let model = on_host(name, &device, layers);
                (model.gpu_bytes(), model.host_expert_bytes())
            });
            assert_eq!(bytes[0].1, 0);
            for pair in bytes.windows(2) {
                let (left, gained) = (pair[0].0 - pair[1].0, pair[1].1 - pair[0].1);
                assert!(gained > 0 && left >= gained, "{name} on {}: {bytes:?}", device.name());
            }
            let planned = LoadOptions { host_experts: Some(2), ..LoadOptions::default() };
            assert_eq!(memory(name, &planned).host_expert_bytes, bytes[2].1, "{name}");
        }
    }
}

#[test]
fn the_cpu_and_models_without_experts_have_none_on_the_host() {
    assert_eq!(on_host(MODELS[0], &Device::Cpu, 2).host_experts(), 0);
    for device in devices() {
        assert_eq!(on_host("micro-dense-BF16", &device, 2).host_experts(), 0);
        assert_eq!(model(MODELS[0], &device).host_experts(), 0, "not requested");
    }
}

#[test]
fn a_budget_moves_as_few_layers_as_possible() {
    let name = "tiny-moe-Q4_K_M";
    let options = |host_experts, gpu_budget| LoadOptions {
        host_experts,
        gpu_budget,
        context: Some(16),
        ..LoadOptions::default()
    };
    let with = |layers| memory(name, &options(Some(layers), None));
    let all = Config::of_file(&file(name)).expect("a configuration").layers.len();
    let experts = with(0).gpu_expert_bytes;
    assert!(experts > 0 && with(0).host_expert_bytes == 0);
    for layers in 0..=all {
        let need = with(layers);
        assert_eq!(need.host_experts, layers);
        assert_eq!(need.gpu_expert_bytes + need.host_expert_bytes, experts);
        assert_eq!(need.weights + need.host_expert_bytes, with(0).weights);
        // Just enough, and a byte less.
        let budget = need.gpu(false);
        let fewest = (0..=all).find(|fewer| with(*fewer).gpu(false) <= budget);
        assert_eq!(Some(memory(name, &options(None, Some(budget))).host_experts), fewest);
        let fewest = (0..=all).find(|fewer| with(*fewer).gpu(false) < budget);
        let chosen = memory(name, &options(None, Some(budget - 1)));
        match fewest {
            Some(fewest) => assert_eq!(chosen.host_experts, fewest),
            None => assert!(chosen.gpu(false) >= budget, "nothing fits"),
        }
    }
    assert!(with(all).gpu(false) < with(0).gpu(false), "the host helps this model");
    for device in gpus() {
        let model = load(name, &device, &options(None, Some(with(1).gpu(false)))).expect("it fits");
        assert_eq!(model.host_experts(), 1);
        let least = (0..=all).map(|layers| with(layers).gpu(false)).min().expect("some");
        match load(name, &device, &options(None, Some(least - 1))) {
            Err(RuntimeError::DoesNotFit { need, budget, .. }) => {
                assert_eq!((need, budget), (least, least - 1));
            }
            other => panic!("{other:?}"),
        }
    }
}
