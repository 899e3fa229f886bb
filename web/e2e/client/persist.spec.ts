// Whether the browser may throw away what is stored: pages ask it, workers cannot.
import { expect, test } from "./fixtures.ts";

for (const worker of [true, false]) {
  test(`asking to keep what is stored gives the browser's own answer, engine in a ${worker ? "worker" : "page"}`, async ({
    client,
    studio,
  }) => {
    const ask = () =>
      client.evaluate(async (inWorker) => {
        const engine = rullama.openEngine({ worker: inWorker });
        const granted = await engine.persist();
        const { persisted } = await engine.storage();
        const told = await navigator.storage.persisted();
        engine.close();
        return { granted, persisted, told };
      }, worker);
    const session = await studio.context.newCDPSession(client);
    const set = (setting: "granted" | "denied") =>
      session.send("Browser.setPermission", {
        permission: { name: "persistent-storage" },
        setting,
        origin: studio.server.origin,
      });
    await set("denied");
    expect(await ask()).toEqual({ granted: false, persisted: false, told: false });
    await set("granted");
    expect(await ask()).toEqual({ granted: true, persisted: true, told: true });
    await set("denied");
  });
}
