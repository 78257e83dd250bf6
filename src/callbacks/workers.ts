/**
 * Whether this is a Cloudflare Worker. There, requests cannot share I/O, since it ends with the request that started
 * it, and sockets expose nothing below them.
 */
export const inWorker = (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers";
