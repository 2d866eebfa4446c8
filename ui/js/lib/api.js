// Requests to the server, and their errors.

/** @import { Chaos, HtmlCheck, Link, MailboxPage, Message, Server, SessionPage, Status, Summary, SummaryPage, Tag, Transcript, Usage, Vars, Whole } from '../types.js' */
/** @import { Document } from '../components/docs/document.js' */
/** @import { Scope } from './scope.js' */

import * as connection from './connection.js';
import { takeResponse } from './early.js';
import { redirectToLogin } from './login.js';
import * as paths from './paths.js';
import { serverPath, parameters } from './paths.js';

/** An error response, or a request without a response. */
export class ApiError extends Error {
  /**
   * @param {number} status The HTTP status; 0 if there was no response.
   * @param {string} message A sentence for the user.
   * @param {number | null} [position] The number of characters before the error in a query.
   */
  constructor(status, message, position = null) {
    super(message);
    this.status = status;
    this.position = position;
  }
}

/**
 * Lists messages, newest first.
 * @param {Scope} scope
 * @param {{ limit?: number, before?: string | null, signal?: AbortSignal }} [page]
 * @returns {Promise<SummaryPage>}
 */
export async function list({ mailbox, query }, { limit, before, signal } = {}) {
  const { messages, excerpts = [], ...page } = await requestJson(serverPath('api', 'v2', 'messages') + parameters({ mailbox, q: query, limit, before }), { signal });
  return { ...page, messages: messages.map((/** @type {Summary} */ message, /** @type {number} */ at) => ({ ...message, excerpt: excerpts[at] })) };
}

/**
 * Requests a resource of a message.
 * @param {string} id The id of the message or of one of its copies.
 * @param {string} name
 * @param {AbortSignal} [signal]
 */
const messageJson = (id, name, signal) => requestJson(serverPath('api', 'v2', 'messages', id, name), { signal });

/**
 * Returns the content of a message.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Message>}
 */
export const message = (id, signal) => messageJson(id, 'details', signal);

/**
 * Returns the envelope, the tags and the copies of a message.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Whole>}
 */
export const whole = (id, signal) => requestJson(serverPath('api', 'v2', 'messages', id), { signal });

/**
 * Replaces the tags of a message.
 * @param {string} id
 * @param {string[]} tags
 * @returns {Promise<{ tags: string[] }>}
 */
export const setTags = (id, tags) => requestJson(serverPath('api', 'v2', 'messages', id), json('PATCH', { tags }));

/**
 * Returns the source of a message as text, for display. Bytes that are not UTF-8 are replaced.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export const source = (id, signal) => text(paths.source(id), signal);

/**
 * Returns the decoded body of a message.
 * @param {string} id
 * @param {'html' | 'text'} format
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export const body = (id, format, signal) => text(paths.body(id, format), signal);

/**
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Link[]>}
 */
export const links = async (id, signal) => (await messageJson(id, 'links', signal)).links;

/**
 * Returns which mail clients support the HTML of a message.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<HtmlCheck>}
 */
export const htmlCheck = (id, signal) => messageJson(id, 'html-check', signal);

/**
 * Returns the transcript of the session that delivered a message.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Transcript>}
 */
export const transcript = (id, signal) => messageJson(id, 'transcript', signal);

/**
 * Returns a file as text, for display. Bytes that are not valid in the charset are replaced.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @param {string} [charset]
 * @returns {Promise<string>}
 */
export async function text(path, signal, charset = 'utf-8') {
  const response = await request(path, { signal });
  return decoder(charset).decode(await content(response, 'arrayBuffer'));
}

/** @param {string} charset */
function decoder(charset) {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}

/**
 * Lists SMTP sessions, the latest first.
 * @param {{ refused?: boolean, before?: string, signal?: AbortSignal }} [page]
 * @returns {Promise<SessionPage>}
 */
export function sessions({ refused, before, signal } = {}) {
  return requestJson(serverPath('api', 'v2', 'sessions') + parameters({ refused: refused && 'true', before }), { signal });
}

/**
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Transcript>}
 */
export function session(id, signal) {
  return requestJson(serverPath('api', 'v2', 'sessions', id), { signal });
}

/**
 * Adds a message to a mailbox. Returns where it was stored: a script or a rule can redirect or discard it.
 * @param {string} mailbox
 * @param {{ from: string, to?: string[], subject: string, text?: string, html?: string, attachments?: object[] }} mail
 * @returns {Promise<{ messages: { mailbox: string, id: string }[] }>}
 */
export function send(mailbox, mail) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox), json('POST', mail));
}

/**
 * Adds a complete message to a mailbox.
 * @param {string} mailbox
 * @param {Blob} source
 * @param {AbortSignal} signal
 */
export function addMessage(mailbox, source, signal) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox), { method: 'POST', headers: { 'Content-Type': 'message/rfc822' }, body: source, signal });
}

/** The maximum number of messages in one request. */
export const MAX_IDS = 20_000;

/**
 * Marks messages as read or unread. Deleted messages are omitted.
 * @param {string | null} mailbox The mailbox of the copies; null if these are whole messages.
 * @param {string[]} ids
 * @param {boolean} seen
 * @returns {Promise<{ marked: number }>}
 */
export function markAll(mailbox, ids, seen) {
  return requestJson(collection(mailbox, 'mark'), json('POST', { ids, seen }));
}

/**
 * Deletes messages. Messages that are already deleted are not an error.
 * @param {string | null} mailbox The mailbox of the copies; null if these are whole messages.
 * @param {string[]} ids
 * @param {{ keepalive?: boolean }} [options] Whether the request continues after the page is closed. Browsers limit such bodies to 64 KB.
 * @returns {Promise<{ deleted: number }>}
 */
export function removeAll(mailbox, ids, { keepalive = false } = {}) {
  return requestJson(collection(mailbox, 'delete'), { ...json('POST', { ids }), keepalive });
}

/**
 * @param {string | null} mailbox
 * @param {'mark' | 'delete'} action
 */
const collection = (mailbox, action) => (mailbox === null ? serverPath('api', 'v2', 'messages', action) : serverPath('api', 'v2', 'mailbox', mailbox, action));

/**
 * Marks all messages of a scope as read or unread.
 * @param {Scope} scope
 * @param {boolean} seen
 * @returns {Promise<{ marked: number }>}
 */
export function markScope({ mailbox, query }, seen) {
  return requestJson(serverPath('api', 'v2', 'messages') + parameters({ mailbox, q: query }), json('PATCH', { seen }));
}

/**
 * Deletes all messages of a scope.
 * @param {Scope} scope
 * @returns {Promise<{ deleted: number }>}
 */
export function removeScope({ mailbox, query }) {
  if (mailbox === null && query === '') return purgeAll();
  return requestJson(serverPath('api', 'v2', 'messages') + parameters({ mailbox, q: query }), { method: 'DELETE' });
}

/**
 * Deletes all messages in all mailboxes.
 * @returns {Promise<{ deleted: number }>}
 */
function purgeAll() {
  return requestJson(serverPath('api', 'v2', 'mailboxes'), { method: 'DELETE' });
}

/**
 * Returns how much is stored.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Usage>}
 */
export const usage = (signal) => requestJson(serverPath('api', 'v2', 'usage'), { signal });

/**
 * @param {{ prefix?: string, limit?: number, signal?: AbortSignal }} [page]
 * @returns {Promise<MailboxPage>}
 */
export function mailboxes({ prefix, limit, signal } = {}) {
  return requestJson(serverPath('api', 'v2', 'mailboxes') + parameters({ prefix, limit }), { signal });
}

/**
 * Lists the tags of all messages.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Tag[]>}
 */
export const tags = async (signal) => (await requestJson(serverPath('api', 'v2', 'tags'), { signal })).tags;

/**
 * Renames a tag on all messages.
 * @param {string} tag
 * @param {string} name
 * @returns {Promise<{ name: string, changed: number }>}
 */
export const renameTag = (tag, name) => requestJson(serverPath('api', 'v2', 'tags', tag), json('PATCH', { name }));

/**
 * Removes a tag from all messages.
 * @param {string} tag
 * @returns {Promise<{ changed: number }>}
 */
export const deleteTag = (tag) => requestJson(serverPath('api', 'v2', 'tags', tag), { method: 'DELETE' });

/** @type {Promise<Server> | null} */
let server = null;

/** Discards the cached server information: the server may have restarted with another configuration. */
export function resetServer() {
  server = null;
}
connection.changes.addEventListener('change', resetServer);

/**
 * Returns information about the server. The response is cached until `resetServer`.
 * @returns {Promise<Server>}
 */
export function about() {
  if (server) return server;
  const loading = requestJson(serverPath('api', 'v2', 'server'));
  loading.catch(() => server === loading && resetServer());
  return (server = loading);
}

/**
 * @param {AbortSignal} [signal]
 * @returns {Promise<Status>}
 */
export const status = (signal) => requestJson(serverPath('serve', 'status'), { signal });

/**
 * Returns the counters and the time of the server's clock.
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ vars: Vars, now: number }>}
 */
export async function vars(signal) {
  const response = await request(serverPath('debug', 'vars'), { signal });
  return { vars: await content(response, 'json'), now: Date.parse(response.headers.get('Date') ?? '') || Date.now() };
}

/**
 * Returns the OpenAPI document.
 * @param {AbortSignal} signal
 * @returns {Promise<Document>}
 */
export const description = (signal) => requestJson(serverPath('api', 'openapi.json'), { signal });

/**
 * Returns the simulated failures.
 * @param {AbortSignal} signal
 * @returns {Promise<Chaos>}
 */
export const chaos = (signal) => requestJson(serverPath('api', 'v2', 'chaos'), { signal });

/**
 * @param {Chaos} values
 * @returns {Promise<Chaos>}
 */
export const setChaos = (values) => requestJson(serverPath('api', 'v2', 'chaos'), json('PUT', values));

/** Returns the operator's greeting as HTML. */
export async function greeting() {
  const response = await request(serverPath('serve', 'greeting'));
  return content(response, 'text');
}

/**
 * Returns whether the request was canceled by the page.
 * @param {unknown} error
 */
export const wasAborted = (error) => error instanceof DOMException && error.name === 'AbortError';

/**
 * Returns the text of an error for the user.
 * @param {unknown} error
 */
export const sentence = (error) => (error instanceof Error ? error.message : String(error));

/**
 * Requests a JSON document.
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function requestJson(path, options) {
  const response = await request(path, options);
  return content(response, 'json');
}

/**
 * Reads the body of a response. The connection can break, and a proxy can respond with something else.
 * @param {Response} response
 * @param {'json' | 'text' | 'arrayBuffer'} format
 */
async function content(response, format) {
  try {
    return await response[format]();
  } catch (error) {
    if (wasAborted(error)) throw error;
    if (error instanceof SyntaxError) throw new ApiError(response.status, 'The response is not valid JSON. Check whether a proxy responds instead of the server.');
    throw new ApiError(0, 'The connection broke while the response was loading. Try again.');
  }
}

/**
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function request(path, options) {
  const started = options?.method === undefined ? takeResponse(path) : undefined;
  const response = await (started ?? fetch(path, options)).catch((error) => {
    if (wasAborted(error)) throw error;
    throw new ApiError(0, 'The server does not respond. Check that it is running.');
  });
  if (response.ok) return response;
  if (response.status === 401) redirectToLogin();
  const problem = await response.json().catch(() => ({}));
  const text = typeof problem.detail === 'string' ? problem.detail : problem.title;
  throw new ApiError(response.status, text || `The server responded with ${response.status} ${response.statusText}.`, typeof problem.position === 'number' ? problem.position : null);
}

/**
 * Returns the options of a request with a JSON body.
 * @param {'POST' | 'PUT' | 'PATCH'} method
 * @param {unknown} value
 * @returns {RequestInit}
 */
export function json(method, value) {
  return { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) };
}
