import { countryRows } from "./countries.js";
import { below, digits, hex, lottery, pick, type Random, stream } from "./random.js";

/** A prefix of numbers (`+`, calling code and the first national digits), and how many digits follow. */
export interface Block {
  readonly prefix: string;
  readonly digits: number;
}

export interface Country {
  /** ISO 3166-1 alpha-2. */
  readonly code: string;
  /** Weight among the honest visits; 0: none. */
  readonly share: number;
  /** Hours ahead of UTC. */
  readonly offset: number;
  /** Share of the visits that end verified. */
  readonly conversion: number;
  /** Price of a message, in US dollars. */
  readonly price: number;
  /** Mobile operators, the largest first, each with its blocks of numbers. */
  readonly operators: readonly (readonly Block[])[];
  /**
   * A number that an honest person may have. Some blocks are fuller than others, and some people have a new number from
   * a recently opened range.
   */
  subscriber(random: Random): string;
  /** Any number of the plan. */
  number(random: Random): string;
  /** Any address of its networks. */
  line(random: Random): string;
  /** A shared address of its mobile operators, from the first `addresses` if set. */
  carrier(random: Random, addresses?: number): string;
  /** A shared address of an office or school. */
  office(random: Random): string;
}

export interface World {
  readonly countries: readonly Country[];
  /** Throws if the world has no such country. */
  country(code: string): Country;
  /** An address of a proxy, used by honest people and others. */
  proxy(random: Random): string;
  /** An address of a data centre. */
  hosting(random: Random): string;
}

/** The market shares of a country's mobile operators. */
const operatorShares = [0.42, 0.3, 0.2, 0.08];

/**
 * The world of a seed. Numbering plans and prices are close to the real ones; the holders of blocks and addresses are
 * random.
 */
export function worldOf(seed: number): World {
  const random = stream(seed, "world");
  const networks = freshNetworks(random);
  const countries = countryRows.map((row) => countryOf(row, networks, random));
  const byCode = new Map(countries.map((country) => [country.code, country]));
  const proxies = sharedAddresses(networks(3, 2), 60, random);
  const hosts = sharedAddresses(networks(3, 2), 300, random);
  return {
    countries,
    country(code) {
      const found = byCode.get(code);
      if (found === undefined) throw new Error(`The simulated world has no country ${code}; it has ${[...byCode.keys()].join(", ")}.`);
      return found;
    },
    proxy: proxies,
    hosting: hosts,
  };
}

function countryOf(
  [code, callingCode, length, share, offset, conversion, price, prefixes]: (typeof countryRows)[number],
  networks: Networks,
  random: Random,
): Country {
  const blocks = prefixes
    .split(" ")
    .flatMap(prefixesOf)
    .map((prefix) => ({ prefix: `+${callingCode}${prefix}`, digits: length - prefix.length }));
  const operators = operatorsOf(blocks);
  const sizeOf = (block: Block) => 10 ** block.digits;
  const plan = lottery(blocks.map((block) => [block, sizeOf(block)]));
  const fullness = lottery(blocks.map((block) => [block, sizeOf(block) * (0.2 + 1.8 * random())]));
  const opened = Array.from({ length: 300 }, () => {
    const { prefix, digits: more } = plan(random);
    return { prefix: prefix + digits(random, Math.max(0, more - 4)), digits: Math.min(4, more) };
  });

  const held = networks(Math.round(4 + 8 * Math.sqrt(share)), Math.round(2 + Math.sqrt(share)));
  const carriers = Array.from({ length: Math.round(40 + 60 * share) }, () => addressIn(held, random));
  const offices = sharedAddresses(held, Math.round(100 + 20 * share), random);
  return {
    code,
    share,
    offset,
    conversion,
    price,
    operators,
    subscriber: (own) => numberOf(own() < 0.05 ? pick(own, opened) : fullness(own), own),
    number: (own) => numberOf(plan(own), own),
    line: (own) => lineOf(held, own),
    carrier: (own, addresses = carriers.length) => carriers[below(own, addresses)] as string,
    office: offices,
  };
}

export function numberOf(block: Block, random: Random): string {
  return block.prefix + digits(random, block.digits);
}

/** `620-9` → 620 to 629. */
function prefixesOf(range: string): string[] {
  const [first = "", end = ""] = range.split("-");
  const last = Number(first.slice(0, first.length - end.length) + end);
  return Array.from({ length: last - Number(first) + 1 }, (_, step) => String(Number(first) + step).padStart(first.length, "0"));
}

/** Gives each operator consecutive blocks in proportion to its share, at least one. */
function operatorsOf(blocks: readonly Block[]): Block[][] {
  const operators: Block[][] = [];
  let end = 0;
  let start = 0;
  for (const share of operatorShares) {
    end += share;
    const until = Math.min(blocks.length, Math.max(start + 1, Math.round(end * blocks.length)));
    if (until > start) operators.push(blocks.slice(start, until));
    start = until;
  }
  return operators;
}

/** The networks of one holder: IPv4 by /16, IPv6 by /32, drawn by weight. */
interface Held {
  v4(random: Random): string;
  v6(random: Random): string;
}

type Networks = (v4: number, v6: number) => Held;

/** Returns networks that are not in use yet. The first few of a holder carry most of its users. */
function freshNetworks(random: Random): Networks {
  const firsts = Array.from({ length: 222 }, (_, index) => index + 1).filter((first) => ![10, 100, 127, 169, 172, 192, 198, 203].includes(first));
  const free = firsts.flatMap((first) => Array.from({ length: 256 }, (_, second) => `${first}.${second}`));
  let next6 = 0x2a00_0000;
  const draw = () => {
    const at = below(random, free.length);
    const drawn = free[at] as string;
    free[at] = free[free.length - 1] as string;
    free.pop();
    return drawn;
  };
  const draw6 = () => {
    next6 += 1 + below(random, 64);
    return `${(next6 >>> 16).toString(16)}:${(next6 & 0xffff).toString(16)}`;
  };
  const byRank = (list: readonly string[]) => lottery(list.map((network, rank) => [network, 1 / (1 + rank)]));
  return (v4, v6) => ({ v4: byRank(Array.from({ length: v4 }, draw)), v6: byRank(Array.from({ length: v6 }, draw6)) });
}

function lineOf(held: Held, random: Random): string {
  return random() < 0.45 ? `${held.v6(random)}:${hex(random, 4)}:${hex(random, 4)}::${hex(random, 4)}` : addressIn(held, random);
}

function addressIn(held: Held, random: Random): string {
  return `${held.v4(random)}.${below(random, 256)}.${1 + below(random, 254)}`;
}

/** `count` shared addresses; some are shared by many more people than others. */
function sharedAddresses(held: Held, count: number, random: Random): (own: Random) => string {
  return lottery(Array.from({ length: count }, (_, rank) => [addressIn(held, random), 1 / Math.sqrt(1 + rank)] as const));
}
