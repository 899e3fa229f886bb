import { mount } from "svelte";
import App from "./App.svelte";
import "./ui/tokens.css";
import "./ui/base.css";
import { loadLast } from "./state/autoload.svelte.js";
import { openChats } from "./state/chats.svelte.js";
import { device } from "./state/engine.svelte.js";
import { settings } from "./state/settings.svelte.js";
import { update } from "./state/update.svelte.js";
import { speak } from "./text/index.svelte.js";

const target = document.getElementById("app");
if (!target) throw new Error("index.html has no #app");
await Promise.all([openChats(() => (update.outdated = true)), speak(settings.language)]);
mount(App, { target });
void device.look().then(() => (device.missing ? undefined : loadLast()));
void update.watch();
