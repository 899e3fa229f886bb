import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { VitePWA } from "vite-plugin-pwa";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const icon = (size: number, purpose: "any" | "maskable") => ({
  src: `icons/${purpose}-${size}.png`,
  sizes: `${size}x${size}`,
  type: "image/png",
  purpose,
});

// `--mode fake` builds the app around a made-up engine, for tests of the app alone; it is never shipped.
export default defineConfig(({ mode }) => {
  const fake = mode === "fake" || mode === "test";
  const pages = ["index.html", "bench.html"].filter((page) => existsSync(here(page)));
  return {
    resolve: {
      alias: fake ? [{ find: "rullama", replacement: here("test/fake-engine.ts") }] : [],
      // Tests of state modules run the client build of Svelte, not the one for servers.
      conditions: mode === "test" ? ["browser"] : undefined,
    },
    build: {
      outDir: fake ? "dev-dist" : "dist",
      target: "es2022",
      // The page's policy allows no inline data beyond pictures, and hashed files are kept for good.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: { input: fake ? ["index.html", "test/markdown.html"].map(here) : pages.map(here) },
    },
    worker: { format: "es" },
    plugins: [
      svelte(),
      VitePWA({
        strategies: "injectManifest",
        srcDir: "src",
        filename: "sw.ts",
        injectRegister: false,
        includeManifestIcons: false,
        injectManifest: {
          // The plugin adds the manifest itself; the same file twice would fail the whole installation.
          globPatterns: ["**/*.{html,js,css,wasm,svg,png}"],
          globIgnores: ["test/**"],
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
