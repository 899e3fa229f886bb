// The service worker: keeps the app for offline use, and says when a new version waits or has taken over.

import { holdBuild } from "../lib/build-lock.js";

class Update {
  /** A new version that takes over when the user agrees. */
  waiting = $state.raw<ServiceWorker>();
  /** Another tab changed over to a new version; this one still runs the old one, and can, until it is reloaded. */
  elsewhere = $state(false);
  /** The new version took the conversations over as well: nothing more is saved here. */
  outdated = $state(false);
  #applied = false;
  /** The browser's offer to install the app. */
  installer = $state.raw<BeforeInstallPromptEvent>();

  async watch(): Promise<void> {
    window.addEventListener("beforeinstallprompt", (event) => {
      event.preventDefault();
      this.installer = event;
    });
    addEventListener("appinstalled", () => (this.installer = undefined));
    if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
    const entry = document.querySelector<HTMLScriptElement>('script[type="module"][src]');
    if (entry) holdBuild(entry.src);
    // The first version that controls a page changes nothing for it.
    const controlled = navigator.serviceWorker.controller !== null;
    navigator.serviceWorker.addEventListener("controllerchange", () => {
      if (this.#applied) location.reload();
      else if (controlled) this.elsewhere = true;
    });
    try {
      const registration = await navigator.serviceWorker.register("/sw.js", { updateViaCache: "none" });
      this.#look(registration);
      registration.addEventListener("updatefound", () => this.#look(registration));
      // A tab that stays open for days still hears of new versions.
      addEventListener("visibilitychange", () => {
        if (document.visibilityState === "visible") void registration.update().catch(() => {});
      });
    } catch {
      // Without it the app works online only; private windows and plain HTTP have none.
    }
  }

  #look(registration: ServiceWorkerRegistration): void {
    const found = (worker: ServiceWorker | null) => {
      // Where no version controls the page yet, this is the first one and nothing to ask about.
      if (worker?.state === "installed" && navigator.serviceWorker.controller) this.waiting = worker;
    };
    found(registration.waiting);
    const { installing } = registration;
    installing?.addEventListener("statechange", () => found(installing));
  }

  /** Changes over to the new version. */
  apply(): void {
    this.#applied = true;
    this.waiting?.postMessage("take over");
  }

  async install(): Promise<void> {
    await this.installer?.prompt();
    this.installer = undefined;
  }
}

export const update = new Update();
