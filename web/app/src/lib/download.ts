/** Gives bytes to the user as a file. */
export function downloadBytes(name: string, bytes: Uint8Array<ArrayBuffer>): void {
  download(name, new Blob([bytes], { type: "application/octet-stream" }));
}

/** The same with a blob, which may be larger than memory. */
export function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[\\/:*?"<>|\p{Cc}]+/gu, " ").trim() || "rullama.json";
  link.click();
  // The browser has taken the address by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
