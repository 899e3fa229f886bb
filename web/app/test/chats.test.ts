import { expect, test } from "vitest";
import { textOf } from "../src/lib/import.js";
import { memoryDatabase } from "../src/lib/memory-database.js";
import { Chats } from "../src/state/chats.svelte.js";
import { channels, quiet } from "./support.js";

async function two() {
  const database = memoryDatabase();
  const [left, right] = channels();
  const tabs = [new Chats(database, left), new Chats(database, right)] as const;
  for (const tab of tabs) await tab.start();
  return { database, tabs };
}

const contents = (chats: Chats) => chats.path.map((turn) => turn.content);

test("the first message makes a conversation and names it", async () => {
  const { database, tabs } = await two();
  const [tab] = tabs;
  tab.draftSystem = "be brief";
  const asked = await tab.add({ role: "user", content: "Why is the sky blue?" });
  await tab.add({ role: "assistant", content: "Because." });
  expect(tab.list.map((one) => one.title)).toEqual(["Why is the sky blue?"]);
  expect(contents(tab)).toEqual(["Why is the sky blue?", "Because."]);
  const [kept] = await database.conversations();
  expect(kept).toMatchObject({ system: "be brief", leaf: tab.path[1]?.id });
  expect(await database.turns(asked.conversation)).toHaveLength(2);
});

test("editing branches off and loses nothing", async () => {
  const { tabs } = await two();
  const [tab] = tabs;
  const first = await tab.add({ role: "user", content: "one" });
  await tab.add({ role: "assistant", content: "answer to one" });
  await tab.add({ role: "user", content: "other" }, first.parent);
  await tab.add({ role: "assistant", content: "answer to other" });
  expect(contents(tab)).toEqual(["other", "answer to other"]);
  await tab.step(tab.path[0]!, -1);
  expect(contents(tab)).toEqual(["one", "answer to one"]);
  await tab.step(tab.path[0]!, -1);
  expect(contents(tab)).toEqual(["one", "answer to one"]);
  await tab.step(tab.path[0]!, 1);
  expect(contents(tab)).toEqual(["other", "answer to other"]);
});

test("two tabs see each other's work and do not undo it", async () => {
  const { database, tabs } = await two();
  const [one, other] = tabs;
  const asked = await one.add({ role: "user", content: "question" });
  await quiet();
  await other.open(asked.conversation);
  expect(contents(other)).toEqual(["question"]);
  // Both change different things of the same conversation at once.
  await Promise.all([one.rename(asked.conversation, "renamed"), other.add({ role: "assistant", content: "answer" })]);
  await quiet();
  const [kept] = await database.conversations();
  expect(kept?.title).toBe("renamed");
  expect(await database.turns(asked.conversation)).toHaveLength(2);
  expect(contents(one)).toEqual(["question", "answer"]);
  expect(other.list[0]?.title).toBe("renamed");
});

test("what is said while another tab's news are read stays the last word", async () => {
  const { database, tabs } = await two();
  const [one, other] = tabs;
  const asked = await one.add({ role: "user", content: "question" });
  await quiet();
  await other.open(asked.conversation);
  const { conversations } = database;
  let goOn = () => {};
  const slow = new Promise<void>((resolve) => (goOn = resolve));
  database.conversations = async () => {
    const read = await conversations();
    await slow;
    return read;
  };
  await other.save(asked);
  await quiet();
  const said = one.add({ role: "user", content: "one more thing" });
  await quiet();
  goOn();
  await said;
  await quiet();
  expect(contents(one)).toEqual(["question", "one more thing"]);
});

test("a turn that is being written here is not replaced by what was saved of it", async () => {
  const { tabs } = await two();
  const [one, other] = tabs;
  const asked = await one.add({ role: "user", content: "question" });
  const answer = await one.add({ role: "assistant", content: "" });
  one.writing.set(answer.id, answer);
  answer.content = "longer than what was saved";
  await quiet();
  await other.open(asked.conversation);
  await other.rename(asked.conversation, "renamed");
  await quiet();
  expect(contents(one)).toEqual(["question", "longer than what was saved"]);
  // Leaving and coming back finds the live turn, not its saved beginning.
  await one.open();
  await one.open(asked.conversation);
  answer.content += "!";
  expect(contents(one)[1]).toBe("longer than what was saved!");
});

test("deleting can be undone, then not any more", async () => {
  const { database, tabs } = await two();
  const [one, other] = tabs;
  const asked = await one.add({ role: "user", content: "question" });
  await quiet();
  await other.open(asked.conversation);
  await one.remove(asked.conversation);
  await quiet();
  expect(one.list).toHaveLength(0);
  expect(one.current).toBeUndefined();
  expect(other.current).toBeUndefined();
  await one.restore(asked.conversation);
  expect(one.list).toHaveLength(1);
  await one.remove(asked.conversation);
  await one.forget(asked.conversation);
  expect(await database.conversations()).toEqual([]);
  // An answer that ends afterwards does not bring it back.
  await one.save({ ...asked, content: "late" });
  expect(await database.turns(asked.conversation)).toEqual([]);
});

test("what was deleted long ago is forgotten at the next start", async () => {
  const { database, tabs } = await two();
  const asked = await tabs[0].add({ role: "user", content: "question" });
  await database.change(asked.conversation, { deleted: Date.now() - 120_000 });
  await tabs[1].start();
  expect(tabs[1].list).toEqual([]);
  expect(await database.conversations()).toEqual([]);
});

test("search looks into names and words", async () => {
  const { tabs } = await two();
  const [tab] = tabs;
  await tab.add({ role: "user", content: "About Whales" });
  await tab.add({ role: "assistant", content: "They sing." });
  await tab.open();
  await tab.add({ role: "user", content: "Something else" });
  expect((await tab.search("whale")).map((hit) => hit.conversation.title)).toEqual(["About Whales"]);
  expect((await tab.search("SING")).map((hit) => hit.turn?.content)).toEqual(["They sing."]);
  expect(await tab.search("nothing like it")).toEqual([]);
  expect(await tab.search("")).toHaveLength(2);
});

test("a message belongs to the conversation it was written in, whatever is opened meanwhile", async () => {
  const { database, tabs } = await two();
  const [tab] = tabs;
  const other = await tab.add({ role: "user", content: "other" });
  await tab.open();
  const first = await tab.add({ role: "user", content: "first" });
  const { putTurn } = database;
  let goOn = () => {};
  const slow = new Promise<void>((resolve) => (goOn = resolve));
  database.putTurn = async (...given) => {
    await slow;
    return putTurn(...given);
  };
  const blob = new Blob(["pixels"], { type: "image/png" });
  const image = { id: "p", kind: "image", name: "p.png", blob } as const;
  const adding = tab.add({ role: "user", content: "look", attachments: [image] });
  await quiet();
  await tab.open(other.conversation);
  goOn();
  const said = await adding;
  const { path } = await tab.history(said);
  expect(path.map((turn) => turn.content)).toEqual(["first", "look"]);
  const answer = await tab.add({ role: "assistant", content: "answer", conversation: said.conversation }, said.id);
  // The one that is shown is as it was, here and in the database.
  expect(contents(tab)).toEqual(["other"]);
  expect(await database.turns(other.conversation)).toHaveLength(1);
  await tab.open(first.conversation);
  expect(contents(tab)).toEqual(["first", "look", "answer"]);
  answer.content = "longer";
  expect(contents(tab)[2]).toBe("answer");
  expect(await (await tab.blob("p"))?.text()).toBe("pixels");
  expect(await tab.blob("p")).toBe(await tab.blob("p"));
});

test("a first message that is still written shows nothing where the user went", async () => {
  const { database, tabs } = await two();
  const [tab] = tabs;
  const other = await tab.add({ role: "user", content: "other" });
  await tab.open();
  tab.draftSystem = "be brief";
  const adding = tab.add({ role: "user", content: "new" });
  await tab.open(other.conversation);
  const said = await adding;
  expect(contents(tab)).toEqual(["other"]);
  expect(await tab.history(said)).toMatchObject({ path: [{ content: "new" }], system: "be brief" });
  expect(tab.list.map((one) => one.title).sort()).toEqual(["new", "other"]);
  expect(await database.turns(other.conversation)).toHaveLength(1);
});

test("an answer that is written while another conversation is shown is live when the user comes back", async () => {
  const { tabs } = await two();
  const [tab] = tabs;
  const asked = await tab.add({ role: "user", content: "question" });
  await tab.open();
  const answer = await tab.add({ role: "assistant", content: "", conversation: asked.conversation }, asked.id);
  tab.writing.set(answer.id, answer);
  await tab.open(asked.conversation);
  answer.content = "word by word";
  expect(contents(tab)).toEqual(["question", "word by word"]);
});

test("an answer that ends while its unfinished row is read is shown as it ended", async () => {
  const { database, tabs } = await two();
  const [one, other] = tabs;
  const asked = await one.add({ role: "user", content: "question" });
  const answer = await one.add({ role: "assistant", content: "" });
  const turns = database.turns.bind(database);
  const endsMeanwhile = async (id: string) => {
    const rows = await turns(id);
    answer.content = "all of it";
    await database.putTurn({ ...answer });
    one.writing.delete(answer.id);
    return rows;
  };
  one.writing.set(answer.id, answer);
  await one.open();
  database.turns = endsMeanwhile;
  await one.open(asked.conversation);
  expect(contents(one)).toEqual(["question", "all of it"]);
  // The same where another tab changes something.
  answer.content = "";
  one.writing.set(answer.id, answer);
  await other.rename(asked.conversation, "renamed");
  await quiet();
  expect(contents(one)).toEqual(["question", "all of it"]);
});

test("nothing is added to a conversation that was deleted", async () => {
  const { database, tabs } = await two();
  const [tab] = tabs;
  const asked = await tab.add({ role: "user", content: "question" });
  await tab.remove(asked.conversation);
  const answer = tab.add({ role: "assistant", content: "answer", conversation: asked.conversation }, asked.id);
  await expect(answer).rejects.toThrow("deleted");
  expect(await database.turns(asked.conversation)).toHaveLength(1);
});

test("turns have no bytes in them, and deleting takes the bytes along", async () => {
  const { database, tabs } = await two();
  const [tab] = tabs;
  const blob = new Blob([new Uint8Array(100_000)], { type: "image/png" });
  const said = await tab.add({ role: "user", content: "", attachments: [{ id: "p", kind: "image", name: "p", blob }] });
  const [row] = await database.turns(said.conversation);
  expect(row?.attachments).toEqual([{ id: "p", kind: "image", name: "p" }]);
  expect((await database.blob("p"))?.size).toBe(100_000);
  await tab.forget(said.conversation);
  expect(await database.blob("p")).toBeUndefined();
});

test("export and import, here and elsewhere", async () => {
  const { tabs } = await two();
  const [tab] = tabs;
  const bytes = Uint8Array.from({ length: 1_000_000 }, (_, at) => at % 251);
  const blob = new Blob([bytes], { type: "image/png" });
  await tab.add({ role: "user", content: "question", attachments: [{ id: "p", kind: "image", name: "p.png", blob }] });
  await tab.add({ role: "assistant", content: "answer", finish: "stop" });
  const file = await tab.export();
  expect(await tab.import(textOf(file))).toBe(1);
  expect(tab.list).toHaveLength(2);
  const fresh = (await two()).tabs[0];
  expect(await fresh.import(textOf(file))).toBe(1);
  await fresh.open(fresh.list[0]?.id);
  expect(contents(fresh)).toEqual(["question", "answer"]);
  const [image] = fresh.path[0]?.attachments ?? [];
  expect(image).toMatchObject({ kind: "image", name: "p.png" });
  const back = await fresh.blob(image!.id);
  expect(back?.type).toBe("image/png");
  expect(Buffer.from(await back!.arrayBuffer()).equals(bytes)).toBe(true);
});

test("a file that is wrong at its end leaves nothing of its beginning", async () => {
  const { database, tabs } = await two();
  const [tab] = tabs;
  for (const content of ["one", "two"]) {
    await tab.open();
    await tab.add({ role: "user", content });
  }
  const text = await (await tab.export()).text();
  const damaged = text.replace(/"role":"user"(?![\s\S]*"role")/u, '"role":"x"');
  expect(damaged).not.toBe(text);
  await expect(tab.import(textOf(new Blob([damaged])))).rejects.toThrow(/Chat 2.*role/u);
  await expect(tab.import(textOf(new Blob([text.replace(/\]\}\s*$/u, "]")])))).rejects.toThrow(/not valid JSON/u);
  expect(await database.conversations()).toHaveLength(2);
});
