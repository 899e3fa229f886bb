// German.
import { chat } from "./chat.js";
import { documents } from "./documents.js";
import { failures } from "./failures.js";
import { files } from "./files.js";
import { models } from "./models.js";
import { pages } from "./pages.js";
import { shell } from "./shell.js";
import { tools } from "./tools.js";
import { training } from "./training.js";
import { workspace } from "./workspace.js";

export const de = {
  ...shell,
  ...chat,
  ...models,
  ...pages,
  ...training,
  ...failures,
  ...files,
  ...workspace,
  ...documents,
  ...tools,
};
