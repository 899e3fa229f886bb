//! Interrupted runs continue bit for bit; runs of several sequences, packed or not.

use std::rc::Rc;

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_runtime::Model;
use rullama_source::MemorySource;
use rullama_train::{
    AdapterOptions, Checkpoint, Event, Example, Run, RunOptions, Schedule, ScheduleShape, Settings,
    Shape, TrainError, Trainer, dataset::packed, fresh,
};

use crate::golden::{Golden, adapter, model};

fn options(steps: u32) -> RunOptions {
    RunOptions {
        schedule: Schedule { rate: 2e-3, warmup: 2, shape: ScheduleShape::Cosine, steps },
        settings: Settings { dropout: 0.2, decay: 0.01, ..Settings::default() },
        batch: 2,
        pack: None,
        tokens: None,
        seed: 5,
        evaluate: 2,
        patience: None,
    }
}

fn examples() -> Vec<Example> {
    let ids = Golden::of("micro-e2b-Q8_0").example().ids;
    [(0, 12), (3, 20), (10, 17)]
        .map(|(first, end)| Example::after_prompt(ids[first..end].to_vec(), 2))
        .into()
}

fn run(model: &Model, options: RunOptions) -> Run {
    let adapter = AdapterOptions { rank: 4, alpha: 8.0, targets: Vec::new(), seed: 3 };
    let adapter = fresh(model, &adapter).expect("an adapter");
    let held_out = vec![examples()[2].clone()];
    block_on(Run::new(model, &adapter, (examples(), held_out), options)).expect("a run")
}

fn events(run: &mut Run, most: usize) -> Vec<Event> {
    let next = || block_on(run.next()).expect("a step");
    std::iter::from_fn(next).take(most).collect()
}

#[test]
fn an_interrupted_run_continues_bit_for_bit() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let mut whole = run(&model, options(5));
    let adapter = AdapterOptions { rank: 4, alpha: 8.0, targets: Vec::new(), seed: 3 };
    let adapter = fresh(&model, &adapter).expect("an adapter");
    let sides = (examples(), vec![examples()[2].clone()]);
    let need = Run::need(&model, &adapter, sides, &options(5)).expect("an estimate");
    assert_eq!(need, whole.trainer().need());
    let wanted = events(&mut whole, 100);
    assert!(matches!(wanted.last(), Some(Event::Done { step: 5, early: false, .. })));

    let mut killed = run(&model, options(5));
    let begun = events(&mut killed, 3);
    let (bytes, pieces) = written(&killed);
    assert!(pieces.iter().all(|piece| *piece < bytes.len() / 4), "{pieces:?}");
    drop(killed);
    let mut second = run(&model, options(5));
    let checkpoint = opened(&bytes).expect("a checkpoint");
    block_on(second.resume(&checkpoint)).expect("the same run");
    // The evaluation after the second step was reported already.
    let rest = events(&mut second, 100);
    assert_eq!(begun.len() + rest.len(), wanted.len());
    assert_eq!([begun, rest].concat(), wanted);
    assert_eq!(whole.losses(), second.losses());
    let adapters =
        [&whole, &second].map(|run| block_on(run.trainer().adapter()).expect("an adapter"));
    assert_eq!(adapters[0].pairs, adapters[1].pairs);

    let other = RunOptions { seed: 6, ..options(5) };
    let refused = block_on(run(&model, other).resume(&checkpoint));
    assert!(matches!(refused, Err(TrainError::Checkpoint { .. })));
    for cut in [0, 7, bytes.len() / 2, bytes.len() - 1] {
        assert!(opened(&bytes[..cut]).is_err(), "{cut} bytes");
    }
}

/// A checkpoint file, and the lengths of its pieces.
fn written(run: &Run) -> (Vec<u8>, Vec<usize>) {
    let piece = |number| block_on(run.checkpoint_piece(number)).expect("a checkpoint");
    let pieces: Vec<Vec<u8>> = (0..).map_while(piece).collect();
    (pieces.concat(), pieces.iter().map(Vec::len).collect())
}

fn opened(bytes: &[u8]) -> Result<Checkpoint, TrainError> {
    block_on(Checkpoint::open(Rc::new(MemorySource::new("a checkpoint", bytes.to_vec()))))
}

#[test]
fn packed_examples_do_not_attend_to_each_other() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    let separate = examples();
    let packed = packed(&separate, Shape { tokens: 64, targets: usize::MAX });
    assert_eq!(packed.len(), 1);
    let gradients = |sequences: &[Example]| {
        let (tokens, targets) = rullama_train::dataset::largest(sequences);
        let shape = Shape { tokens, targets };
        let adapter = adapter("micro-e2b");
        let trainer = Trainer::new(&model, &adapter, shape, Settings::default());
        let mut trainer = block_on(trainer).expect("a trainer");
        let sequences: Vec<&Example> = sequences.iter().collect();
        let loss = block_on(trainer.gradients_of(&sequences, 0)).expect("a loss");
        (loss, block_on(trainer.gradients()).expect("gradients"))
    };
    let (wanted_loss, wanted) = gradients(&separate);
    let (loss, found) = gradients(&packed);
    assert!((loss - wanted_loss).abs() < 1e-5 * wanted_loss, "{loss} instead of {wanted_loss}");
    for ((name, _, found), (_, _, wanted)) in found.iter().zip(&wanted) {
        let norm = |values: &[f32]| values.iter().map(|x| x * x).sum::<f32>().sqrt();
        let error: Vec<f32> = found.iter().zip(wanted).map(|(a, b)| a - b).collect();
        assert!(norm(&error) <= 1e-4 * norm(wanted), "{name}");
    }
}

#[test]
fn a_run_ends_early_if_evaluations_do_not_improve() {
    let model = model("micro-e2b-Q8_0", &Device::Cpu);
    // A rate of zero changes nothing.
    let schedule = Schedule { rate: 0.0, warmup: 0, shape: ScheduleShape::Constant, steps: 50 };
    let options = RunOptions { schedule, evaluate: 1, patience: Some(2), ..options(50) };
    let events = events(&mut run(&model, options), 100);
    assert!(matches!(events.last(), Some(Event::Done { step: 3, early: true, .. })), "{events:?}");
}
