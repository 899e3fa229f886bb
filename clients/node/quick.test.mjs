// What CI has time for: a text, its stream and a tool call with every client of npm, on the demo model at RULLAMA_URL.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOllama } from '@langchain/ollama';
import { generateText, jsonSchema, streamText, tool } from 'ai';
import { Ollama } from 'ollama';
import { createOllama } from 'ollama-ai-provider-v2';
import OpenAI from 'openai';

const url = process.env.RULLAMA_URL;
const model = 'demo';
const sum = 'What is 23 + 45?';
const messages = [{ role: 'user', content: sum }];
const asked = [{ role: 'user', content: 'What is the weather in Oslo?' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const weather = { type: 'function', function: { name: 'weather', description: 'The weather', parameters } };
const calm = { temperature: 0, num_predict: 60 };

/** The whole text of a stream. */
async function joined(stream, text) {
  let all = '';
  for await (const part of stream) all += text(part);
  return all;
}

test('ollama', async () => {
  const ollama = new Ollama({ host: url });
  const request = { model, messages, think: false, options: calm };
  const whole = await ollama.chat(request);
  assert.match(whole.message.content, /68/);
  assert.equal(await joined(await ollama.chat({ ...request, stream: true }), (part) => part.message.content), whole.message.content);
  const called = await ollama.chat({ ...request, messages: asked, tools: [weather] });
  assert.deepEqual(called.message.tool_calls[0].function.arguments, { city: 'Oslo' });
});

test('openai', async () => {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
  const request = { model, messages, temperature: 0, max_tokens: 60, reasoning_effort: 'none' };
  const whole = await openai.chat.completions.create(request);
  assert.match(whole.choices[0].message.content, /68/);
  const final = await openai.chat.completions.stream(request).finalChatCompletion();
  assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
  const called = await openai.chat.completions.create({ ...request, messages: asked, tools: [weather], tool_choice: 'required' });
  assert.equal(called.choices[0].finish_reason, 'tool_calls');
  assert.equal(typeof JSON.parse(called.choices[0].message.tool_calls[0].function.arguments).city, 'string');
});

test('anthropic', async () => {
  const anthropic = new Anthropic({ baseURL: url, apiKey: 'any', maxRetries: 0 });
  const request = { model, messages, max_tokens: 60, temperature: 0 };
  const whole = await anthropic.messages.create(request);
  assert.match(whole.content[0].text, /68/);
  const final = await anthropic.messages.stream(request).finalMessage();
  assert.equal(final.content[0].text, whole.content[0].text);
  const tools = [{ name: 'weather', input_schema: parameters }];
  const called = await anthropic.messages.create({ ...request, messages: asked, tools, tool_choice: { type: 'tool', name: 'weather' } });
  assert.equal(called.stop_reason, 'tool_use');
  assert.equal(typeof called.content[0].input.city, 'string');
});

for (const [name, provider, settings] of [
  ['openai-compatible', createOpenAICompatible({ name: 'rullama', baseURL: `${url}/v1` }), { rullama: { reasoningEffort: 'none' } }],
  ['ollama-ai-provider-v2', createOllama({ baseURL: `${url}/api` }), { ollama: { think: false } }],
]) {
  test(`ai sdk: ${name}`, async () => {
    const options = { model: provider(model), prompt: sum, temperature: 0, maxOutputTokens: 100, providerOptions: settings };
    const whole = await generateText(options);
    assert.match(whole.text, /68/);
    assert.equal(await joined(streamText(options).textStream, (part) => part), whole.text);
    const tools = { weather: tool({ description: 'The weather', inputSchema: jsonSchema(parameters) }) };
    const called = await generateText({ ...options, prompt: asked[0].content, tools });
    assert.deepEqual(called.toolCalls[0].input, { city: 'Oslo' });
  });
}

test('langchain', async () => {
  const chat = new ChatOllama({ baseUrl: url, model, temperature: 0, think: false, numPredict: 60 });
  const whole = await chat.invoke(sum);
  assert.match(String(whole.content), /68/);
  assert.equal(await joined(await chat.stream(sum), (part) => part.content), whole.content);
  const called = await chat.bindTools([weather]).invoke(asked[0].content);
  assert.deepEqual(called.tool_calls[0].args, { city: 'Oslo' });
});
