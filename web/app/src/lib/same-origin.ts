/** An address of a page's own origin, made absolute; undefined for none. Others are refused. */
export function sameOrigin(address: string | null, page: string): string | undefined {
  if (address === null) return undefined;
  const url = new URL(address, page);
  if (url.origin === new URL(page).origin) return url.href;
  throw new Error(`${address} is another origin's: results are posted to this page's own origin alone`);
}
