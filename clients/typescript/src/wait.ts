/** Waiting for messages of a mailbox, or of all mailboxes. */

import { RestanteError, UnexpectedMail, WaitTimeout } from "./errors.js";
import { describe, type MessageEntry, type Summary } from "./records.js";
import { problem, type Transport } from "./transport.js";

/** The condition and the timeout of a wait. */
export interface WaitOptions {
  /** A search query that the message must match: `from:shop subject:"your order"`. */
  match?: string | undefined;
  /** In milliseconds. */
  timeout?: number | undefined;
  /** Only messages that arrived after this one count. */
  after?: string | { id: string } | null | undefined;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_QUIET_MS = 2_000;
/** The maximum wait of one request: Node aborts responses that do not start within five minutes. */
const MAX_REQUEST_WAIT_MS = 240_000;

/** Waits for `count` messages at a path of the API. `inventory` returns what exists, for the text of a timeout. */
export async function waitForMessages<T extends Summary | MessageEntry>(
  transport: Transport,
  path: string,
  count: number,
  options: WaitOptions,
  inventory: () => Promise<string>,
): Promise<T[]> {
  const response = await wait(transport, path, options, DEFAULT_TIMEOUT_MS, 408, { count });
  if (response.status === 408) {
    const { detail, messages } = (await response.json()) as { detail: string; messages: T[] };
    throw new WaitTimeout(`${detail} ${await inventory()}`, messages);
  }
  if (!response.ok) throw await problem(response);
  return ((await response.json()) as { messages: T[] }).messages;
}

/** Waits and checks that no matching message arrives. Throws `UnexpectedMail` if one does. */
export async function expectNone(transport: Transport, path: string, options: WaitOptions): Promise<void> {
  const response = await wait(transport, path, options, DEFAULT_QUIET_MS, 204, { expect: "none" });
  if (response.status === 409) {
    const { messages } = (await response.json()) as { messages: (Summary | MessageEntry)[] };
    throw new UnexpectedMail(`unexpected mail: ${messages.map(describe).join("; ")}`, messages);
  }
  if (!response.ok) throw await problem(response);
}

/** Waits in as many requests as needed. `timeoutStatus` is the status of a request whose time is over. */
async function wait(
  transport: Transport,
  path: string,
  { match, timeout, after }: WaitOptions,
  defaultTimeout: number,
  timeoutStatus: number,
  more: Record<string, string | number>,
): Promise<Response> {
  const end = Date.now() + (timeout ?? defaultTimeout);
  for (;;) {
    const left = Math.max(0, end - Date.now());
    const now = Math.round(Math.min(left, MAX_REQUEST_WAIT_MS));
    const query = { timeout: `${now}ms`, match: match || undefined, after: idOf(after), ...more };
    const response = await transport.send("GET", path, { query, extraTimeout: now });
    if (response.status !== timeoutStatus || left <= MAX_REQUEST_WAIT_MS) return response;
    await response.body?.cancel();
  }
}

/** Returns the id of a message that is given as such or by its id. */
export function idOf(message: WaitOptions["after"]): string | undefined {
  return typeof message === "object" ? message?.id : message;
}

/** Returns the id of the first message of a response. Throws if there is none. */
export function firstId(messages: { id: string }[]): string {
  const [first] = messages;
  if (!first) throw new RestanteError("the response of the server contains no message");
  return first.id;
}
