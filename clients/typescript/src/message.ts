/** Messages, and what can be requested about them. */

import { NotFound } from "./errors.js";
import {
  type Attachment,
  type Client,
  type Code,
  type Content,
  describe,
  type HtmlCheck,
  type Link,
  type MessageCopy,
  type WholeMessageRecord,
} from "./records.js";
import type { Transport } from "./transport.js";

/** A code with a lower score is more often wrong than right. */
const MIN_SCORE = 0.5;

/** The content of a message, and what can be requested about it. */
abstract class Readable {
  protected readonly transport: Transport;
  protected readonly content: Content;

  constructor(transport: Transport, content: Content) {
    this.transport = transport;
    this.content = content;
  }

  /** The id. Later messages have greater ids. */
  abstract get id(): string;

  /** The sender: `Name <address>`. */
  get from(): string {
    return this.content.from;
  }

  /** The recipients: `Name <address>` each. */
  get to(): string[] {
    return this.content.to;
  }

  get subject(): string {
    return this.content.subject;
  }

  /** The time when the server received the message. */
  get received(): Date {
    return new Date(this.content["posix-millis"]);
  }

  /** The plain text, converted from the HTML if the message has no plain text. */
  get text(): string {
    return this.content.body.text;
  }

  /** The HTML as it was sent; empty if there is none. */
  get html(): string {
    return this.content.body.html;
  }

  /** The header fields by canonical name. Values are not decoded. */
  get header(): Record<string, string[]> {
    return this.content.header;
  }

  get attachments(): Attachment[] {
    return this.content.attachments;
  }

  /** Returns the content of an attachment by its index. */
  async attachment(index: number): Promise<Uint8Array> {
    const response = await this.transport.request("GET", this.attachmentPath(index));
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Returns the source byte for byte, after the header fields that the server added on arrival. */
  async source(): Promise<Uint8Array> {
    const response = await this.transport.request("GET", this.resource("source"));
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Returns the possible one-time codes, the most likely first. */
  async codes(): Promise<Code[]> {
    return (await this.transport.json<{ codes: Code[] }>("GET", this.resource("codes"))).codes;
  }

  /** Returns the one-time code. Throws `NotFound` if there is none. */
  async code(): Promise<string> {
    const best = (await this.codes())[0];
    if (best === undefined || best.score < MIN_SCORE) throw new NotFound(`there is no code in ${this}`);
    return best.code;
  }

  /** Returns the links in order. */
  async links(): Promise<Link[]> {
    return (await this.transport.json<{ links: Link[] }>("GET", this.resource("links"))).links;
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

  /** Returns which mail clients support the HTML. Throws `NotFound` if the message has no HTML. */
  async htmlCheck(): Promise<HtmlCheck> {
    return this.transport.json<HtmlCheck>("GET", this.resource("html-check"));
  }

  /** Returns the transcript of the SMTP session that delivered the message. */
  async transcript(): Promise<unknown> {
    return this.transport.json("GET", this.resource("transcript"));
  }

  toString(): string {
    return describe(this);
  }

  /** Returns the path of the source, codes, links, HTML check or transcript. */
  protected abstract resource(name: string): string;

  protected abstract attachmentPath(index: number): string;
}

/** A message of a mailbox, with its content. */
export class Message extends Readable {
  get mailbox(): string {
    return this.content.mailbox;
  }

  /** The id in the mailbox. */
  get id(): string {
    return this.content.id;
  }

  /** The length of the source in bytes. */
  get size(): number {
    return this.content.size;
  }

  /** Whether the message was marked as seen when it was fetched. */
  get seen(): boolean {
    return this.content.seen;
  }

  /** Marks the message as seen or not seen. */
  async markSeen(seen = true): Promise<void> {
    await this.transport.request("PATCH", this.#path(1), { json: { seen } });
  }

  /** Deletes the message. */
  async delete(): Promise<void> {
    await this.transport.request("DELETE", this.#path(1));
  }

  /** The JSON of the message as in the API, for `JSON.stringify`. */
  toJSON(): Content {
    return this.content;
  }

  protected resource(name: string): string {
    return `${this.#path(name === "source" ? 1 : 2)}/${name}`;
  }

  protected attachmentPath(index: number): string {
    return `/mailbox/dattach/${encodeURIComponent(this.mailbox)}/${this.id}/${index}/file`;
  }

  #path(version: 1 | 2): string {
    return `/api/v${version}/mailbox/${encodeURIComponent(this.mailbox)}/${this.id}`;
  }
}

/**
 * A message of the server, with its content, its envelope and its copies in one mailbox or in several. If it was listed in one
 * mailbox, it is the copy in that mailbox.
 */
export class WholeMessage extends Readable {
  readonly #record: WholeMessageRecord;
  /** The mailbox, if this is the copy in it. */
  readonly mailbox: string | undefined;

  constructor(transport: Transport, record: WholeMessageRecord, content: Content, mailbox?: string) {
    super(transport, content);
    this.#record = record;
    this.mailbox = mailbox;
  }

  get id(): string {
    return this.#record.id;
  }

  /** The header field Cc: `Name <address>` each. */
  get cc(): string[] {
    return this.#record.cc;
  }

  /** The addresses to which the message was sent. */
  get recipients(): string[] {
    return this.#record.recipients;
  }

  /** The mailboxes that contain a copy. */
  get mailboxes(): string[] {
    return this.#record.mailboxes;
  }

  /** The first words of the text. */
  get snippet(): string {
    return this.#record.snippet;
  }

  /** The length of the source in bytes. */
  get size(): number {
    return this.#record.size;
  }

  /** Whether all copies were marked as seen when the message was fetched. */
  get seen(): boolean {
    return this.#record.seen;
  }

  /** The tags when the message was fetched. */
  get tags(): string[] {
    return this.#record.tags;
  }

  /** The sender of the envelope; empty for bounces. */
  get envelopeSender(): string {
    return this.#record.sender;
  }

  /** The client that delivered the message. */
  get client(): Client {
    return this.#record.client;
  }

  /** The copies, one for each mailbox. */
  get copies(): MessageCopy[] {
    return this.#record.copies;
  }

  /** Marks all copies as seen or not seen, or only the copy in the listed mailbox. */
  async markSeen(seen = true): Promise<void> {
    await this.transport.request("PATCH", this.#changePath(), { json: { seen } });
  }

  /** Replaces the tags of all copies, also if this is the copy in one mailbox. */
  async setTags(tags: string[]): Promise<void> {
    await this.transport.request("PATCH", this.#path(), { json: { tags } });
  }

  /** Deletes the message from all mailboxes, or only the copy in the listed mailbox. */
  async delete(): Promise<void> {
    await this.transport.request("DELETE", this.#changePath());
  }

  /** The JSON of the message as in the API, for `JSON.stringify`. */
  toJSON(): WholeMessageRecord {
    return this.#record;
  }

  protected resource(name: string): string {
    return `${this.#path()}/${name}`;
  }

  protected attachmentPath(index: number): string {
    return `${this.#path()}/attachments/${index}`;
  }

  #path(): string {
    return messagePath(this.id);
  }

  /** Returns the path of the copy, or of the message, which also accepts the id of a copy, but then changes all copies. */
  #changePath(): string {
    return this.mailbox === undefined ? this.#path() : copyPath(this.mailbox, this.id);
  }
}

/** Returns the path of a message of the server. */
export function messagePath(id: string): string {
  return `/api/v2/messages/${encodeURIComponent(id)}`;
}

/** Returns the path of the copy of a message in a mailbox. */
function copyPath(mailbox: string, id: string): string {
  return `/api/v1/mailbox/${encodeURIComponent(mailbox)}/${encodeURIComponent(id)}`;
}

/** Fetches a message of the server by its id, with its content. With `mailbox`, only the copy with this id. */
export async function fetchMessage(transport: Transport, id: string, mailbox?: string): Promise<WholeMessage> {
  const record = await transport.json<WholeMessageRecord>("GET", messagePath(id));
  const copy = mailbox === undefined ? record.copies[0] : record.copies.find((one) => one.id === id);
  if (copy === undefined) throw new NotFound(`message ${record.id} has no such copy`);
  const content = await transport.json<Content>("GET", copyPath(copy.mailbox, copy.id));
  if (mailbox === undefined) return new WholeMessage(transport, record, content);
  const { recipients, seen, tags } = copy;
  const only = { id, recipients, seen, tags, size: content.size, mailboxes: [copy.mailbox], copies: [copy] };
  return new WholeMessage(transport, { ...record, ...only }, content, copy.mailbox);
}
