// Requests to the server, and their errors.

/** @import { Code, Found, Link, Message, MailboxPage, Server, SessionPage, Status, Summary, Transcript, Vars } from '../types.js' */

import * as connection from './connection.js';
import { redirectToLogin } from './login.js';
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
 * Lists messages of a mailbox, oldest first. With `limit`, the newest ones; with `before`, of those older than that message.
 * @param {string} mailbox
 * @param {{ limit?: number, before?: string, signal?: AbortSignal }} [page]
 * @returns {Promise<Summary[]>}
 */
export function list(mailbox, { limit, before, signal } = {}) {
  return requestJson(serverPath('api', 'v1', 'mailbox', mailbox) + parameters({ limit, before }), { signal });
}

/**
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Message>}
 */
export function message(mailbox, id, signal) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox, id), { signal });
}

/**
 * Returns the source of a message as text, for display. Bytes that are not UTF-8 are replaced.
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function source(mailbox, id, signal) {
  const response = await request(serverPath('api', 'v1', 'mailbox', mailbox, id, 'source'), { signal });
  return content(response, 'text');
}

/**
 * Returns the possible one-time codes of a message, the most likely first.
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Code[]>}
 */
export async function codes(mailbox, id, signal) {
  return (await requestJson(serverPath('api', 'v2', 'mailbox', mailbox, id, 'codes'), { signal })).codes;
}

/**
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Link[]>}
 */
export async function links(mailbox, id, signal) {
  return (await requestJson(serverPath('api', 'v2', 'mailbox', mailbox, id, 'links'), { signal })).links;
}

/**
 * Returns the transcript of the session that delivered a message.
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Transcript>}
 */
export function transcript(mailbox, id, signal) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox, id, 'transcript'), { signal });
}

/**
 * Searches for messages, newest first.
 * @param {string} query
 * @param {{ mailbox?: string | null, before?: string, signal?: AbortSignal }} [where]
 * @returns {Promise<Found>}
 */
export function search(query, { mailbox, before, signal } = {}) {
  return requestJson(serverPath('api', 'v2', 'search') + parameters({ q: query, mailbox, before }), { signal });
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
 * @param {{ from: string, subject: string, text: string }} mail
 * @returns {Promise<{ messages: Summary[] }>}
 */
export function send(mailbox, mail) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox), json(mail));
}

/**
 * Returns the number of attachments of each message. Deleted messages are omitted.
 * @param {string} mailbox
 * @param {string[]} ids At most 200.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Record<string, number>>}
 */
export function attachmentCounts(mailbox, ids, signal) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox, 'attachments') + parameters({ ids: ids.join(',') }), { signal });
}

/** The maximum number of messages in one request. */
export const MAX_IDS = 20_000;

/**
 * Marks messages as read or unread. Deleted messages are omitted.
 * @param {string} mailbox
 * @param {string[]} ids
 * @param {boolean} seen
 * @returns {Promise<{ marked: number }>}
 */
export function markAll(mailbox, ids, seen) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox, 'mark'), json({ ids, seen }));
}

/**
 * Deletes messages. Messages that are already deleted are not an error.
 * @param {string} mailbox
 * @param {string[]} ids
 * @param {{ keepalive?: boolean }} [options] Whether the request continues after the page is closed. Browsers limit such bodies to 64 KB.
 * @returns {Promise<{ deleted: number }>}
 */
export function removeAll(mailbox, ids, { keepalive = false } = {}) {
  return requestJson(serverPath('api', 'v2', 'mailbox', mailbox, 'delete'), { ...json({ ids }), keepalive });
}

/** @param {string} mailbox */
export function purge(mailbox) {
  return requestJson(serverPath('api', 'v1', 'mailbox', mailbox), { method: 'DELETE' });
}

/**
 * Deletes all messages in all mailboxes.
 * @returns {Promise<{ deleted: number }>}
 */
export function purgeAll() {
  return requestJson(serverPath('api', 'v2', 'mailboxes'), { method: 'DELETE' });
}

/**
 * @param {{ prefix?: string, limit?: number, signal?: AbortSignal }} [page]
 * @returns {Promise<MailboxPage>}
 */
export function mailboxes({ prefix, limit, signal } = {}) {
  return requestJson(serverPath('api', 'v2', 'mailboxes') + parameters({ prefix, limit }), { signal });
}

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
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function requestJson(path, options) {
  const response = await request(path, options);
  return content(response, 'json');
}

/**
 * Reads the body of a response. The connection can break, and a proxy can respond with something else.
 * @param {Response} response
 * @param {'json' | 'text'} format
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
  const response = await fetch(path, options).catch((error) => {
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
 * @param {unknown} value
 * @returns {RequestInit}
 */
function json(value) {
  return { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) };
}
