// Firefox as Debian ships it, on lavapipe, over WebDriver BiDi.
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type Browser as PlaywrightBrowser, firefox } from "@playwright/test";
import { type Browser, type Page, launch } from "puppeteer-core";

const PLACES = ["/usr/bin/firefox-esr", "/usr/bin/firefox"];
const VULKAN = "/usr/share/vulkan/icd.d";
/** Software adapters are on its list of those that are not offered, and not all versions have WebGPU everywhere. */
const PREFERENCES = {
  "dom.webgpu.enabled": true,
  "dom.webgpu.workers.enabled": true,
  "gfx.webgpu.ignore-blocklist": true,
  // What is asked of a hidden page must not wait.
  "dom.min_background_timeout_value": 4,
};

/** Variables under which Vulkan shows lavapipe alone, unless somebody chose drivers before. */
function drivers(): Record<string, string> {
  if (process.env["VK_ICD_FILENAMES"] !== undefined || !existsSync(VULKAN)) return {};
  const lavapipe = readdirSync(VULKAN).find((name) => name.startsWith("lvp_icd"));
  if (lavapipe === undefined) return {};
  const path = join(VULKAN, lavapipe);
  return { VK_ICD_FILENAMES: path, VK_DRIVER_FILES: path };
}

function executable(): string {
  const path = PLACES.find(existsSync);
  if (path === undefined) throw new Error("no Firefox: `cargo xtask firefox` installs it");
  return path;
}

/** A browser for Playwright's tests. */
export function launchFirefox(): Promise<PlaywrightBrowser> {
  return firefox.launch({
    channel: "moz-firefox",
    executablePath: executable(),
    firefoxUserPrefs: PREFERENCES,
    env: { ...(process.env as Record<string, string>), ...drivers() },
  });
}

export interface Firefox {
  page: Page;
  close(): Promise<void>;
}

/** A page at an address, in a browser with a profile and a home of its own. */
export async function openFirefox(address: string): Promise<Firefox> {
  const executablePath = executable();
  const home = await mkdtemp(join(tmpdir(), "rullama-firefox-"));
  let browser: Browser | undefined;
  const close = async () => {
    await browser?.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    browser = await launch({
      browser: "firefox",
      executablePath,
      headless: true,
      userDataDir: join(home, "profile"),
      extraPrefsFirefox: PREFERENCES,
      env: { ...process.env, ...drivers(), HOME: home, XDG_RUNTIME_DIR: home },
      // Kernels are compiled for minutes on a busy machine.
      protocolTimeout: 1_800_000,
    });
    const page = await browser.newPage();
    // So does a busy machine with pages: tests have limits of their own.
    page.setDefaultTimeout(300_000);
    await page.goto(address);
    return { page, close };
  } catch (error) {
    await close();
    throw error;
  }
}
