/** A message, and what can be asked about it. */

import { NotFound } from "./errors.js";
import { type Attachment, type Code, type Content, describe, type Link } from "./records.js";
import type { Transport } from "./transport.js";

/** Below this score a code is a guess that is more often wrong than right. */
const LIKELY = 0.5;

/** A message that was fetched. */
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

  /** Its id within the mailbox; ids ascend with arrival. */
  get id(): string {
    return this.#content.id;
  }

  /** Who sent it: `Name <address>`. */
  get from(): string {
    return this.#content.from;
  }

  /** To whom it was sent: `Name <address>` each. */
  get to(): string[] {
    return this.#content.to;
  }

  get subject(): string {
    return this.#content.subject;
  }

  /** When the server received it. */
  get received(): Date {
    return new Date(this.#content["posix-millis"]);
  }

  /** The length of its source in bytes. */
  get size(): number {
    return this.#content.size;
  }

  /** Whether it was marked as seen when it was fetched. */
  get seen(): boolean {
    return this.#content.seen;
  }

  /** The plain text; made from the HTML when there is only that. */
  get text(): string {
    return this.#content.body.text;
  }

  /** The HTML as it was sent; empty when there is none. */
  get html(): string {
    return this.#content.body.html;
  }

  /** The header by canonical names; values not decoded. */
  get header(): Record<string, string[]> {
    return this.#content.header;
  }

  get attachments(): Attachment[] {
    return this.#content.attachments;
  }

  /** The content of one of the attachments, by its place in the list. */
  async attachment(index: number): Promise<Uint8Array> {
    const path = `/mailbox/dattach/${encodeURIComponent(this.mailbox)}/${this.id}/${index}/file`;
    const answer = await this.#transport.ask("GET", path);
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** The message byte for byte, behind the lines that were added when it was received. */
  async source(): Promise<Uint8Array> {
    const answer = await this.#transport.ask("GET", `${this.#path(1)}/source`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** The one-time codes in it, the likeliest first. */
  async codes(): Promise<Code[]> {
    return (await this.#transport.json<{ codes: Code[] }>("GET", `${this.#path(2)}/codes`)).codes;
  }

  /** The one-time code in it; throws `NotFound` when there is none. */
  async code(): Promise<string> {
    const best = (await this.codes())[0];
    if (best === undefined || best.score < LIKELY) throw new NotFound(`there is no code in ${this}`);
    return best.code;
  }

  /** The links in it, in their order. */
  async links(): Promise<Link[]> {
    return (await this.#transport.json<{ links: Link[] }>("GET", `${this.#path(2)}/links`)).links;
  }

  /**
   * Where the first link goes whose address or text has this word, in any case, or matches this expression; throws
   * `NotFound` when there is none.
   */
  async link(wanted: string | RegExp = ""): Promise<string> {
    const links = await this.links();
    const matches = (text: string) =>
      typeof wanted === "string" ? text.toLowerCase().includes(wanted.toLowerCase()) : text.search(wanted) >= 0;
    const found = links.find((link) => [link.href, link.text, link["image-alt"] ?? ""].some(matches));
    if (found === undefined) throw new NotFound(`none of the ${links.length} links in ${this} matches ${wanted}`);
    return found.href;
  }

  /** The session that brought it: who said what, and when. */
  async transcript(): Promise<unknown> {
    return this.#transport.json("GET", `${this.#path(2)}/transcript`);
  }

  /** Marks it as seen, or as not seen. */
  async markSeen(seen = true): Promise<void> {
    await this.#transport.ask("PATCH", this.#path(1), { json: { seen } });
  }

  /** Deletes it. */
  async delete(): Promise<void> {
    await this.#transport.ask("DELETE", this.#path(1));
  }

  /** What `JSON.stringify` makes of it: the message as the API has it. */
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
