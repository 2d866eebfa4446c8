/** The server: its mailboxes, search and information. */

import { Mailbox } from "./mailbox.js";
import { fetchMessage, type WholeMessage } from "./message.js";
import { describe, type MessageEntry, type RelayEntry, type RelayEntryDetails, type Summary, type WebhookEntry } from "./records.js";
import { waitForRelay } from "./relay.js";
import { Transport } from "./transport.js";
import { expectNone, firstId, idOf, waitForMessages, type WaitOptions } from "./wait.js";

/** The end of the URL of a project. */
const PROJECT_PATH = /\/p\/[a-z0-9-]+$/;

/** The server and its credentials. */
export interface RestanteOptions {
  /** The URL. Default: the environment variable `RESTANTE_SERVER`, or `http://localhost:9000`. */
  url?: string | undefined;
  /** The token, if the server requires a login. Default: the environment variable `RESTANTE_TOKEN`. */
  token?: string | undefined;
  /** A name and a password instead of a token. Default: `RESTANTE_USER` and `RESTANTE_PASSWORD`. */
  user?: { name: string; password: string } | undefined;
  /** The function that sends requests. Default: the global `fetch`. */
  fetch?: typeof fetch;
}

/** A mailbox that contains messages, with its counts. */
export interface MailboxState {
  name: string;
  messages: number;
  unseen: number;
  bytes: number;
  newest: { id: string; date: string; "posix-millis": number };
}

/** The conditions for messages of all mailboxes. */
export interface MessageFilter {
  /** A search query that the message must match. */
  query?: string | undefined;
  /** One tag, or several that the message must have. */
  tag?: string | string[] | undefined;
  /** Only the copies in this mailbox: a name or an address. */
  mailbox?: string | undefined;
}

/** The messages that the credentials allow, as numbers. */
export interface Usage {
  /** The number of messages, or null for a token for some mailboxes. */
  messages: number | null;
  /** The number of messages, counted once per mailbox. */
  copies: number;
  bytes: number;
  mailboxes: number;
}

/** The conditions and the number of messages of all mailboxes. */
export interface ListOptions extends MessageFilter {
  /** The maximum number of messages. */
  limit?: number | undefined;
  /** Only messages that arrived before this one. */
  before?: string | { id: string } | null | undefined;
  /** Only messages that arrived after this one. */
  after?: string | { id: string } | null | undefined;
}

/** How long a run lasts. */
export interface LeaseOptions {
  /** Until the run ends, at most `24h`. Default: `1h`. */
  expiresIn?: string | undefined;
}

/** A leased run, as the server describes it. */
export interface RunRecord {
  project: string;
  token: string;
  /** In RFC 3339 format. */
  expires: string;
  domain: string;
  address: string;
  smtp: { host: string; port: number | null; tls: string; username: string; password: string };
}

/** Where a message is sent to. */
export interface ReleaseOptions {
  /** One address, or several. Default: the recipients of the envelope. */
  to?: string | string[] | undefined;
  /** The name of the relay target. Default: the only one. */
  target?: string | undefined;
}

/** The conditions for entries of the relay queue or the webhook queue, and their number. */
export interface EntryFilter {
  /** Only entries of this message. */
  message?: string | { id: string } | undefined;
  /** Only entries of the target with this name. */
  target?: string | undefined;
  /** Only entries in this state. */
  state?: RelayEntry["state"] | undefined;
  /** The maximum number of entries. */
  limit?: number | undefined;
}

interface EntryPage {
  messages: MessageEntry[];
  next: string | null;
  /** The name of the mailbox, if one was listed. */
  mailbox?: string;
}

interface SearchPage {
  messages: Summary[];
  next: string | null;
}

/** The maximum number of messages in one response. */
const PAGE_SIZE = 200;
const WAIT_PATH = "/api/v2/wait";
const DEFAULT_URL = "http://localhost:9000";

/** A Restante server. */
export class Restante {
  readonly #transport: Transport;
  readonly #fetch: typeof fetch | undefined;

  constructor(options: RestanteOptions = {}) {
    this.#fetch = options.fetch;
    const url = new URL(options.url || variable("RESTANTE_SERVER") || DEFAULT_URL);
    const authorized = authorization(options, url);
    // The credentials must not appear in error messages.
    url.username = url.password = "";
    this.#transport = new Transport(url.href, authorized, options.fetch ?? fetch);
  }

  /** The URL of the server. */
  get url(): string {
    return this.#transport.url;
  }

  /** Returns a mailbox by its name or an address. It can be empty. */
  mailbox(name: string): Mailbox {
    return new Mailbox(this.#transport, name);
  }

  /** Yields the mailboxes that contain messages, in ascending order of name. */
  async *mailboxes(prefix = ""): AsyncGenerator<MailboxState> {
    let after: string | undefined;
    do {
      const query = { prefix: prefix || undefined, after, limit: 1000 };
      const page: { mailboxes: MailboxState[]; next: string | null } = await this.#transport.json(
        "GET",
        "/api/v2/mailboxes",
        { query },
      );
      yield* page.mailboxes;
      after = page.next ?? undefined;
    } while (after !== undefined);
  }

  /** Yields the messages that match, newest first, of one mailbox or of all. */
  async *search(text: string, options: { mailbox?: string } = {}): AsyncGenerator<Summary> {
    let before: string | undefined;
    do {
      const query = { q: text, mailbox: options.mailbox, before };
      const page: SearchPage = await this.#transport.json("GET", "/api/v2/search", { query });
      yield* page.messages;
      before = page.next ?? undefined;
    } while (before !== undefined);
  }

  /**
   * Yields the messages of all mailboxes that match, newest first. A message with several recipients is one message. With
   * `mailbox`, yields the copies in that mailbox: their ids, recipients, read marks and tags are those of the copies. Pass such an
   * entry to `message` to read or change only this copy.
   */
  async *messages(options: ListOptions = {}): AsyncGenerator<MessageEntry> {
    let before = idOf(options.before);
    let left = options.limit ?? Infinity;
    while (left > 0) {
      const query = { ...parameters(options), before, after: idOf(options.after), limit: Math.min(left, PAGE_SIZE) };
      const page: EntryPage = await this.#transport.json("GET", "/api/v2/messages", { query });
      const { mailbox } = page;
      yield* mailbox === undefined ? page.messages : page.messages.map((entry) => ({ ...entry, mailbox }));
      left -= page.messages.length;
      if (page.next === null) return;
      before = page.next;
    }
  }

  /**
   * Returns a message by its id, or the latest, with its content, its envelope and its copies. The id of a copy stands for the
   * whole message. For an entry of the list of one mailbox, returns the message with only the copy in that mailbox.
   */
  async message(message: string | { id: string; mailbox?: string | undefined } = "latest"): Promise<WholeMessage> {
    return typeof message === "string"
      ? fetchMessage(this.#transport, message)
      : fetchMessage(this.#transport, message.id, message.mailbox);
  }

  /** Returns the id of the newest message, or `"0"`. Pass it as `after` to wait for later messages. */
  async last(): Promise<string> {
    for await (const newest of this.messages({ limit: 1 })) return newest.id;
    return "0";
  }

  /**
   * Waits for a message in any mailbox that matches and fetches the oldest one. A message that already exists counts, unless it
   * arrived before `after`. Throws `WaitTimeout`, whose text lists what arrived instead.
   */
  async waitForMessage(options: WaitOptions = {}): Promise<WholeMessage> {
    return this.message(firstId(await this.waitForMessages(1, options)));
  }

  /** Waits for `count` messages in any mailbox that match. Returns them oldest first. */
  async waitForMessages(count: number, options: WaitOptions = {}): Promise<MessageEntry[]> {
    return waitForMessages(this.#transport, WAIT_PATH, count, options, () => this.#inventory());
  }

  /** Waits and checks that no matching message arrives in any mailbox. Throws `UnexpectedMail` if one does. */
  async expectNone(options: WaitOptions = {}): Promise<void> {
    await expectNone(this.#transport, WAIT_PATH, options);
  }

  /** Marks the messages that match as seen or not seen, in all mailboxes: without conditions, all messages. Returns their number. */
  async markMessages(filter: MessageFilter = {}, seen = true): Promise<number> {
    const options = { query: parameters(filter), json: { seen } };
    return (await this.#transport.json<{ marked: number }>("PATCH", "/api/v2/messages", options)).marked;
  }

  /** Deletes the messages that match from all mailboxes, or only from `mailbox`. Returns their number. */
  async deleteMessages(filter: MessageFilter): Promise<number> {
    const query = parameters(filter);
    return (await this.#transport.json<{ deleted: number }>("DELETE", "/api/v2/messages", { query })).deleted;
  }

  /** Deletes all messages in all mailboxes. Returns their number. */
  async deleteEverything(): Promise<number> {
    return (await this.#transport.json<{ deleted: number }>("DELETE", "/api/v2/mailboxes")).deleted;
  }

  /**
   * Sends a message to other mail servers, through a relay target of the server. Returns the entry of the relay queue; the message
   * may not be sent yet. Throws `Refused` if the target does not allow a recipient.
   */
  async release(message: string | { id: string }, { to, target }: ReleaseOptions = {}): Promise<RelayEntry> {
    const json = { target, to: to === undefined ? undefined : [to].flat() };
    return this.#transport.json("POST", `/api/v2/messages/${encodeURIComponent(idOf(message) ?? "")}/release`, { json });
  }

  /** Yields the entries of the relay queue, newest first. */
  relayEntries(filter: EntryFilter = {}): AsyncGenerator<RelayEntry> {
    return this.#queueEntries("relay", filter);
  }

  /** Yields the entries of the webhook queue, newest first. */
  webhookEntries(filter: EntryFilter = {}): AsyncGenerator<WebhookEntry> {
    return this.#queueEntries("webhooks", filter);
  }

  async *#queueEntries<E>(queue: string, { message, target, state, limit }: EntryFilter): AsyncGenerator<E> {
    let before: string | undefined;
    let left = limit ?? Infinity;
    while (left > 0) {
      const query = { message: idOf(message), target, state, before, limit: Math.min(left, PAGE_SIZE) };
      const page: { entries: E[]; next: string | null } = await this.#transport.json("GET", `/api/v2/${queue}/entries`, { query });
      yield* page.entries;
      left -= page.entries.length;
      if (page.next === null) return;
      before = page.next;
    }
  }

  /** Returns an entry of the relay queue, with the lines of its last attempt. */
  async relayEntry(id: string): Promise<RelayEntryDetails> {
    return this.#transport.json("GET", `/api/v2/relay/entries/${encodeURIComponent(id)}`);
  }

  /**
   * Waits until an entry of the relay queue is not sent again. Returns it, with the state `delivered`, `failed` or `cancelled`. The
   * timeout is in milliseconds. Throws `WaitTimeout`, whose text has the last reply.
   */
  async waitForRelay(entry: string | { id: string }, options: { timeout?: number | undefined } = {}): Promise<RelayEntryDetails> {
    const id = typeof entry === "string" ? entry : entry.id;
    return waitForRelay(() => this.relayEntry(id), options.timeout);
  }

  /**
   * Leases a run: a client with a project of its own, whose mail no other client sees. Mail is delivered to it if its recipient is an
   * address of the run's domain, or if its sender logs in with the name and password in `smtp`.
   */
  async lease({ expiresIn }: LeaseOptions = {}): Promise<Run> {
    const record: RunRecord = await this.#transport.json("POST", "/api/v2/runs", { json: { "expires-in": expiresIn } });
    // The run is a project of its own, so its URL is not that of another project.
    return new Run(this.url.replace(PROJECT_PATH, ""), record, this.#fetch);
  }

  /** Returns the numbers of messages, copies and mailboxes that the credentials allow, and their size. */
  async usage(): Promise<Usage> {
    return this.#transport.json("GET", "/api/v2/usage");
  }

  /** Returns information about the server, such as its ports. */
  async about(): Promise<{ version: string; smtp: { port: number | null }; [more: string]: unknown }> {
    return this.#transport.json("GET", "/api/v2/server");
  }

  /** Returns the newest messages for the text of a timeout. */
  async #inventory(): Promise<string> {
    const newest: MessageEntry[] = [];
    for await (const one of this.messages({ limit: 5 })) newest.unshift(one);
    const content = newest.length === 0 ? "no messages" : newest.map(describe).join("; ");
    return `The server contains ${content}`;
  }
}

/** A leased run, and the client for its mail. */
export class Run extends Restante {
  /** The name of the project that contains the mail of the run. */
  readonly project: string;
  /** The token, for other clients of this run. */
  readonly token: string;
  /** The domain whose mail is delivered to the run. */
  readonly domain: string;
  /** The time when the run ends, in RFC 3339 format. */
  readonly expires: string;
  /** The host and port for SMTP, and a login whose mail is delivered to the run. */
  readonly smtp: RunRecord["smtp"];
  readonly #transport: Transport;

  constructor(url: string, { project, token, domain, expires, smtp }: RunRecord, send: typeof fetch = fetch) {
    super({ url, token, fetch: send });
    this.#transport = new Transport(url, `Bearer ${token}`, send);
    this.project = project;
    this.token = token;
    this.domain = domain;
    this.expires = expires;
    this.smtp = smtp;
  }

  /** Returns an address whose mail is delivered to the run. */
  address(name: string): string {
    return `${name}@${this.domain}`;
  }

  /** Deletes all mail of the run. Its token is valid until it expires. */
  async end(): Promise<void> {
    await this.#transport.request("DELETE", "/api/v2/runs/current");
  }
}

/** Returns the parameters of a request that selects messages. */
function parameters({ query, tag, mailbox }: MessageFilter): { q: string | undefined; tag: string[]; mailbox: string | undefined } {
  return { q: query || undefined, tag: [tag ?? []].flat(), mailbox };
}

function authorization({ token, user }: RestanteOptions, { username, password }: URL): string | undefined {
  if (token !== undefined) return `Bearer ${token}`;
  if (user !== undefined) return basic(user.name, user.password);
  if (username) return basic(decodeURIComponent(username), decodeURIComponent(password));
  const inherited = variable("RESTANTE_TOKEN");
  if (inherited) return `Bearer ${inherited}`;
  const name = variable("RESTANTE_USER");
  return name ? basic(name, variable("RESTANTE_PASSWORD") ?? "") : undefined;
}

function basic(name: string, password: string): string {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

/** Returns an environment variable, if the runtime has them. */
function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}
