// What pages bundle to talk to a model: clients as their publishers ship them.
export { default as Anthropic } from "@anthropic-ai/sdk";
export { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
export { Ollama } from "ollama/browser";
export { default as OpenAI } from "openai";
