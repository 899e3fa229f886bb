// Answers as markdown. A model's words are as little to be trusted as a stranger's: HTML in them stays text, only a
// short list of elements comes through, links open elsewhere without a trace, and images are never fetched.

import createPurifier from "dompurify";
import { Marked, type Tokens } from "marked";
import { formulas } from "./math.js";
import { t } from "../text/index.svelte.js";

/** A piece between blank lines that is rendered on its own, so that a streamed answer only redraws its last one. */
export interface Block {
  key: string;
  source: string;
}

function escape(text: string): string {
  return text.replace(/[&<>"']/gu, (letter) => `&#${letter.charCodeAt(0)};`);
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    image: ({ href, text }: Tokens.Image) =>
      `<a href="${escape(href)}">${escape(t("turn.image", { name: text || href }))}</a>`,
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "☑ " : "☐ "),
  },
});

marked.use(formulas);

const ALLOWED_TAGS = [
  ..."a b blockquote br code del div em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup".split(" "),
  ..."table tbody td th thead tr ul".split(" "),
];
const ALLOWED_ATTRIBUTES = ["href", "title", "start", "class", "align"];
const ALLOWED_ADDRESSES = /^(?:https?:|mailto:)/iu;

const purifier = typeof window === "undefined" ? undefined : createPurifier(window);
purifier?.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
  // Only the language of a code block is told by a class.
  const kind = node.getAttribute("class");
  if (kind !== null && !(node.tagName === "CODE" && /^language-[\w+#.-]{1,40}$/u.test(kind)))
    node.removeAttribute("class");
});

/** Cuts an answer into blocks. Links by reference need the whole text, so such a text stays one block. */
export function blocks(text: string): Block[] {
  const tokens = marked.lexer(text);
  if (Object.keys(tokens.links).length > 0) return [{ key: "0", source: text }];
  return tokens
    .filter((token) => token.type !== "space")
    .map((token, index) => ({ key: `${index}:${token.type}`, source: token.raw }));
}

/** A block's elements, safe to put into the page. */
export function render(source: string): DocumentFragment {
  if (!purifier) throw new Error("markdown is rendered in a page only");
  const html = marked.parse(source, { async: false });
  return purifier.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOWED_URI_REGEXP: ALLOWED_ADDRESSES,
    // These are no addresses and need not look like one.
    ADD_URI_SAFE_ATTR: ["align", "start"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}

/** The words alone, for reading aloud. */
export function plain(source: string): string {
  return (
    render(source)
      .textContent?.replace(/\n{3,}/gu, "\n\n")
      .trim() ?? ""
  );
}
