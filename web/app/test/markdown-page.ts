// Lets tests render markdown in a real browser's parser.
import { blocks, render } from "../src/lib/markdown.js";

declare global {
  interface Window {
    show(text: string): string;
    blocks: typeof blocks;
  }
}

window.blocks = blocks;
window.show = (text) => {
  const main = document.querySelector("main");
  if (!main) throw new Error("no main element");
  main.replaceChildren(...blocks(text).map((block) => render(block.source)));
  return main.innerHTML;
};
