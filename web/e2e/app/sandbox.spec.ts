// The JavaScript sandbox, under the policy that is sent: nothing in it reaches the network, the page or what the browser stores.
import { POLICY } from "../../app/policy.ts";
import { builtApp } from "./build.ts";
import { expect, test } from "../support/browser.ts";
import { TestServer } from "../support/server.ts";

/** Each must fail, in its own way; what succeeds is told. */
const ATTEMPTS = `
const origin = ${JSON.stringify("ORIGIN")};
const found = {};
const attempt = async (name, work) => {
  try { found[name] = "possible: " + String(await work()); } catch (error) { found[name] = "refused"; }
};
await attempt("fetch", () => fetch(origin + "/reached"));
await attempt("fetch of data", () => fetch("data:,x"));
await attempt("XMLHttpRequest", () => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  request.onload = () => resolve(request.status);
  request.onerror = () => reject(new Error("error"));
  request.open("GET", origin + "/reached");
  request.send();
}));
await attempt("WebSocket", () => new Promise((resolve, reject) => {
  const socket = new WebSocket(origin.replace("http", "ws") + "/reached");
  socket.onopen = () => resolve("open");
  socket.onerror = () => reject(new Error("error"));
}));
await attempt("EventSource", () => new Promise((resolve, reject) => {
  const source = new EventSource(origin + "/reached");
  source.onopen = () => resolve("open");
  source.onerror = () => reject(new Error("error"));
}));
await attempt("importScripts", () => importScripts(origin + "/reached.js"));
await attempt("import", () => import(origin + "/reached.js"));
await attempt("import of data", () => import("data:text/javascript,export default 1"));
await attempt("eval", () => eval("1 + 1"));
await attempt("Function", () => Function("return 1")());
await attempt("indexedDB", () => new Promise((resolve, reject) => {
  const request = indexedDB.open("rullama");
  request.onsuccess = () => resolve("open");
  request.onerror = () => reject(new Error("error"));
}));
await attempt("caches", () => caches.keys());
await attempt("storage", async () => { const root = await navigator.storage.getDirectory(); return root.name; });
await attempt("DOM", () => document.title);
await attempt("the page", () => parent.location.href);
return found;
`;

test("a program in the sandbox reaches nothing, and its value and output come back", async ({ page }) => {
  const policy = `${POLICY}; frame-ancestors 'none'`;
  const server = await TestServer.start({
    folders: { "/": builtApp() },
    headers: { "content-security-policy": policy },
  });
  try {
    server.script("/reached.js", "export default 1;");
    const settings = { tools: ["javascript"], allowedTools: ["javascript"] };
    // Scripts of the test also begin in the sandbox's frame, which has no storage.
    await page.addInitScript((text) => {
      if (window === top) localStorage.setItem("rullama-settings", text);
    }, JSON.stringify(settings));
    await page.addInitScript(() => (window.fake = { served: [{ name: "demo:latest", size: 1 }], word: 0 }));
    await page.goto(server.origin);
    await page.getByRole("button", { name: "Try it now" }).click();
    const run = async (code: string): Promise<string> => {
      const call = JSON.stringify({ name: "run_javascript", arguments: { code } });
      await page.evaluate(
        (text) => (window.fake!.toolCall = JSON.parse(text) as { name: string; arguments: object } as never),
        call,
      );
      const count = await page.getByRole("article").count();
      await page.getByRole("textbox", { name: "Message", exact: true }).fill("Run it");
      await page.keyboard.press("Enter");
      await page
        .getByRole("article")
        .nth(count + 1)
        .getByText("You said: {")
        .waitFor();
      return page.evaluate(() => String(window.fake?.asked?.messages.at(-1)?.content));
    };
    const { value } = JSON.parse(await run(ATTEMPTS.replace("ORIGIN", server.origin))) as { value: string };
    const found = JSON.parse(value) as Record<string, string>;
    expect(Object.keys(found)).toHaveLength(15);
    expect(Object.entries(found).filter(([, outcome]) => outcome !== "refused")).toEqual([]);
    expect(server.requests.filter((path) => path.startsWith("/reached"))).toEqual([]);
    expect(JSON.parse(await run("[3, 1, 2].toSorted()"))).toEqual({ value: "[1,2,3]" });
    expect(JSON.parse(await run('const a = 2n ** 70n;\nconsole.log("so", { a });\na * 2n'))).toEqual({
      value: "2361183241434822606848",
      printed: 'so {"a":"1180591620717411303424"}',
    });
    expect(await run("function f( {")).toContain("SyntaxError");
    expect(await run("null.x")).toContain("TypeError");
  } finally {
    await server.close();
  }
});
