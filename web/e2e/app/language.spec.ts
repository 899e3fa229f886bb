// Other languages: length, direction and plural forms, on a phone and without barriers.
import type { Page } from "@playwright/test";
import { ar } from "../../app/src/text/ar/index.ts";
import { de } from "../../app/src/text/de/index.ts";
import { ja } from "../../app/src/text/ja/index.ts";
import { barriers, DEMO, expect, overflow, PHONE, test } from "./fixture.ts";

const PAGES = ["chat", "models", "search", "training", "storage", "settings", "device"];

for (const [language, texts] of Object.entries({ de, ja, ar })) {
  test.describe(language, () => {
    test.use({ locale: language, viewport: PHONE, fake: { served: DEMO, answer: "مرحبا **hello** こんにちは" } });
    test("every page fits a phone, and nothing keeps anybody out", async ({ app }) => {
      await expect(app.locator("html")).toHaveAttribute("lang", language);
      await expect(app.locator("html")).toHaveAttribute("dir", language === "ar" ? "rtl" : "ltr");
      await app.getByRole("button", { name: texts["welcome.try"] }).click();
      const field = app.getByRole("textbox", { name: texts["composer.message"], exact: true });
      await field.fill("Hello");
      await field.press("Enter");
      await expect(app.getByRole("article").last()).toContainText("hello");
      for (const page of PAGES) {
        await app.evaluate((hash) => (location.hash = hash), `#/${page}`);
        if (page !== "chat") await expect(app.getByRole("heading", { level: 1 })).toBeFocused();
        expect(await barriers(app), page).toEqual([]);
        expect(await overflow(app), page).toBe(0);
        expect(await sideways(app), page).toBe(false);
      }
    });
  });
}

/** Whether the page or anything in it can be scrolled sideways. */
function sideways(page: Page): Promise<boolean> {
  return page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll("main, main *")].some((element) => {
      if (element.closest("pre, .wide, .unseen, textarea, select, input")) return false;
      const scrolls = ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
      return (scrolls || element === document.documentElement) && element.scrollWidth > element.clientWidth + 1;
    }),
  );
}

test("messages have their own direction, and the language can be chosen", async ({ app }) => {
  await app.evaluate(() => (location.hash = "#/settings"));
  await app.getByLabel("Language").selectOption("ar");
  await expect(app.getByRole("heading", { name: ar["page.settings"], level: 1 })).toBeVisible();
  await expect(app.locator("html")).toHaveAttribute("dir", "rtl");
  await app.reload();
  await expect(app.locator("html")).toHaveAttribute("dir", "rtl");
  // The list of chats is on the right then.
  const side = await app.locator("aside").boundingBox();
  expect(side!.x).toBeGreaterThan(800);
  await app.getByLabel(ar["settings.language"]).selectOption("de");
  await expect(app.getByRole("heading", { name: de["page.settings"], level: 1 })).toBeVisible();
});
