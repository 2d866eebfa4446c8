/** Mailboxes: waiting for messages, listing, adding and deleting them. */

import { RestanteError } from "./errors.js";
import { Message } from "./message.js";
import { type Content, describe, type Summary } from "./records.js";
import type { Transport } from "./transport.js";
import { expectNone, firstId, waitForMessages, type WaitOptions } from "./wait.js";

/** A message to add to a mailbox. */
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

/** A mailbox of a server. It can be empty. */
export class Mailbox {
  readonly name: string;
  readonly #transport: Transport;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
  }

  /**
   * Waits for a message that matches and fetches the oldest one. A message that is already in the mailbox counts, unless it
   * arrived before `after`. Use an address only once, or pass the last message that you know (`last`). Throws `WaitTimeout`,
   * whose text lists what arrived instead.
   */
  async waitForMessage(options: WaitOptions = {}): Promise<Message> {
    return this.message(firstId(await this.waitForMessages(1, options)));
  }

  /** Waits for `count` messages that match. Returns them oldest first. */
  async waitForMessages(count: number, options: WaitOptions = {}): Promise<Summary[]> {
    return waitForMessages(this.#transport, `${this.#path(2)}/wait`, count, options, () => this.#inventory());
  }

  /** Waits and checks that no matching message arrives. Throws `UnexpectedMail` if one does. */
  async expectNone(options: WaitOptions = {}): Promise<void> {
    await expectNone(this.#transport, `${this.#path(2)}/wait`, options);
  }

  /** Returns a message by its id, or the latest. */
  async message(id = "latest"): Promise<Message> {
    return new Message(this.#transport, await this.#transport.json<Content>("GET", `${this.#path(1)}/${encodeURIComponent(id)}`));
  }

  /** Returns the id of the newest message, or `"0"`. Pass it as `after` to wait for later messages. */
  async last(): Promise<string> {
    const newest = await this.#transport.json<Summary[]>("GET", this.#path(1), { query: { limit: 1 } });
    return newest[0]?.id ?? "0";
  }

  /** Returns all messages, oldest first. */
  async messages(): Promise<Summary[]> {
    return this.#transport.json("GET", this.#path(1));
  }

  /** Adds a message to the mailbox without SMTP: the source of a message, or one that is built from a draft. */
  async inject(mail: Draft | Uint8Array | string): Promise<Message> {
    const isSource = typeof mail === "string" || mail instanceof Uint8Array;
    const response = await this.#transport.json<{ messages: Summary[] }>(
      "POST",
      this.#path(2),
      isSource ? { mail } : { json: mail },
    );
    const [stored] = response.messages;
    if (stored === undefined) {
      throw new RestanteError("the server accepted the message but did not store it, because a rule or a script discarded it");
    }
    // A script on the server can redirect the message to another mailbox.
    return new Mailbox(this.#transport, stored.mailbox).message(stored.id);
  }

  /** Deletes all messages in the mailbox. */
  async purge(): Promise<void> {
    await this.#transport.request("DELETE", this.#path(1));
  }

  /** Returns the content of the mailbox for the text of a timeout. */
  async #inventory(): Promise<string> {
    const messages = await this.messages();
    const content = messages.length === 0 ? "no messages" : messages.slice(-5).map(describe).join("; ");
    return `The mailbox ${this.name} contains ${content}`;
  }

  #path(version: 1 | 2): string {
    return `/api/v${version}/mailbox/${encodeURIComponent(this.name)}`;
  }
}
