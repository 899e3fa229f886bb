import { expect, test } from "vitest";
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

test("export and import, here and elsewhere", async () => {
  const { tabs } = await two();
  const [tab] = tabs;
  await tab.add({ role: "user", content: "question" });
  await tab.add({ role: "assistant", content: "answer", finish: "stop" });
  const text = await tab.export();
  expect(await tab.import(text)).toBe(1);
  expect(tab.list).toHaveLength(2);
  const fresh = (await two()).tabs[0];
  expect(await fresh.import(text)).toBe(1);
  await fresh.open(fresh.list[0]?.id);
  expect(contents(fresh)).toEqual(["question", "answer"]);
  await expect(fresh.import(text.replace('"role": "user"', '"role": "x"'))).rejects.toThrow(/role/u);
  expect(fresh.list).toHaveLength(1);
});
