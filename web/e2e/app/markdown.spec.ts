// A model's words in a real browser's parser: nothing in them may run, load or look like the app's own.
import { expect, test } from "./fixture.ts";

test.beforeEach(async ({ page, server }) => {
  await page.goto(`${server.origin}/test/markdown.html`);
  await page.waitForFunction(() => "show" in window);
});

const HOSTILE = [
  `<script>window.hit = 1</script>`,
  `<img src=x onerror="window.hit = 1">`,
  `<svg onload="window.hit = 1"><animate onbegin="window.hit = 1" attributeName=x dur=1s></svg>`,
  `<iframe src="javascript:window.parent.hit = 1"></iframe>`,
  `<a href="javascript:window.hit = 1" id="click">x</a>`,
  `[x](javascript:window.hit=1)`,
  `[x](  java\nscript:window.hit=1)`,
  `[x](data:text/html,<script>window.hit=1</script>)`,
  `[x](vbscript:x)`,
  `![x](https://example.org/track.png)`,
  `![x" onerror="window.hit=1](x)`,
  `![x](x "t\\" onerror=\\"window.hit=1")`,
  `<math><mtext><table><mglyph><style><img src=x onerror="window.hit=1">`,
  `<form action="https://example.org"><input name=password><button>send</button></form>`,
  `<style>body { display: none }</style>`,
  `<link rel=stylesheet href="https://example.org/x.css">`,
  `<meta http-equiv=refresh content="0;url=https://example.org">`,
  `<div style="position:fixed;inset:0">x</div>`,
  `<details open ontoggle="window.hit=1">x</details>`,
  "```html onload=x\n<script>window.hit = 1</script>\n```",
  '```"><img src=x onerror=window.hit=1>\nx\n```',
  `<b id="app" class="composer">x</b>`,
  `[x]: javascript:window.hit=1\n\n[x]`,
  `<https://example.org/"onmouseover="window.hit=1>`,
];

declare global {
  interface Window {
    /** Shows text as an answer is shown, and gives the HTML; the test's page has it. */
    show(text: string): string;
    blocks(text: string): { source: string }[];
  }
}

test("hostile answers neither run nor load anything", async ({ page, server }) => {
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  for (const text of HOSTILE) {
    const html = await page.evaluate((given) => window.show(given), text);
    const found = await page.evaluate(() => {
      const all = [...document.querySelectorAll("main *")];
      return {
        tags: all.map((one) => one.tagName.toLowerCase()),
        attributes: all.flatMap((one) => one.getAttributeNames().map((name) => `${name}=${one.getAttribute(name)}`)),
      };
    });
    const safe = /^(a|p|pre|code|em|strong|div|span|br|ul|ol|li)$/u;
    expect(
      found.tags.filter((tag) => !safe.test(tag)),
      `${text}\n→ ${html}`,
    ).toEqual([]);
    const fine =
      /^(href=(https?:|mailto:)|target=_blank$|rel=noopener noreferrer nofollow$|class=language-[\w+#.-]+$|title=)/u;
    expect(
      found.attributes.filter((one) => !fine.test(one)),
      `${text}\n→ ${html}`,
    ).toEqual([]);
    for (const link of await page.locator("main a").all()) await link.dispatchEvent("mouseover");
  }
  expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
  expect(requests.filter((url) => !url.startsWith(server.origin))).toEqual([]);
});

test("markdown as models write it", async ({ page }) => {
  const check = async (text: string, html: RegExp) =>
    expect(await page.evaluate((given) => window.show(given), text)).toMatch(html);
  await check("a **b** `c`", /<p>a <strong>b<\/strong> <code>c<\/code><\/p>/u);
  await check("```rust\nlet x = 1 < 2;\n```", /<pre><code class="language-rust">let x = 1 &lt; 2;\n<\/code><\/pre>/u);
  await check("| a |\n|:-:|\n| 1 |", /<table>.*<th align="center">a<\/th>/su);
  await check("- [x] done", /☑ done/u);
  await check("a <b>tag</b>", /a &lt;b&gt;tag&lt;\/b&gt;/u);
  await check("3. x", /<ol start="3">/u);
  await check("[a](https://example.org)", /<a .*href="https:\/\/example.org".*>a<\/a>/u);
  await check("![cat](https://example.org/cat.png)", /<a .*>Image: cat<\/a>/u);
});

test("a growing answer keeps its finished blocks", async ({ page }) => {
  const text = "# Title\n\nFirst paragraph.\n\n```js\nlet x;\n```\n\nLast";
  const cut = await page.evaluate((given) => {
    const all = window.blocks(given).map((block) => block.source.trim());
    const grown = window.blocks(`${given} words`).map((block) => block.source.trim());
    return { all, same: all.slice(0, -1).every((source, index) => source === grown[index]) };
  }, text);
  expect(cut.all).toHaveLength(4);
  expect(cut.same).toBe(true);
});
