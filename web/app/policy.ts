// What the app's page may load: its own scripts and wasm; models also from other servers. `rullama serve` sends the same as a header
// (crates/server, headers.rs), with `frame-ancestors`, which counts in headers alone; a test compares the two.

export const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
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
