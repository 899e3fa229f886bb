// Which build of the app a tab runs, told by a lock: browsers give it up when the tab goes, however it goes. The service worker keeps
// the files of builds whose lock is held.

const PREFIX = "rullama-app-build ";

/** The script of a build, from the name of its lock. */
export function buildOfLock(name: string): string | undefined {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined;
}

/** Holds the lock of the build that a script belongs to, as long as this tab lives. */
export function holdBuild(script: string): void {
  // Without locks the service worker deletes old files as soon as a new version takes over.
  void navigator.locks?.request(PREFIX + script, { mode: "shared" }, () => new Promise(() => {})).catch(() => {});
}
