// What the app's page may load: its own scripts and wasm; models also from other servers. `rullama serve` sends the same as a header
// (crates/server, headers.rs), with `frame-ancestors`, which counts in headers alone; a test compares the two. The hash is that of the one
// script in the frame of the JavaScript sandbox (src/tools/sandbox-frame.ts), which adds a stricter policy of its own. MCP servers that
// users add are reached as models on other servers are: by https, or on this machine.

/** The script of the sandbox's frame. */
export const FRAME_HASH = "'sha256-BRbGAi+wjla/WhyJiPRqOOYuZTc8veKvHLYsMNNxYd0='";

export const POLICY = [
  "default-src 'none'",
  `script-src 'self' 'wasm-unsafe-eval' ${FRAME_HASH}`,
  "worker-src 'self' blob:",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "font-src 'self'",
  "connect-src 'self' https: http://127.0.0.1:* http://localhost:*",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
