//! Diffusion models: one request after another, block by block.

use std::{cell::Cell, ops::ControlFlow, rc::Rc, time::Instant};

use pollster::block_on;
use rullama::CacheType;
use rullama_api::{ApiError, GenerationEvent, GenerationRequest, Input, PromptText, ToolChoice};
use rullama_runtime::{
    Denoiser, RuntimeError,
    denoise::{DEFAULT_BLOCKS, Denoising, WriteOptions, Writing},
    generate::{ChatOptions, Prompt},
    options::resolve_seed,
};
use rullama_server::engine::Rendered;
use rullama_tokenizer::Render;
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    choice::{Choice, Group, Reading},
    decoder::{detokenized, entropy, tokenized},
    error::of_runtime,
    job::{Job, Task, not_for_this_model},
    load::Place,
    registry::Inbox,
};

/// Works on the jobs of a diffusion model until it is unloaded.
pub(crate) fn serve(
    inbox: &mut Inbox,
    denoiser: &Denoiser,
    place: &Place,
    cache: CacheType,
) -> Result<(), ApiError> {
    let failed = |error: RuntimeError| of_runtime(&error);
    let mut session = denoiser.session(place.context, cache).map_err(failed)?;
    let bytes = denoiser.gpu_bytes();
    inbox.status.loaded(place.size.max(bytes), bytes, session.context());
    let mut load = place.load_time;
    while let Some(job) = inbox.wait() {
        let Job { arrived, task } = job;
        if task.is_abandoned() {
            inbox.status.ended();
            continue;
        }
        match task {
            Task::Generate { request, events } => {
                let group = Group {
                    events,
                    arrived,
                    taken: Instant::now(),
                    prompt_tokens: 0,
                    cached_tokens: Cell::new(0),
                    is_started: Cell::new(false),
                    left: Cell::new(request.choices() as usize),
                    load: std::mem::take(&mut load),
                };
                generate(inbox, denoiser, &mut session, &request, group);
            }
            Task::Render { request, reply } => drop(reply.send(render(denoiser, &request))),
            Task::Tokenize { request, reply } => {
                let tokenizer = denoiser.tokenizer().map_err(failed);
                let _ = reply.send(tokenizer.map(|tokenizer| tokenized(tokenizer, &request)));
            }
            Task::Detokenize { tokens, reply } => {
                let tokenizer = denoiser.tokenizer().map_err(failed);
                let _ = reply.send(tokenizer.and_then(|tokenizer| detokenized(tokenizer, &tokens)));
            }
            Task::Adapters { reply } => drop(reply.send(Ok(Vec::new()))),
            Task::Load { reply } => drop(reply.send(Ok(()))),
            other => other.fail(not_for_this_model("do this: it is a diffusion model")),
        }
        inbox.status.ended();
        inbox.status.grown(denoiser.gpu_bytes() + session.gpu_bytes());
    }
    Ok(())
}

/// The prompts of a request.
fn prompts(denoiser: &Denoiser, request: &GenerationRequest) -> Result<Vec<Prompt>, ApiError> {
    let failed = |error: RuntimeError| of_runtime(&error);
    let chat = |conversation: &_| denoiser.prompt(conversation, ChatOptions::default());
    match &request.input {
        Input::Chat(input) => Ok(vec![chat(&input.conversation).map_err(failed)?]),
        Input::Prompt(input) => {
            let one = |text: &PromptText| match (input.to_chat(text), text) {
                (Some(input), _) => chat(&input.conversation).map_err(failed),
                (None, PromptText::Text(text)) => denoiser.plain_prompt(text).map_err(failed),
                (None, PromptText::Tokens(tokens)) => Ok(Prompt::tokens(tokens.clone())),
            };
            input.prompts.iter().map(one).collect()
        }
        Input::Load => Err(failed(RuntimeError::EmptyPrompt)),
    }
}

fn render(denoiser: &Denoiser, request: &GenerationRequest) -> Result<Rendered, ApiError> {
    let tokenizer = denoiser.tokenizer().map_err(|error| of_runtime(&error))?;
    let prompt = prompts(denoiser, request)?.into_iter().next();
    let tokens = prompt.map(|prompt| prompt.tokens).unwrap_or_default();
    Ok(Rendered { prompt: tokenizer.decode(&tokens, Render::All), tokens: tokens.len() as u64 })
}

fn generate(
    inbox: &Inbox,
    denoiser: &Denoiser,
    session: &mut Denoising,
    request: &GenerationRequest,
    mut group: Group,
) {
    let fail = |events: &UnboundedSender<GenerationEvent>, error| {
        let _ = events.send(GenerationEvent::Failed(error));
    };
    if request.format != rullama_api::Format::Text || request.logprobs.is_some() {
        let message = "diffusion models support neither JSON formats nor log-probabilities";
        return fail(&group.events, ApiError::Invalid { message: message.to_owned() });
    }
    let must_call = match &request.tool_choice {
        ToolChoice::Required | ToolChoice::Named(_) => true,
        ToolChoice::Allowed { required, .. } => *required,
        ToolChoice::Auto | ToolChoice::None => false,
    };
    if must_call || request.lora.as_ref().is_some_and(|lora| !lora.is_empty()) {
        let message = "diffusion models support neither demanded tool calls nor LoRA adapters";
        return fail(&group.events, ApiError::Invalid { message: message.to_owned() });
    }
    let prompts = match prompts(denoiser, request) {
        Ok(prompts) => prompts,
        Err(error) => return fail(&group.events, error),
    };
    group.prompt_tokens = prompts.iter().map(|prompt| prompt.tokens.len() as u64).sum();
    let group = Rc::new(group);
    let mut index = 0;
    for prompt in &prompts {
        for _ in 0..request.n.max(1) {
            let reading = Reading {
                stops: request.options.stop.clone().unwrap_or_default(),
                one_call: !request.parallel_tool_calls,
                context: None,
                echo: None,
            };
            let mut choice = Choice::new(&group, index, prompt.tokens.len(), reading);
            let seed = request.options.seed.map_or(-1, |seed| seed.saturating_add(index.into()));
            let written = block_on(write(denoiser, session, prompt, request, seed, &mut choice));
            if let Err(error) = written {
                choice.fail(of_runtime(&error));
                return;
            }
            inbox.registry().count(|metrics| choice.count(metrics));
            if group.events.is_closed() {
                return;
            }
            index += 1;
        }
    }
}

async fn write(
    denoiser: &Denoiser,
    session: &mut Denoising,
    prompt: &Prompt,
    request: &GenerationRequest,
    seed: i64,
    choice: &mut Choice,
) -> Result<(), RuntimeError> {
    let limit = request.options.num_predict.and_then(|tokens| usize::try_from(tokens).ok());
    let options = WriteOptions {
        denoise: denoiser.options(resolve_seed(seed, entropy()).into()),
        blocks: if limit.is_some() { usize::MAX } else { DEFAULT_BLOCKS },
        tokens: limit,
        stops: Vec::new(),
    };
    let tokenizer = denoiser.tokenizer()?;
    let mut writing = Writing::begin(session, denoiser, prompt, options).await?;
    loop {
        let events = choice.group.events.clone();
        let mut watch = |_: &_| {
            if events.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let more = writing.block(&mut watch).await?;
        while let Some(event) = writing.ready() {
            choice.event(event, tokenizer);
        }
        if !more || choice.is_over() {
            return Ok(());
        }
    }
}
