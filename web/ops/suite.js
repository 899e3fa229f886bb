// Runs the op suite in this page and shows how it goes.
import { Device, OpSuite } from "../client/dist/wasm/rullama.js";
import { openDevice } from "../client/dist/device.js";
import { startWasm } from "../client/dist/wasm-file.js";

const rows = document.querySelector("tbody");
const status = document.querySelector("#status");

function show(result) {
  const row = rows.insertRow();
  row.className = result.verdict;
  for (const key of ["op", "name", "play", "verdict", "message"]) row.insertCell().textContent = result[key];
}

/** At most `most` of each operation's cases, spread over all of them: a software adapter takes minutes for the whole. */
function sample(cases, most) {
  const all = new Map();
  for (const [index, { op }] of cases.entries()) all.set(op, [...(all.get(op) ?? []), index]);
  const spread = (places) => places.filter((_, i) => i % Math.max(1, Math.ceil(places.length / most)) === 0);
  return new Set([...all.values()].flatMap(spread));
}

/**
 * Runs the cases whose "op name" contains `filter`, at most `most` of each operation, in every role this device can play.
 * Resolves to `{ adapter, facts, results: [{ op, name, play, verdict, message, ms }], pipelines: [label] }`.
 */
export async function runSuite(filter = "", most = Infinity) {
  status.textContent = "loading";
  await startWasm();
  const device = await openDevice(Device, {});
  const suite = new OpSuite(device.engine);
  const { adapter, facts, plays, cases } = JSON.parse(suite.describe());
  const wanted = sample(cases, most);
  const results = [];
  for (const [p, play] of plays.entries()) {
    for (const [c, { op, name }] of cases.entries()) {
      if (!wanted.has(c) || !`${op} ${name}`.includes(filter)) continue;
      status.textContent = `${op} ${name} (${play})`;
      const start = performance.now();
      const outcome = JSON.parse(await suite.run(c, p));
      const result = { op, name, play, ...outcome, ms: performance.now() - start };
      results.push(result);
      show(result);
    }
  }
  status.textContent = `done: ${results.filter((r) => r.verdict === "failed").length} of ${results.length} failed`;
  return { adapter, facts, results, pipelines: JSON.parse(suite.pipelines()) };
}

// Tests call it by name; people get it by opening the page.
window.runSuite = runSuite;
const query = new URLSearchParams(location.search);
if (!query.has("wait")) runSuite(query.get("filter") ?? "");
