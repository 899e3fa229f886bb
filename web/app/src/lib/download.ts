/** Hands a text to the user as a file. */
export function download(name: string, text: string): void {
  save(name, new Blob([text], { type: "application/json" }));
}

/** The same with bytes. */
export function downloadBytes(name: string, bytes: Uint8Array<ArrayBuffer>): void {
  save(name, new Blob([bytes], { type: "application/octet-stream" }));
}

function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[\\/:*?"<>|\p{Cc}]+/gu, " ").trim() || "rullama.json";
  link.click();
  // The browser has taken the address by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
