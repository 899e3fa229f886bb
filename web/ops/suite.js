// Runs the op suite in this page and shows how it goes. Its address says what is run, and who is told:
//
//   ops/?filter=linear%20,clipped&featureLevel=all&report=/log&done=/done
//
// `filter` names beginnings of "op case", `featureLevel` one of the feature levels. What fails is posted to `report`, and the outcome, counted by
// operation, to `done`, where these are given.
import { Device, OpSuite } from "../client/dist/wasm/rullama.js";
import { openDevice } from "../client/dist/device.js";
import { startWasm } from "../client/dist/wasm-file.js";

const rows = document.querySelector("tbody");
const status = document.querySelector("#status");

function show(result) {
  const row = rows.insertRow();
  row.className = result.verdict;
  for (const key of ["op", "name", "featureLevel", "verdict", "message"]) row.insertCell().textContent = result[key];
}

/** At most `most` of each operation's cases, spread over all of them: a software adapter takes minutes for the whole. */
function sample(cases, most) {
  const all = new Map();
  for (const [index, { op }] of cases.entries()) all.set(op, [...(all.get(op) ?? []), index]);
  const spread = (places) => places.filter((_, i) => i % Math.max(1, Math.ceil(places.length / most)) === 0);
  return new Set([...all.values()].flatMap(spread));
}

/**
 * Runs the cases whose "op name" begins with one of the words of `filter`, which commas part, at most `most` of each operation, at every
 * feature level this device can emulate, or at `featureLevel` alone. `begun` is told how many runs that is, `each` every result.
 * Resolves to `{ adapter, facts, results: [{ op, name, featureLevel, verdict, message, ms }], pipelines: [label] }`.
 */
export async function runSuite({ filter = "", most = Infinity, featureLevel: only, begun = () => {}, each = () => {} } = {}) {
  status.textContent = "loading";
  await startWasm();
  const device = await openDevice(Device, {});
  const suite = new OpSuite(device.engine);
  const { adapter, facts, levels, cases } = JSON.parse(suite.describe());
  const wanted = sample(cases, most);
  const words = filter.split(",");
  const results = [];
  const asked = [...cases.entries()].filter(
    ([c, { op, name }]) => wanted.has(c) && words.some((word) => `${op} ${name}`.startsWith(word)),
  );
  const chosen = [...levels.entries()].filter(([, featureLevel]) => featureLevel === (only ?? featureLevel));
  begun(asked.length * chosen.length);
  for (const [l, featureLevel] of chosen) {
    for (const [c, { op, name }] of asked) {
      status.textContent = `${op} ${name} (${featureLevel})`;
      const start = performance.now();
      const outcome = JSON.parse(await suite.run(c, l));
      const result = { op, name, featureLevel, ...outcome, ms: performance.now() - start };
      results.push(result);
      show(result);
      each(result);
    }
  }
  status.textContent = `done: ${results.filter((r) => r.verdict === "failed").length} of ${results.length} failed`;
  return { adapter, facts, results, pipelines: JSON.parse(suite.pipelines()) };
}

/** The outcome in few words: how many cases of each operation came out how, and which kernels by matrix units ran. */
function summary({ adapter, facts, results, pipelines }) {
  const counts = {};
  for (const { op, featureLevel, verdict } of results) {
    const count = (counts[`${op} (${featureLevel})`] ??= { passed: 0, failed: 0, skipped: 0 });
    count[verdict] += 1;
  }
  const matrix = pipelines.filter((label) => / (matrix|heads)\//.test(label));
  return { adapter, facts, counts, pipelines: pipelines.length, matrix };
}

/** Runs what the address says. */
async function runAsked(query) {
  // Only to the page's own origin: no other site learns what is measured here.
  const own = (address) => new URL(address, location.href).origin === location.origin;
  const tell = (name, body) => query.has(name) && own(query.get(name)) && fetch(query.get(name), { method: "POST", body });
  const each = ({ op, name, featureLevel, verdict, message }) =>
    verdict === "failed" && tell("report", `FAILED ${op} ${name} (${featureLevel}): ${message}`);
  try {
    const featureLevel = query.get("featureLevel") ?? undefined;
    const outcome = await runSuite({ filter: query.get("filter") ?? "", featureLevel, each });
    await tell("done", JSON.stringify(summary(outcome), undefined, 2));
  } catch (error) {
    status.textContent = `stopped: ${error}`;
    await tell("done", `stopped at: ${rows.lastElementChild?.textContent ?? "the beginning"}: ${error}`);
  }
}

// Tests call it by name; people get it by opening the page.
window.runSuite = runSuite;
const query = new URLSearchParams(location.search);
if (!query.has("wait")) runAsked(query);
