/** The server, and what concerns all of its mailboxes. */

import { Mailbox } from "./mailbox.js";
import type { Summary } from "./records.js";
import { Transport } from "./transport.js";

/** Which server, and how to get in. */
export interface RestanteOptions {
  /** Where it is; otherwise the variable `RESTANTE_SERVER` says it, or it is at `http://localhost:9000`. */
  url?: string | undefined;
  /** What opens a server that is locked; otherwise the variable `RESTANTE_TOKEN` has it. */
  token?: string | undefined;
  /** A name and a password, instead of a token; otherwise `RESTANTE_USER` and `RESTANTE_PASSWORD` have them. */
  user?: { name: string; password: string } | undefined;
  /** What sends requests, where the usual `fetch` will not do. */
  fetch?: typeof fetch;
}

/** A mailbox that holds something, in numbers. */
export interface MailboxState {
  name: string;
  messages: number;
  unseen: number;
  bytes: number;
  newest: { id: string; date: string; "posix-millis": number };
}

interface SearchPage {
  messages: Summary[];
  next: string | null;
}

const DEFAULT_URL = "http://localhost:9000";

/** A Restante server. */
export class Restante {
  readonly #transport: Transport;

  constructor(options: RestanteOptions = {}) {
    const url = new URL(options.url || variable("RESTANTE_SERVER") || DEFAULT_URL);
    const authorized = authorization(options, url);
    // They are not for the eyes of those who read error messages.
    url.username = url.password = "";
    this.#transport = new Transport(url.href, authorized, options.fetch ?? fetch);
  }

  /** Where it is. */
  get url(): string {
    return this.#transport.url;
  }

  /** A mailbox, by its name or an address. It need not hold anything. */
  mailbox(name: string): Mailbox {
    return new Mailbox(this.#transport, name);
  }

  /** The mailboxes that hold something, ascending by name. */
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

  /** The messages that match, newest first, of one mailbox or of all. */
  async *search(text: string, options: { mailbox?: string } = {}): AsyncGenerator<Summary> {
    let before: string | undefined;
    do {
      const query = { q: text, mailbox: options.mailbox, before };
      const page: SearchPage = await this.#transport.json("GET", "/api/v2/search", { query });
      yield* page.messages;
      before = page.next ?? undefined;
    } while (before !== undefined);
  }

  /** Deletes all mail of all mailboxes; how much that was. */
  async deleteEverything(): Promise<number> {
    return (await this.#transport.json<{ deleted: number }>("DELETE", "/api/v2/mailboxes")).deleted;
  }

  /** What the server tells about itself, its ports among it. */
  async about(): Promise<{ version: string; smtp: { port: number | null }; [more: string]: unknown }> {
    return this.#transport.json("GET", "/api/v2/server");
  }
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

/** A variable of the environment, where there is one. */
function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}
