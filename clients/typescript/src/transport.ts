/** HTTP: one request, one answer. What is asked and what the answers mean is known elsewhere. */

import { NotFound, Refused, RestanteError } from "./errors.js";

/** How long the server may take for an answer that it need not wait for, in milliseconds. */
const PATIENCE = 30_000;

/** What a request may have beside its path. */
export interface Request {
  query?: Record<string, string | number | undefined>;
  json?: unknown;
  mail?: Uint8Array | string;
  /** How long the server may take beyond what is usual, in milliseconds. */
  extraPatience?: number;
}

/** The way to one server, with the credentials for it. */
export class Transport {
  readonly url: string;
  readonly #authorization: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(url: string, authorization: string | undefined, send: typeof fetch) {
    this.url = url.replace(/\/+$/, "");
    this.#authorization = authorization;
    // A browser's own will not be called as a method of something else.
    this.#fetch = (...request) => send(...request);
  }

  /** Sends a request; the answer, whatever it says. */
  async send(method: string, path: string, request: Request = {}): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) query.set(name, String(value));
    }
    const search = String(query) && `?${query}`;
    const headers: Record<string, string> = {};
    if (this.#authorization !== undefined) headers["authorization"] = this.#authorization;
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(PATIENCE + Math.ceil(request.extraPatience ?? 0)) };
    if (request.mail !== undefined) {
      headers["content-type"] = "message/rfc822";
      init.body = request.mail as BodyInit;
    } else if (request.json !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(request.json);
    }
    try {
      return await this.#fetch(`${this.url}${path}${search}`, init);
    } catch (cause) {
      throw new RestanteError(`${this.url} does not answer: ${reason(cause)}`, undefined, { cause });
    }
  }

  /** Sends a request; a successful answer. */
  async ask(method: string, path: string, request: Request = {}): Promise<Response> {
    const answer = await this.send(method, path, request);
    if (!answer.ok) throw await problem(answer);
    return answer;
  }

  /** Sends a request; what a successful answer says. */
  async json<T>(method: string, path: string, request: Request = {}): Promise<T> {
    return (await (await this.ask(method, path, request)).json()) as T;
  }
}

/** The error that an answer means. */
export async function problem(answer: Response): Promise<RestanteError> {
  const { status } = answer;
  const said = (await answer.json().catch(() => ({}))) as { detail?: string };
  const detail = said.detail ?? `the server answered ${status}`;
  if (status === 404) return new NotFound(detail, status);
  if (status === 401 || status === 403) return new Refused(detail, status);
  return new RestanteError(detail, status);
}

/** Why there was no answer. What `fetch` throws says it in its cause, if at all. */
function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
