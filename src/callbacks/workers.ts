/** Whether this is a Worker of Cloudflare's: there a request must not wait for what another began, for that ends with the other, and a socket has nothing below it. */
export const inWorker = (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === "Cloudflare-Workers";
