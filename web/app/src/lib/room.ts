// Whether two models fit on the GPU together. Browsers do not say how much memory it has, so this is careful: where it is wrong, the
// second load fails and the models take turns.

const GB = 1e9;
/** What current devices with 8 GB of memory or more have for a page, about. */
const USUAL = 5 * GB;

/** `deviceMemory`: gigabytes as browsers tell them, in powers of two and never more than 8; many tell nothing. */
export function fitTogether(bytes: number, deviceMemory: number | undefined): boolean {
  if (deviceMemory === undefined || deviceMemory >= 8) return bytes <= USUAL;
  return bytes <= deviceMemory * GB * 0.5;
}
