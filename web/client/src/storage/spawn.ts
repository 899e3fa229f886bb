// Workers of the storage: started, or not.

/**
 * A worker that has said its first word; undefined where there are none, or the page's policy or a build left this one out.
 * `start` is written where it is called, as bundlers look for it there; `script` is its name in this folder.
 */
export async function spawn(start: () => Worker, script: string): Promise<Worker | undefined> {
  if (typeof Worker === "undefined") return undefined;
  let worker: Worker;
  try {
    worker = ofAnyOrigin(start, script);
  } catch {
    return undefined;
  }
  const started = await new Promise<boolean>((resolve) => {
    worker.onmessage = () => resolve(true);
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(false);
    };
  });
  if (started) return worker;
  worker.terminate();
  return undefined;
}

function ofAnyOrigin(start: () => Worker, script: string): Worker {
  try {
    return start();
  } catch {
    // Workers must be of the page's origin; a script of that origin may import one from elsewhere.
    const address = import.meta.url.replace(/[^/]*$/, script);
    const blob = new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" });
    return new Worker(URL.createObjectURL(blob), { type: "module" });
  }
}
