// End-to-end tests in the system's Chromium. `npx playwright test -c e2e [storage|client|app]` from `web/`. Those tagged `@slow`
// repeat what others test in another thread or setting, or only measure: CI leaves them out.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: ".",
  globalSetup: "./global-setup.ts",
  outputDir: "results",
  // SwiftShader fills a core or two while it compiles, and most tests wait most of the time.
  workers: 2,
  // A busy machine compiles kernels for SwiftShader for half a minute.
  timeout: 180_000,
  expect: { timeout: 20_000 },
  forbidOnly: true,
  reporter: [["list"]],
});
