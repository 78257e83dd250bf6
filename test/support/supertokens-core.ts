import { randomInt, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { type Listening, listening } from "../wires/listen.js";

interface Device {
  readonly deviceId: string;
  readonly preAuthSessionId: string;
  readonly phoneNumber: string;
  failedCodeInputAttemptCount: number;
  readonly codes: { readonly codeId: string; readonly userInputCode: string; readonly timeCreated: number }[];
}

interface User {
  readonly id: string;
  readonly phoneNumbers: readonly string[];
}

export interface SuperTokensCore extends Listening {
  /** The calls that it does not support. */
  readonly unknown: readonly string[];
}

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/**
 * The part of SuperTokens' core (core driver interface 5.4) that its Node SDK calls to sign users in with a code:
 * devices and their codes, users, sessions.
 */
export async function superTokensCore(): Promise<SuperTokensCore> {
  const devices = new Map<string, Device>();
  const users = new Map<string, User>();
  const unknown: string[] = [];
  const lifetime = 900_000;

  const find = ({ preAuthSessionId, deviceId, phoneNumber }: Record<string, unknown>) =>
    [...devices.values()].filter((one) => one.preAuthSessionId === preAuthSessionId || one.deviceId === deviceId || one.phoneNumber === phoneNumber);

  const createCode = ({ phoneNumber, deviceId }: Record<string, string>) => {
    const known = deviceId === undefined ? undefined : devices.get(deviceId);
    if (deviceId !== undefined && known === undefined) return { status: "RESTART_FLOW_ERROR" };
    const device = known ?? {
      deviceId: randomUUID(),
      preAuthSessionId: randomUUID(),
      phoneNumber: phoneNumber ?? "",
      failedCodeInputAttemptCount: 0,
      codes: [],
    };
    const code = { codeId: randomUUID(), userInputCode: String(randomInt(100_000, 1_000_000)), timeCreated: Date.now() };
    device.codes.push(code);
    devices.set(device.deviceId, device);
    return { status: "OK", preAuthSessionId: device.preAuthSessionId, deviceId: device.deviceId, ...code, linkCode: randomUUID(), codeLifetime: lifetime };
  };

  const check = (device: Device | undefined, userInputCode: unknown) => {
    if (device === undefined) return { status: "RESTART_FLOW_ERROR" };
    if (device.codes.some((code) => code.userInputCode === userInputCode)) return { status: "OK", consumedDevice: consumed(device) };
    device.failedCodeInputAttemptCount++;
    return {
      status: "INCORRECT_USER_INPUT_CODE_ERROR",
      failedCodeInputAttemptCount: device.failedCodeInputAttemptCount,
      maximumCodeInputAttempts: 5,
    };
  };

  const consume = (device: Device | undefined, userInputCode: unknown) => {
    const checked = check(device, userInputCode);
    if (device === undefined || checked.status !== "OK") return checked;
    devices.delete(device.deviceId);
    const { phoneNumber } = device;
    const createdNewUser = !users.has(phoneNumber);
    const user = users.get(phoneNumber) ?? userOf(randomUUID(), phoneNumber);
    users.set(phoneNumber, user);
    return { ...checked, createdNewUser, user, recipeUserId: user.id };
  };

  const answers: Readonly<Record<string, (asked: Record<string, string>) => object>> = {
    "GET /apiversion": () => ({ versions: ["5.4"] }),
    "GET /public/recipe/multitenancy/tenant/v2": () => ({ status: "OK", tenantId: "public", thirdParty: { providers: [] }, coreConfig: {} }),
    "GET /public/users/by-accountinfo": ({ phoneNumber = "" }) => ({ status: "OK", users: users.has(phoneNumber) ? [users.get(phoneNumber)] : [] }),
    "GET /user/id": ({ userId }) => {
      const user = [...users.values()].find(({ id }) => id === userId);
      return user === undefined ? { status: "UNKNOWN_USER_ID_ERROR" } : { status: "OK", user };
    },
    "GET /public/recipe/signinup/codes": (asked) => ({ status: "OK", devices: find(asked) }),
    "POST /public/recipe/signinup/code": createCode,
    "POST /public/recipe/signinup/code/check": ({ deviceId = "", userInputCode }) => check(devices.get(deviceId), userInputCode),
    "POST /public/recipe/signinup/code/consume": ({ deviceId = "", userInputCode }) => consume(devices.get(deviceId), userInputCode),
    "POST /public/recipe/session": ({ userId = "" }) => session(userId),
  };

  const server = await listening(
    createServer(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://core");
      const asked = request.method === "POST" ? ((await json(request)) as Record<string, string>) : Object.fromEntries(searchParams);
      const route = `${request.method} ${pathname}`;
      const answer = answers[route];
      if (answer === undefined) unknown.push(route);
      response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" }).end(JSON.stringify(answer?.(asked) ?? {}));
    }),
  );
  return { ...server, unknown };
}

const consumed = ({ preAuthSessionId, failedCodeInputAttemptCount, phoneNumber }: Device) => ({ preAuthSessionId, failedCodeInputAttemptCount, phoneNumber });

function userOf(id: string, phoneNumber: string): User {
  const common = { tenantIds: ["public"], timeJoined: Date.now() };
  const loginMethods = [{ recipeId: "passwordless", recipeUserId: id, phoneNumber, verified: true, ...common }];
  return { id, phoneNumbers: [phoneNumber], ...{ isPrimaryUser: false, emails: [], thirdParty: [], webauthn: { credentialIds: [] }, loginMethods, ...common } };
}

/** Its token has no valid signature: the SDK does not check a token that it has just received. */
function session(userId: string): object {
  const [handle, now, expiry] = [randomUUID(), Date.now(), Date.now() + 3_600_000];
  const claims = { sub: userId, rsub: userId, tId: "public", sessionHandle: handle, refreshTokenHash1: randomUUID(), iat: now / 1000, exp: expiry / 1000 };
  return {
    status: "OK",
    session: { handle, userId, recipeUserId: userId, tenantId: "public", userDataInJWT: {} },
    accessToken: { token: `${base64({ alg: "RS256", typ: "JWT", kid: "d-1", version: "5" })}.${base64(claims)}.AAAA`, expiry, createdTime: now },
    refreshToken: { token: randomUUID(), expiry, createdTime: now },
  };
}
