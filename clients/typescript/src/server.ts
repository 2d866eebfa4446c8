/** The server: its mailboxes, search and information. */

import { Mailbox } from "./mailbox.js";
import type { Summary } from "./records.js";
import { Transport } from "./transport.js";

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

  /** Deletes all messages in all mailboxes. Returns their number. */
  async deleteEverything(): Promise<number> {
    return (await this.#transport.json<{ deleted: number }>("DELETE", "/api/v2/mailboxes")).deleted;
  }

  /** Returns information about the server, such as its ports. */
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

/** Returns an environment variable, if the runtime has them. */
function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}
