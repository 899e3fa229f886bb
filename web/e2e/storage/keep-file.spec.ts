// A file that the user picked, kept in this browser's storage.
import { PART, SIZE, expect, test } from "./fixtures.ts";

test("a picked file is copied once, found by its name, and goes on after a break", async ({ run }) => {
  const result = await run(
    async ({ size, part }) => {
      const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 31) % 251);
      const file = new File([bytes], "picked.gguf", { lastModified: 7 });
      const tuning = { partBytes: part } as never;
      const stop = new AbortController();
      const steps: number[] = [];
      const halfway = (done: number) => {
        steps.push(done);
        if (done >= 3 * part) stop.abort();
      };
      const broken = await lab.ends(lab.storage.keepFile(file, { onProgress: halfway, signal: stop.signal }, tuning));
      const early = (await lab.models.report()).models[0]!;
      const resumed: number[] = [];
      const kept = await lab.storage.keepFile(file, { onProgress: (done) => void resumed.push(done) }, tuning);
      const again: number[] = [];
      await lab.storage.keepFile(file, { onProgress: (done) => void again.push(done) }, tuning);
      const opened = await lab.open("picked.gguf");
      const same = (await lab.digest(opened)) === (await lab.digest(await lab.open(file)));
      const split = await lab.ends(lab.open(new File([bytes], "x-00001-of-00002.gguf")));
      lab.model(opened).source.close();
      return { broken: broken?.code, early, steps, resumed, again, kept, same, split: split?.code };
    },
    { size: SIZE, part: PART },
  );
  expect(result).toMatchObject({ broken: "cancelled", again: [], same: true, split: "bad_options" });
  expect(result.early).toMatchObject({ complete: false, have: 3 * PART });
  expect(result.resumed[0]).toBe(4 * PART);
  expect(result.kept).toMatchObject({ name: "picked.gguf", names: ["picked.gguf"], bytes: SIZE, complete: true });
});
