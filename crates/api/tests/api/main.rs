//! Requests of each API into neutral ones, events into exact frames, and properties for all inputs.

mod anthropic_requests;
mod anthropic_stream;
mod bodies;
mod entry;
mod errors;
mod hostile;
mod listings;
mod llamacpp;
mod ollama_requests;
mod ollama_stream;
mod openai_requests;
mod openai_stream;
mod order;
mod responses_requests;
mod responses_stream;
mod same_conversation;
mod support;
