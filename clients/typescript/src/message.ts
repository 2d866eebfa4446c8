/** A message, and what can be requested about it. */

import { NotFound } from "./errors.js";
import { type Attachment, type Code, type Content, describe, type Link } from "./records.js";
import type { Transport } from "./transport.js";

/** A code with a lower score is more often wrong than right. */
const MIN_SCORE = 0.5;

/** A message with its content. */
export class Message {
  readonly #transport: Transport;
  readonly #content: Content;

  constructor(transport: Transport, content: Content) {
    this.#transport = transport;
    this.#content = content;
  }

  get mailbox(): string {
    return this.#content.mailbox;
  }

  /** The id in the mailbox. Later messages have greater ids. */
  get id(): string {
    return this.#content.id;
  }

  /** The sender: `Name <address>`. */
  get from(): string {
    return this.#content.from;
  }

  /** The recipients: `Name <address>` each. */
  get to(): string[] {
    return this.#content.to;
  }

  get subject(): string {
    return this.#content.subject;
  }

  /** The time when the server received the message. */
  get received(): Date {
    return new Date(this.#content["posix-millis"]);
  }

  /** The length of the source in bytes. */
  get size(): number {
    return this.#content.size;
  }

  /** Whether the message was marked as seen when it was fetched. */
  get seen(): boolean {
    return this.#content.seen;
  }

  /** The plain text, converted from the HTML if the message has no plain text. */
  get text(): string {
    return this.#content.body.text;
  }

  /** The HTML as it was sent; empty if there is none. */
  get html(): string {
    return this.#content.body.html;
  }

  /** The header fields by canonical name. Values are not decoded. */
  get header(): Record<string, string[]> {
    return this.#content.header;
  }

  get attachments(): Attachment[] {
    return this.#content.attachments;
  }

  /** Returns the content of an attachment by its index. */
  async attachment(index: number): Promise<Uint8Array> {
    const path = `/mailbox/dattach/${encodeURIComponent(this.mailbox)}/${this.id}/${index}/file`;
    const response = await this.#transport.request("GET", path);
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Returns the source byte for byte, after the header fields that the server added on arrival. */
  async source(): Promise<Uint8Array> {
    const response = await this.#transport.request("GET", `${this.#path(1)}/source`);
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Returns the possible one-time codes, the most likely first. */
  async codes(): Promise<Code[]> {
    return (await this.#transport.json<{ codes: Code[] }>("GET", `${this.#path(2)}/codes`)).codes;
  }

  /** Returns the one-time code. Throws `NotFound` if there is none. */
  async code(): Promise<string> {
    const best = (await this.codes())[0];
    if (best === undefined || best.score < MIN_SCORE) throw new NotFound(`there is no code in ${this}`);
    return best.code;
  }

  /** Returns the links in order. */
  async links(): Promise<Link[]> {
    return (await this.#transport.json<{ links: Link[] }>("GET", `${this.#path(2)}/links`)).links;
  }

  /**
   * Returns the URL of the first link whose URL or text contains `wanted`, ignoring case, or matches the expression. Throws
   * `NotFound` if there is none.
   */
  async link(wanted: string | RegExp = ""): Promise<string> {
    const links = await this.links();
    const matches = (text: string) =>
      typeof wanted === "string" ? text.toLowerCase().includes(wanted.toLowerCase()) : text.search(wanted) >= 0;
    const found = links.find((link) => [link.href, link.text, link["image-alt"] ?? ""].some(matches));
    if (found === undefined) throw new NotFound(`none of the ${links.length} links in ${this} matches ${wanted}`);
    return found.href;
  }

  /** Returns the transcript of the SMTP session that delivered the message. */
  async transcript(): Promise<unknown> {
    return this.#transport.json("GET", `${this.#path(2)}/transcript`);
  }

  /** Marks the message as seen or not seen. */
  async markSeen(seen = true): Promise<void> {
    await this.#transport.request("PATCH", this.#path(1), { json: { seen } });
  }

  /** Deletes the message. */
  async delete(): Promise<void> {
    await this.#transport.request("DELETE", this.#path(1));
  }

  /** The JSON of the message as in the API, for `JSON.stringify`. */
  toJSON(): Content {
    return this.#content;
  }

  toString(): string {
    return describe(this.#content);
  }

  #path(version: 1 | 2): string {
    return `/api/v${version}/mailbox/${encodeURIComponent(this.mailbox)}/${this.id}`;
  }
}
