// The page's own policy, for static hosts that send no headers.
import { builtApp } from "./build.ts";
import { expect, test } from "../support/browser.ts";
import { TestServer } from "../support/server.ts";

test("without headers the page allows no scripts, frames and connections but its own", async ({ page }) => {
  const server = await TestServer.start({ folders: { "/": builtApp() }, isolated: false });
  try {
    await page.goto(server.origin);
    await page.getByRole("main").waitFor();
    const seen = await page.evaluate(async () => {
      const broken: string[] = [];
      document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => broken.push(effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      const frame = document.createElement("iframe");
      frame.src = "https://example.com/";
      document.body.append(frame);
      const told = await fetch("http://example.com/x").then(
        () => "answered",
        () => "refused",
      );
      // A busy browser reports them late.
      for (let wait = 0; wait < 300 && broken.length < 3; wait++)
        await new Promise((resolve) => setTimeout(resolve, 100));
      return { ran: "ran" in globalThis, told, broken: broken.sort() };
    });
    expect(seen).toEqual({ ran: false, told: "refused", broken: ["connect-src", "frame-src", "script-src-elem"] });
  } finally {
    await server.close();
  }
});
