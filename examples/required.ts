/** A required environment variable. There is no default on purpose: a documented default would be public. */
export function required(name: string): string {
  const value = process.env[name];
  if (value) return value;
  const fix = /^(PHONEPROOF|SESSION)_/.test(name) ? `make one: export ${name}="$(openssl rand -base64 32)"` : "take it from the provider's console";
  throw new Error(`${name} is not set; ${fix}`);
}
