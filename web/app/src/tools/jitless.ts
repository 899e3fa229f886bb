// The page's policy forbids making programs of texts, which is how Zod is otherwise quick. Each schema decides that when it is made.

import { config } from "zod/v4/core";

config({ jitless: true });
