/** Sends HTTP requests and maps error responses to errors. */

import { NotFound, Refused, RestanteError } from "./errors.js";

/** The timeout of a request that does not wait for messages, in milliseconds. */
const REQUEST_TIMEOUT_MS = 30_000;

/** The options of a request. */
export interface Request {
  /** Each value of an array is a parameter of its own. */
  query?: Record<string, string | number | string[] | undefined>;
  json?: unknown;
  mail?: Uint8Array | string;
  /** Added to the timeout, in milliseconds. */
  extraTimeout?: number;
}

/** Sends requests to one server, with its credentials. */
export class Transport {
  readonly url: string;
  readonly #authorization: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(url: string, authorization: string | undefined, send: typeof fetch) {
    this.url = url.replace(/\/+$/, "");
    this.#authorization = authorization;
    // Browsers reject a call of `fetch` as a method of another object.
    this.#fetch = (...request) => send(...request);
  }

  /** Sends a request. Returns the response, also for error statuses. */
  async send(method: string, path: string, options: Request = {}): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(options.query ?? {})) {
      for (const one of [value ?? []].flat()) query.append(name, String(one));
    }
    const search = String(query) && `?${query}`;
    const headers: Record<string, string> = {};
    if (this.#authorization !== undefined) headers["authorization"] = this.#authorization;
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS + Math.ceil(options.extraTimeout ?? 0)) };
    if (options.mail !== undefined) {
      headers["content-type"] = "message/rfc822";
      init.body = options.mail as BodyInit;
    } else if (options.json !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(options.json);
    }
    try {
      return await this.#fetch(`${this.url}${path}${search}`, init);
    } catch (cause) {
      throw new RestanteError(`the request to ${this.url} failed: ${reason(cause)}`, undefined, { cause });
    }
  }

  /** Sends a request. Returns a successful response, otherwise throws. */
  async request(method: string, path: string, options: Request = {}): Promise<Response> {
    const response = await this.send(method, path, options);
    if (!response.ok) throw await problem(response);
    return response;
  }

  /** Sends a request. Returns the JSON of a successful response, otherwise throws. */
  async json<T>(method: string, path: string, options: Request = {}): Promise<T> {
    return (await (await this.request(method, path, options)).json()) as T;
  }
}

/** Returns the error for an error response. */
export async function problem(response: Response): Promise<RestanteError> {
  const { status } = response;
  const problem = (await response.json().catch(() => ({}))) as { detail?: string };
  const detail = problem.detail ?? `the server responded with status ${status}`;
  if (status === 404) return new NotFound(detail, status);
  if (status === 401 || status === 403) return new Refused(detail, status);
  return new RestanteError(detail, status);
}

/** Returns why there was no response. The error of `fetch` has it in its cause. */
function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
