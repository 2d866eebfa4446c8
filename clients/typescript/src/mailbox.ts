/** A mailbox of a server. */

import { RestanteError, UnexpectedMail, WaitTimeout } from "./errors.js";
import { Message } from "./message.js";
import { type Content, describe, type Summary } from "./records.js";
import { problem, type Transport } from "./transport.js";

/** What to wait for, and for how long. */
export interface WaitOptions {
  /** What the message must match, in the language of searches: `from:shop subject:"your order"`. */
  match?: string | undefined;
  /** In milliseconds. */
  timeout?: number | undefined;
  /** Only messages that came behind this one. */
  after?: string | { id: string } | null | undefined;
}

/** A message to put into a mailbox. */
export interface Draft {
  from: string;
  to?: string[];
  cc?: string[];
  subject?: string;
  text?: string;
  html?: string;
  headers?: Record<string, string>;
  /** The content in base64. */
  attachments?: { filename: string; "content-type"?: string; content: string; "content-id"?: string }[];
}

const TIMEOUT = 30_000;
const QUIET = 2_000;
/** How long one request waits at most: Node gives up on answers that take five minutes to begin. */
const AT_ONCE = 240_000;

/** A mailbox, which need not hold anything. */
export class Mailbox {
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
  }

  /**
   * Waits for a message that matches and fetches it: the oldest of them. One that is there already counts, unless it did
   * not come behind `after`; so use an address once, or say behind which message to look (`last`). Throws `WaitTimeout`,
   * which tells what came instead.
   */
  async waitForMessage(options: WaitOptions = {}): Promise<Message> {
    const [first] = await this.waitForMessages(1, options);
    return this.message(first?.id);
  }

  /** Waits for so many messages that match, oldest first. */
  async waitForMessages(count: number, options: WaitOptions = {}): Promise<Summary[]> {
    const answer = await this.#wait(options, TIMEOUT, 408, { count });
    if (answer.status === 408) {
      const { detail, messages } = (await answer.json()) as { detail: string; messages: Summary[] };
      throw new WaitTimeout(`${detail} ${await this.#inventory()}`, messages);
    }
    if (!answer.ok) throw await problem(answer);
    return ((await answer.json()) as { messages: Summary[] }).messages;
  }

  /** Waits and makes sure that nothing comes that matches. Throws `UnexpectedMail`. */
  async expectNone(options: WaitOptions = {}): Promise<void> {
    const answer = await this.#wait(options, QUIET, 204, { expect: "none" });
    if (answer.status === 409) {
      const { messages } = (await answer.json()) as { messages: Summary[] };
      throw new UnexpectedMail(`unexpected mail: ${messages.map(describe).join("; ")}`, messages);
    }
    if (!answer.ok) throw await problem(answer);
  }

  /** A message by its id, or the latest. */
  async message(id = "latest"): Promise<Message> {
    return new Message(this.#transport, await this.#transport.json<Content>("GET", `${this.#path(1)}/${encodeURIComponent(id)}`));
  }

  /** The id of the newest message, or `"0"`: what comes from now on is behind it. */
  async last(): Promise<string> {
    const newest = await this.#transport.json<Summary[]>("GET", this.#path(1), { query: { limit: 1 } });
    return newest[0]?.id ?? "0";
  }

  /** All messages, oldest first. */
  async messages(): Promise<Summary[]> {
    return this.#transport.json("GET", this.#path(1));
  }

  /** Puts a message into the mailbox without SMTP: a whole mail, or one that is made of a draft. */
  async inject(mail: Draft | Uint8Array | string): Promise<Message> {
    const isWhole = typeof mail === "string" || mail instanceof Uint8Array;
    const answer = await this.#transport.json<{ messages: Summary[] }>(
      "POST",
      this.#path(2),
      isWhole ? { mail } : { json: mail },
    );
    const [stored] = answer.messages;
    if (stored === undefined) {
      throw new RestanteError("the server took the message and, as its rules want it, did not keep it");
    }
    // A script on the server may have sent it elsewhere.
    return new Mailbox(this.#transport, stored.mailbox).message(stored.id);
  }

  /** Deletes everything in the mailbox. */
  async purge(): Promise<void> {
    await this.#transport.ask("DELETE", this.#path(1));
  }

  /** Waits in as many requests as it takes; `nothing` is the status of one that was in vain. */
  async #wait(
    { match, timeout, after }: WaitOptions,
    usual: number,
    nothing: number,
    more: Record<string, string | number>,
  ): Promise<Response> {
    const end = Date.now() + (timeout ?? usual);
    for (;;) {
      const left = Math.max(0, end - Date.now());
      const now = Math.round(Math.min(left, AT_ONCE));
      const query = { timeout: `${now}ms`, match: match || undefined, after: idOf(after), ...more };
      const answer = await this.#transport.send("GET", `${this.#path(2)}/wait`, { query, extraPatience: now });
      if (answer.status !== nothing || left <= AT_ONCE) return answer;
      await answer.body?.cancel();
    }
  }

  /** Whoever reads the failed test wants to know what is there instead. */
  async #inventory(): Promise<string> {
    const there = await this.messages();
    const holds = there.length === 0 ? "nothing" : there.slice(-5).map(describe).join("; ");
    return `The mailbox ${this.name} holds ${holds}`;
  }

  #path(version: 1 | 2): string {
    return `/api/v${version}/mailbox/${encodeURIComponent(this.name)}`;
  }
}

function idOf(message: WaitOptions["after"]): string | undefined {
  return typeof message === "object" ? message?.id : message;
}
