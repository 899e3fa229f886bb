// Clients of npm against the server at RULLAMA_URL with the demo model: text, streams, tools, schemas, images, audio, embeddings, errors, cancel.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOllama } from '@langchain/ollama';
import { generateText, streamText } from 'ai';
import { Ollama } from 'ollama';
import { createOllama } from 'ollama-ai-provider-v2';
import OpenAI from 'openai';

const url = process.env.RULLAMA_URL;
const model = 'demo';
const sum = 'What is 23 + 45?';
const messages = [{ role: 'user', content: sum }];
const golden = (name) => readFileSync(new URL(`../../goldens/demo/${name}`, import.meta.url)).toString('base64');
const weather = {
  type: 'function',
  function: { name: 'weather', description: 'The weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const schema = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'], additionalProperties: false };

const ollama = new Ollama({ host: url });
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: 'any', maxRetries: 0 });
const calm = { temperature: 0, num_predict: 60 };

test('ollama: chat, stream, generate, schema, image, audio', async () => {
  const whole = await ollama.chat({ model, messages, think: false, options: calm });
  assert.match(whole.message.content, /68/);
  assert.equal(whole.done_reason, 'stop');
  let text = '';
  for await (const part of await ollama.chat({ model, messages, think: false, options: calm, stream: true })) text += part.message.content;
  assert.equal(text, whole.message.content);
  const generated = await ollama.generate({ model, prompt: sum, think: false, options: calm });
  assert.equal(generated.response, text);
  const shaped = await ollama.chat({ model, messages, format: schema, think: false, options: { ...calm, num_predict: 300 } });
  assert.equal(typeof JSON.parse(shaped.message.content).sum, 'number');
  const seen = await ollama.chat({ model, think: false, options: calm, messages: [{ role: 'user', content: 'What is in the picture?', images: [golden('picture-1.png')] }] });
  assert.match(seen.message.content, /green triangles/);
  const heard = await ollama.chat({ model, think: false, options: calm, messages: [{ role: 'user', content: 'Which digit do you hear?', images: [golden('digit-6-Michael.wav')] }] });
  assert.equal(heard.message.content, '6');
});

test('ollama: list, show, ps, version, embeddings, errors, abort', async () => {
  assert.ok((await ollama.list()).models.some((entry) => entry.name === model));
  const shown = await ollama.show({ model });
  assert.equal(shown.model_info['general.architecture'], 'gemma4');
  assert.ok((await ollama.ps()).models.some((entry) => entry.name === model));
  assert.match((await ollama.version()).version, /^0\.13\.[4-9]/);
  const { embeddings } = await ollama.embed({ model: 'embedder', input: ['a cat', 'a dog'] });
  assert.equal(embeddings.length, 2);
  await assert.rejects(ollama.chat({ model: 'nobody', messages }), /model 'nobody' not found/);
  const stream = await ollama.chat({ model, messages: [{ role: 'user', content: 'Tell me a story.' }], stream: true, options: { num_predict: 2000 } });
  setTimeout(() => stream.abort(), 300);
  await assert.rejects(async () => {
    for await (const _ of stream);
    throw new DOMException('it ended before the abort', 'AbortError');
  }, { name: 'AbortError' });
});

test('openai: chat, helper stream, n, logprobs, schema, image, audio', async () => {
  const request = { model, messages, temperature: 0, max_completion_tokens: 60, reasoning_effort: 'none' };
  const whole = await openai.chat.completions.create(request);
  const text = whole.choices[0].message.content;
  assert.match(text, /68/);
  const helper = openai.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  const final = await helper.finalChatCompletion();
  assert.equal(final.choices[0].message.content, text);
  assert.equal((await helper.totalUsage()).completion_tokens, whole.usage.completion_tokens);
  const several = await openai.chat.completions.create({ ...request, n: 2, logprobs: true, top_logprobs: 2 });
  assert.equal(several.choices.length, 2);
  assert.ok(several.choices[1].logprobs.content[0].top_logprobs.length === 2);
  const shaped = await openai.chat.completions.create({ ...request, max_completion_tokens: 300, response_format: { type: 'json_schema', json_schema: { name: 'sum', schema, strict: true } } });
  assert.equal(typeof JSON.parse(shaped.choices[0].message.content).sum, 'number');
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${golden('picture-1.png')}` } };
  const seen = await openai.chat.completions.create({ ...request, messages: [{ role: 'user', content: [image, { type: 'text', text: 'What is in the picture?' }] }] });
  assert.match(seen.choices[0].message.content, /green triangles/);
  const audio = { type: 'input_audio', input_audio: { data: golden('digit-6-Michael.wav'), format: 'wav' } };
  const heard = await openai.chat.completions.create({ ...request, messages: [{ role: 'user', content: [audio, { type: 'text', text: 'Which digit do you hear?' }] }] });
  assert.equal(heard.choices[0].message.content, '6');
});

test('openai: responses, completions, embeddings, models, transcription, errors', async () => {
  const stream = openai.responses.stream({ model, input: sum, temperature: 0, reasoning: { effort: 'none' } });
  const response = await stream.finalResponse();
  assert.match(response.output_text, /68/);
  assert.equal(response.status, 'completed');
  const completion = await openai.completions.create({ model, prompt: sum, temperature: 0, max_tokens: 60 });
  assert.ok(completion.choices[0].text.length > 0);
  const { data } = await openai.embeddings.create({ model: 'embedder', input: 'a cat' });
  assert.ok(Math.abs(data[0].embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-3);
  assert.ok((await openai.models.list()).data.some((entry) => entry.id === model));
  const file = new File([readFileSync(new URL('../../goldens/demo/digit-6-Michael.wav', import.meta.url))], 'digit.wav');
  const written = await openai.audio.transcriptions.create({ model, file });
  assert.equal(typeof written.text, 'string');
  await assert.rejects(openai.chat.completions.create({ model: 'nobody', messages }), { status: 404, code: 'model_not_found' });
  await assert.rejects(openai.chat.completions.create({ model, messages, temperature: 'hot' }), { status: 400 });
});

test('openai: tools by choice', async () => {
  const request = { model, messages, tools: [weather], temperature: 0, max_tokens: 60, reasoning_effort: 'none' };
  const none = await openai.chat.completions.create({ ...request, tool_choice: 'none' });
  assert.equal(none.choices[0].message.tool_calls, undefined);
  const forced = await openai.chat.completions.create({ ...request, tool_choice: { type: 'function', function: { name: 'weather' } } });
  assert.equal(forced.choices[0].finish_reason, 'tool_calls');
  assert.equal(forced.choices[0].message.tool_calls[0].function.name, 'weather');
  const asked = [{ role: 'user', content: 'What is the weather in Oslo?' }];
  const first = await openai.chat.completions.create({ ...request, messages: asked });
  const [call] = first.choices[0].message.tool_calls;
  assert.equal(JSON.parse(call.function.arguments).city, 'Oslo');
  const result = { role: 'tool', tool_call_id: call.id, content: 'sunny, 20 degrees' };
  const second = await openai.chat.completions.create({ ...request, messages: [...asked, first.choices[0].message, result] });
  assert.equal(second.choices[0].finish_reason, 'stop');
});

test('anthropic: message, stream, count, errors', async () => {
  const request = { model, messages, max_tokens: 60, temperature: 0 };
  const whole = await anthropic.messages.create(request);
  assert.match(whole.content[0].text, /68/);
  assert.equal(whole.stop_reason, 'end_turn');
  const final = await anthropic.messages.stream(request).finalMessage();
  assert.deepEqual(final.content[0].text, whole.content[0].text);
  assert.deepEqual(final.usage.output_tokens, whole.usage.output_tokens);
  const count = await anthropic.messages.countTokens({ model, messages });
  assert.equal(count.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);
  await assert.rejects(anthropic.messages.create({ ...request, model: 'nobody' }), { status: 404 });
});

test('ai sdk: openai-compatible and ollama providers', async () => {
  const compatible = createOpenAICompatible({ name: 'rullama', baseURL: `${url}/v1` });
  const options = { prompt: sum, temperature: 0, maxOutputTokens: 200 };
  const whole = await generateText({ ...options, model: compatible(model) });
  assert.match(whole.text, /68/);
  let text = '';
  for await (const part of streamText({ ...options, model: compatible(model) }).textStream) text += part;
  assert.equal(text, whole.text);
  const native = createOllama({ baseURL: `${url}/api` });
  const other = await generateText({ ...options, model: native(model), providerOptions: { ollama: { think: false } } });
  assert.match(other.text, /68/);
});

test('langchain: ChatOllama', async () => {
  const chat = new ChatOllama({ baseUrl: url, model, temperature: 0, think: false, numPredict: 60 });
  const whole = await chat.invoke(sum);
  assert.match(String(whole.content), /68/);
  let text = '';
  for await (const part of await chat.stream(sum)) text += part.content;
  assert.equal(text, whole.content);
});
