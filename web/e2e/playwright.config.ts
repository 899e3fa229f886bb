// End-to-end tests in the system's Chromium: `npx playwright test -c e2e [storage|client|app]` from `web/`. Those tagged `@slow`
// take long, repeat what others test in another thread or setting, or only measure. `cargo xtask test` runs some of the rest, `cargo xtask
// web` all.
import { defineConfig } from "@playwright/test";
import type { WorkerFixtures } from "./storage/fixtures.ts";

/** Tests around the real engine. */
const REAL = /real(?:-features)?\.spec\.ts$/u;

export default defineConfig<object, Partial<WorkerFixtures>>({
  testDir: ".",
  globalSetup: "./global-setup.ts",
  outputDir: "results",
  // One for the package, which fills a core with a software GPU, and one for the rest, which mostly waits.
  workers: 2,
  projects: [
    // One after the other: they share a page whose kernels took half a minute to compile.
    { name: "client", testDir: "client", workers: 1 },
    { name: "storage", testDir: "storage" },
    // Long, so before the many short ones.
    { name: "app-real", testDir: "app", testMatch: REAL },
    { name: "app", testDir: "app", testIgnore: REAL },
    { name: "firefox", testDir: "firefox", workers: 1 },
    {
      name: "firefox-app",
      testDir: "app",
      testMatch:
        /(?:answers|chat|failures|organize|models|training|tools|documents|catalogue|keep|stored|offline|workspace|attach|language|policy|sandbox)\.spec\.ts$/u,
      grepInvert: /@chromium/u,
      use: { inFirefox: true },
      workers: 1,
    },
    {
      name: "firefox-storage",
      testDir: "storage",
      testIgnore: /(?:killed|tabs|speed)\.spec\.ts$/u,
      grepInvert: /@chromium/u,
      use: { inFirefox: true },
      workers: 1,
    },
  ],
  // A busy machine compiles kernels for minutes.
  timeout: 300_000,
  // A busy machine starts browsers and workers slowly.
  expect: { timeout: 60_000 },
  forbidOnly: true,
  reporter: [["list"]],
});
