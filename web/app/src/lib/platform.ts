// What must be told about the platform, where browsers offer no feature to test for.

/** Whether this is iOS or iPadOS, which calls itself a Mac but has a touch screen. */
export function isIos(agent: string, touchPoints: number): boolean {
  return /iPhone|iPad|iPod/u.test(agent) || (agent.includes("Macintosh") && touchPoints > 1);
}
