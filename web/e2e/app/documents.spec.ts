// Documents in the app: attached, measured, shown to the model whole or in passages, cited; and collections that chats share.
import { type Page } from "@playwright/test";
import { barriers, change, DEMO, expect, say, start, test } from "./fixture.ts";

const SERVED = [...DEMO, { name: "embedding:tiny", size: 3_000_000 }];
test.use({ fake: { served: DEMO } });

const text = (name: string, content: string, mimeType = "text/plain") => ({
  name,
  mimeType,
  buffer: Buffer.from(content),
});
const input = (app: Page) => app.getByLabel("Images, audio and video, or documents");
const asked = (app: Page) => app.evaluate(() => window.fake?.asked?.messages.at(-1)?.content);

/** Text by the codes of Windows' Japanese letters, as old files have it. */
const JAPANESE =
  "<</Type/Font/Subtype/Type0/BaseFont/J/Encoding/90ms-RKSJ-H/DescendantFonts[<</Type/Font/Subtype/CIDFontType0/BaseFont/J" +
  "/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>/FontDescriptor<</Type/FontDescriptor/FontName/J/Flags 4" +
  "/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>>>]>>";

/** A PDF with a text on each page; what runs over its edge would not be read. */
function pdf(lines: readonly string[]): Buffer {
  const objects = ["<</Type/Catalog/Pages 2 0 R>>"];
  const kids = lines.map((_, at) => `${4 + at * 2} 0 R`).join(" ");
  objects.push(
    `<</Type/Pages/Kids[${kids}]/Count ${lines.length}>>`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
  );
  for (const [at, line] of lines.entries()) {
    const rows = line.match(/.{1,80}/gu)?.map((row) => `(${row}) Tj T*`) ?? [];
    const stream = line.startsWith("<")
      ? `BT /F2 10 Tf 50 760 Td ${line} Tj ET`
      : `BT /F1 10 Tf 14 TL 50 760 Td ${rows.join(" ")} ET`;
    const page = `/Parent 2 0 R/MediaBox[0 0 612 792]/Contents ${5 + at * 2} 0 R/Resources<</Font<</F1 3 0 R/F2 ${JAPANESE}>>>>`;
    objects.push(`<</Type/Page${page}>>`, `<</Length ${stream.length}>>\nstream\n${stream}\nendstream`);
  }
  let file = "%PDF-1.4\n";
  const places = objects.map((object, at) => {
    const place = file.length;
    file += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, "0")} 00000 n \n`;
  });
  const begin = file.length;
  const count = objects.length + 1;
  file += `xref\n0 ${count}\n0000000000 65535 f \n${places.join("")}trailer\n<</Size ${count}/Root 1 0 R>>\nstartxref\n${begin}\n%%EOF`;
  return Buffer.from(file, "latin1");
}

test("a document is measured before it is sent, shown to the model in full, and kept", async ({ app }) => {
  await start(app);
  await input(app).setInputFiles(text("notes.md", "The launch code is apple.", "text/markdown"));
  await expect(app.getByText("5 tokens")).toBeVisible();
  expect(await barriers(app)).toEqual([]);
  await say(app, "What is the code?");
  expect(await asked(app)).toBe(
    '<document name="notes.md">\nThe launch code is apple.\n</document>\n\nWhat is the code?',
  );
  await app.reload();
  await app.getByRole("article").first().getByRole("button", { name: "Show notes.md" }).click();
  await expect(app.getByRole("dialog").getByText("The launch code is apple.")).toBeVisible();
});

test("documents are dropped and pasted; what is no document, or hostile, is refused", async ({ app }) => {
  await start(app);
  await app.evaluate(() => {
    const files = new DataTransfer();
    files.items.add(new File(["a,b\n1,2"], "table.csv", { type: "text/csv" }));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
    const pasted = new DataTransfer();
    pasted.items.add(new File(["fn main() {}"], "main.rs"));
    const field = document.querySelector("textarea");
    // Firefox leaves out files that a script puts into such an event.
    const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "clipboardData", { value: pasted });
    field?.dispatchEvent(event);
  });
  await expect(app.getByRole("button", { name: "Show table.csv" })).toBeVisible();
  await expect(app.getByRole("button", { name: "Show main.rs" })).toBeVisible();
  await input(app).setInputFiles([
    text("binary.txt", "\0\x01\x02"),
    text("broken.pdf", "%PDF-1.7 and nothing that follows", "application/pdf"),
    { name: "scan.pdf", mimeType: "application/pdf", buffer: pdf([""]) },
    text("huge.txt", "x".repeat(5_000_001)),
  ]);
  await expect(app.getByText("binary.txt is not a text file.")).toBeVisible();
  await expect(app.getByText("broken.pdf is damaged or not a PDF file.")).toBeVisible();
  await expect(app.getByText("scan.pdf has no text, only images.", { exact: false })).toBeVisible();
  await expect(app.getByText("huge.txt has more than 5,000,000 characters of text.")).toBeVisible();
  await expect(app.getByRole("button", { name: /^Show /u })).toHaveCount(2);
  await input(app).setInputFiles({ name: "old.pdf", mimeType: "application/pdf", buffer: pdf(["<93fa967b>"]) });
  await app.getByRole("button", { name: "Show old.pdf" }).click();
  await expect(app.getByRole("dialog").getByText("日本")).toBeVisible();
});

test("a PDF that does not fit is searched by words, then by meaning beside the chat model, and cited", async ({
  app,
}) => {
  await start(app);
  const loaded = () =>
    app.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => /\/pdf[.-]/u.test(name)));
  expect(await loaded()).toBe(false);
  const filler = (at: number) => `Page ${at} has many words about nothing at all. `.repeat(40);
  const pages = Array.from({ length: 20 }, (_, at) => (at === 12 ? "The secret animal is a walrus." : filler(at)));
  await input(app).setInputFiles({ name: "book.pdf", mimeType: "application/pdf", buffer: pdf(pages) });
  await expect(app.getByText(/tokens · too long for the context/u)).toBeVisible();
  expect(await loaded()).toBe(true);
  await change(app, { answer: "A walrus [1]." });
  await say(app, "Which secret animal?");
  expect(String(await asked(app))).toContain("[1] book.pdf, page");
  expect(String(await asked(app))).toContain("The secret animal is a walrus.");
  await expect(app.getByText("Searched by words, because no embedding model is loaded.")).toBeVisible();
  await app.getByRole("button", { name: "Source 1" }).click();
  await expect(app.getByRole("dialog").locator("mark")).toContainText("walrus");
  expect(await barriers(app)).toEqual([]);
  await app.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await change(app, { served: SERVED });
  await say(app, "And which animal is the secret one again?");
  await expect(app.getByText("Searched by words", { exact: false })).toHaveCount(1);
  await app.getByRole("button", { name: "Tools and documents" }).click();
  await expect(app.getByText(/embedding:tiny takes .* of GPU memory. Both models together: /u)).toBeVisible();
});

test("a collection is made on the search page, used by a chat, and deleted", async ({ app }) => {
  await start(app);
  await app.evaluate(() => (location.hash = "#/search"));
  await app.getByLabel("Texts to add").fill("Our office is in Lisbon.");
  await app.getByRole("button", { name: "Add", exact: true }).click();
  await expect(app.getByRole("combobox", { name: "Collection" })).toHaveText("My documents");
  await app.evaluate(() => (location.hash = "#/chat"));
  await app.getByRole("button", { name: "Tools and documents" }).click();
  await app.getByRole("checkbox", { name: /My documents/u }).check();
  expect(await barriers(app)).toEqual([]);
  await app.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await say(app, "Where is our office?");
  expect(String(await asked(app))).toContain("[1] Pasted:\nOur office is in Lisbon.");
  await app.reload();
  await app.evaluate(() => (location.hash = "#/search"));
  await app.getByRole("button", { name: "Remove Pasted" }).click();
  await expect(app.getByText("Removed Pasted from the collection.")).toBeVisible();
  await app.getByRole("button", { name: "Undo" }).click();
  await app.getByRole("button", { name: "Pasted", exact: true }).waitFor();
  await app.getByRole("button", { name: "Delete collection" }).click();
  await app.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
  await expect(app.getByText("Deleted “My documents”.")).toBeVisible();
  await expect(app.getByRole("combobox", { name: "Collection" })).toHaveCount(0);
});
