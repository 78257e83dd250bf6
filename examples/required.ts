/** A variable of the environment. Nothing stands in for one that is not set: whoever reads this file would know it. */
export function required(name: string): string {
  const value = process.env[name];
  if (value) return value;
  const mend = /^(PHONEPROOF|SESSION)_/.test(name) ? `make one: export ${name}="$(openssl rand -base64 32)"` : "take it from the provider's console";
  throw new Error(`${name} is not set; ${mend}`);
}
