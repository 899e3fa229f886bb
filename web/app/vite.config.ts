import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { VitePWA } from "vite-plugin-pwa";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { POLICY } from "./policy.js";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const icon = (size: number, purpose: "any" | "maskable") => ({
  src: `icons/${purpose}-${size}.png`,
  sizes: `${size}x${size}`,
  type: "image/png",
  purpose,
});

/** The policy in the page itself, for hosts that send no headers. Not while developing, where Vite puts scripts into pages. */
const policy: Plugin = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    { tag: "meta", attrs: { "http-equiv": "Content-Security-Policy", content: POLICY }, injectTo: "head-prepend" },
  ],
};

/** What each mode builds, and where: the app that is shipped, the app around a made-up engine for its tests, the benchmark page. */
const BUILDS: Record<string, { folder: string; pages: string[] }> = {
  production: { folder: "dist", pages: ["index.html"] },
  fake: { folder: "dev-dist", pages: ["index.html", "test/markdown.html"] },
  bench: { folder: "bench-dist", pages: ["bench.html"] },
};

/** Everything that the first page needs, in one script: by itself, the bundler makes one for each set of modules that the page shares with what
 * is loaded later. Not the scripts that start a page: they would run in all pages. */
const FIRST = {
  name: "app",
  tags: ["$initial" as const],
  test: (id: string) => !/\.html$|\/(?:src\/main|src\/bench|test\/markdown-page)\.ts$/u.test(id),
};

// The modes `fake` and `bench` are for tests and measurements; what they build is never shipped.
export default defineConfig(({ mode }) => {
  const fake = mode === "fake" || mode === "test";
  const build = BUILDS[mode] ?? BUILDS["production"]!;
  return {
    resolve: {
      alias: fake ? [{ find: /^rullama$/, replacement: here("test/fake-engine.ts") }] : [],
      // Tests of state modules run the client build of Svelte, not the one for servers.
      conditions: mode === "test" ? ["browser"] : undefined,
    },
    build: {
      outDir: build.folder,
      target: "es2022",
      // The page's policy allows no inline data beyond images, and hashed files are kept for good.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: { input: build.pages.map(here), output: { codeSplitting: { groups: [FIRST] } } },
    },
    worker: { format: "es" },
    plugins: [
      svelte(),
      ...(mode === "bench" ? [] : [policy]),
      VitePWA({
        disable: mode === "bench",
        strategies: "injectManifest",
        srcDir: "src",
        filename: "sw.ts",
        injectRegister: false,
        includeManifestIcons: false,
        injectManifest: {
          // The plugin adds the manifest itself; the same file twice would fail the whole installation.
          globPatterns: ["**/*.{html,js,css,wasm,svg,png}"],
          // The app constrains no replies, so it never needs the grammars. What runs chat templates, reads PDFs and MCP is fetched and kept
          // when needed.
          globIgnores: ["test/**", "**/guidance_bg*.wasm", "**/template_bg*.wasm", "**/pdf[.-]*.js", "**/mcp-*.js"],
          maximumFileSizeToCacheInBytes: 32 << 20,
        },
        manifest: {
          name: "rullama",
          short_name: "rullama",
          description: "Chat with language models that run on this device's own GPU",
          id: "/",
          start_url: "/",
          scope: "/",
          display: "standalone",
          background_color: "#faf9f7",
          theme_color: "#faf9f7",
          icons: [icon(192, "any"), icon(512, "any"), icon(512, "maskable")],
        },
      }),
    ],
    test: { include: ["test/**/*.test.ts"], environment: "node" },
  };
});
