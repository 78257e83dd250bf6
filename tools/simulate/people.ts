import type { Agenda } from "./agenda.js";
import type { Ledger } from "./ledger.js";
import { around, below, digits, hex, lottery, type Random } from "./random.js";
import type { Service } from "./service.js";
import type { Country, World } from "./world.js";

/** Someone with a phone. */
interface Person {
  readonly country: Country;
  readonly number: string;
  readonly device: Device;
  readonly home: Home;
  /** Whether this person has verified the number before. */
  verified: boolean;
  /** Time of the last visit, in milliseconds since the epoch. */
  cameAt: number;
}

interface Device {
  readonly device_type: "IOS" | "ANDROID" | "WEB";
  readonly device_id?: string;
  readonly device_model?: string;
  readonly os_version?: string;
}

/** The usual place of a person. */
interface Home {
  readonly kind: "line" | "mobile" | "office" | "proxy" | "abroad";
  /** The address, if it is always the same. */
  readonly ip?: string;
}

/** The current state of the world. */
export interface Conditions {
  /** Share of a country's visits that end verified. */
  conversion(country: Country): number;
  /** Whether a message handed over now arrives at all. */
  arrives(at: number): boolean;
  /** The address of a person on the network of one of the country's mobile operators. */
  mobile(country: Country, random: Random): string;
}

export interface Street {
  readonly agenda: Agenda;
  readonly service: Service;
  readonly ledger: Ledger;
  readonly world: World;
  readonly conditions: Conditions;
}

/** Share of visits by people who verified on another day, once there are any. */
const comeBack = 0.3;
/** Share of new people who live with an earlier one. */
const shareHome = 0.15;
/** People remembered for each country. */
const remembered = 4_000;

const second = 1_000;
const minute = 60 * second;

const homes = lottery<Home["kind"]>([
  ["line", 0.42],
  ["mobile", 0.45],
  ["office", 0.08],
  ["abroad", 0.025],
  ["proxy", 0.025],
]);
const devices = lottery<Device["device_type"]>([
  ["ANDROID", 0.55],
  ["IOS", 0.3],
  ["WEB", 0.15],
]);
/** Which message's code is entered, in visits that enter one: mostly the first, sometimes a later one. */
const lucky = lottery([
  [0, 0.86],
  [1, 0.11],
  [2, 0.03],
]);
/** How often people request another message, in visits without a code. */
const patience = lottery([
  [0, 0.6],
  [1, 0.25],
  [2, 0.1],
  [3, 0.05],
]);
/** The same while nothing arrives for anyone. */
const despair = lottery([
  [0, 0.2],
  [1, 0.3],
  [2, 0.25],
  [3, 0.15],
  [4, 0.1],
]);

/** The people of the world. */
export interface People {
  /**
   * Starts a visit from a country, by a new or returning person. `ip`: the address of the visit, whatever the person's
   * own is.
   */
  come(country: Country, random: Random, from?: { readonly fresh?: boolean; readonly ip?: string }): Promise<void>;
}

export function peopleOf(street: Street): People {
  const { agenda, service, ledger, world, conditions } = street;
  const known = new Map<Country, Person[]>();

  const meet = (country: Country, random: Random, fresh: boolean): Person => {
    const others = known.get(country) ?? [];
    known.set(country, others);
    const other = others.length > 0 ? others[below(random, others.length)] : undefined;
    if (!fresh && random() < comeBack && other?.verified && agenda.now() - other.cameAt > 18 * 60 * minute) {
      other.cameAt = agenda.now();
      return other;
    }
    const home = random() < shareHome && other !== undefined ? other.home : homeOf(country, random);
    const person = { country, number: country.subscriber(random), device: deviceOf(random), home, verified: false, cameAt: agenda.now() };
    others[others.length < remembered ? others.length : below(random, remembered)] = person;
    return person;
  };

  const homeOf = (country: Country, random: Random): Home => {
    const kind = homes(random);
    if (kind === "line") return { kind, ip: country.line(random) };
    return kind === "office" ? { kind, ip: country.office(random) } : { kind };
  };

  const addressOf = ({ country, home }: Person, random: Random): string | undefined => {
    const point = random();
    if (point < 0.01) return undefined;
    // Mostly at home; otherwise on the phone's network.
    if (home.ip !== undefined && point < 0.8) return home.ip;
    if (home.kind === "proxy") return world.proxy(random);
    const place = home.kind === "abroad" ? (world.countries[below(random, 75)] as Country) : country;
    return conditions.mobile(place, random);
  };

  return {
    async come(country, random, { fresh = false, ip } = {}) {
      const person = meet(country, random, fresh);
      const visit = ledger.visit(country.code);
      const own = addressOf(person, random);
      const address = ip ?? own;
      const common = { ...person.device, ...(address !== undefined && { ip: address }) };
      const returns = person.verified;
      const types = random() < conditions.conversion(country);
      const needs = lucky(random);
      let asksAgain = 0;
      let asksInDespair = 0;
      const slips = random() < 0.02;
      await ask(0);

      async function ask(turn: number): Promise<void> {
        asksAgain = patience(random);
        asksInDespair = despair(random);
        const wrong = slips && turn === 0;
        const request = wrong ? { phone_number: nextDoor(person.number) } : { phone_number: person.number, ...(returns && { is_returning_user: true }) };
        const answer = await service.create("honest", { ...common, ...request });
        if (answer.sent) {
          if (wrong) agenda.in(45 * second + 45 * second * random(), () => ask(1));
          else wait(answer.id, answer.code, turn, 0);
        } else if (answer.refusedBy !== undefined) {
          visit.refused(answer.refusedBy);
          // Half of them press the button once more.
          if (turn === 0 && random() < 0.5) agenda.in(20 * second + 40 * second * random(), () => ask(1));
        }
      }

      /** The authentication's message with this index, from 0, has just been sent. */
      function wait(id: string, code: string, turn: number, index: number): void {
        const arrives = conditions.arrives(agenda.now());
        if (arrives && types && index >= needs) {
          agenda.in(around(random, 6 * second, 0.8) + 8 * second + 17 * second * random(), () => type(id, code));
        } else if (index < (arrives ? (types ? needs : asksAgain) : asksInDespair)) {
          agenda.in(30 * second + 30 * second * random(), () => again(id, turn, index + 1));
        } else if (turn < 2 && random() < (arrives ? 0.1 : 0.5)) {
          agenda.in((10 + 30 * random()) * minute, () => ask(turn + 1));
        }
      }

      async function again(id: string, turn: number, index: number, waited = false): Promise<void> {
        const answer = await service.retry("honest", id);
        if (answer.sent) wait(id, answer.code, turn, index);
        else if (answer.refusedBy !== undefined) visit.refused(answer.refusedBy);
        else if (answer.nextAt !== undefined && !waited) agenda.at(answer.nextAt + 5 * second * random(), () => again(id, turn, index, true));
      }

      async function type(id: string, code: string): Promise<void> {
        if (random() < 0.06) await service.check("honest", id, mistyped(code, random));
        if (!(await service.check("honest", id, code))) return;
        person.verified = true;
        visit.verified();
      }
    },
  };
}

/** The number with another last digit. */
function nextDoor(number: string): string {
  return number.slice(0, -1) + ((Number(number.at(-1)) + 1) % 10);
}

function deviceOf(random: Random): Device {
  const device_type = devices(random);
  if (device_type === "WEB") return random() < 0.5 ? { device_type } : { device_type, device_id: hex(random, 32) };
  if (device_type === "IOS")
    return {
      device_type,
      device_id: guid(random),
      device_model: `iPhone${12 + below(random, 6)},${1 + below(random, 4)}`,
      os_version: `1${6 + below(random, 4)}.${below(random, 6)}`,
    };
  return { device_type, device_id: hex(random, 16), device_model: `SM-A${digits(random, 3)}`, os_version: String(10 + below(random, 7)) };
}

/** In the form of `identifierForVendor`. */
export function guid(random: Random): string {
  return [8, 4, 4, 4, 12]
    .map((length) => hex(random, length))
    .join("-")
    .toUpperCase();
}

/** The code with one wrong digit. */
function mistyped(code: string, random: Random): string {
  const at = below(random, code.length);
  return code.slice(0, at) + ((Number(code[at]) + 1 + below(random, 9)) % 10) + code.slice(at + 1);
}
