// What the server is asked, and what it says when it cannot.

/** @import { Code, Found, Link, Message, MailboxPage, Server, SessionPage, Status, Summary, Transcript, Vars } from '../types.js' */

import * as connection from './connection.js';
import * as login from './session.js';
import { below, parameters } from './paths.js';

/** A request that the server refused, or that did not reach it. */
export class ApiError extends Error {
  /**
   * @param {number} status The HTTP status; 0 when there was no answer.
   * @param {string} message A sentence for people.
   * @param {number | null} [position] How many characters of a query stand before what is wrong with it.
   */
  constructor(status, message, position = null) {
    super(message);
    this.status = status;
    this.position = position;
  }
}

/**
 * A part of a mailbox's listing, oldest first: with `limit` the newest ones, of those older than `before`.
 * @param {string} mailbox
 * @param {{ limit?: number, before?: string, signal?: AbortSignal }} [page]
 * @returns {Promise<Summary[]>}
 */
export function list(mailbox, { limit, before, signal } = {}) {
  return ask(below('api', 'v1', 'mailbox', mailbox) + parameters({ limit, before }), { signal });
}

/**
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Message>}
 */
export function message(mailbox, id, signal) {
  return ask(below('api', 'v2', 'mailbox', mailbox, id), { signal });
}

/**
 * The source of a message as text; bytes that are no UTF-8 are replaced, so this is to be read, not to be kept.
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function source(mailbox, id, signal) {
  const response = await answered(below('api', 'v1', 'mailbox', mailbox, id, 'source'), { signal });
  return content(response, 'text');
}

/**
 * What may be one-time codes in a message, the likeliest first.
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Code[]>}
 */
export async function codes(mailbox, id, signal) {
  return (await ask(below('api', 'v2', 'mailbox', mailbox, id, 'codes'), { signal })).codes;
}

/**
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Link[]>}
 */
export async function links(mailbox, id, signal) {
  return (await ask(below('api', 'v2', 'mailbox', mailbox, id, 'links'), { signal })).links;
}

/**
 * What was said when a message came.
 * @param {string} mailbox
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Transcript>}
 */
export function transcript(mailbox, id, signal) {
  return ask(below('api', 'v2', 'mailbox', mailbox, id, 'transcript'), { signal });
}

/**
 * Looks for messages, the newest first.
 * @param {string} query
 * @param {{ mailbox?: string | null, before?: string, signal?: AbortSignal }} [where]
 * @returns {Promise<Found>}
 */
export function search(query, { mailbox, before, signal } = {}) {
  return ask(below('api', 'v2', 'search') + parameters({ q: query, mailbox, before }), { signal });
}

/**
 * Sessions of SMTP, the latest first.
 * @param {{ refused?: boolean, before?: string, signal?: AbortSignal }} [page]
 * @returns {Promise<SessionPage>}
 */
export function sessions({ refused, before, signal } = {}) {
  return ask(below('api', 'v2', 'sessions') + parameters({ refused: refused && 'true', before }), { signal });
}

/**
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<Transcript>}
 */
export function session(id, signal) {
  return ask(below('api', 'v2', 'sessions', id), { signal });
}

/**
 * Puts a mail into a mailbox. What is told is where it is now, which may be nowhere.
 * @param {string} mailbox
 * @param {{ from: string, subject: string, text: string }} mail
 * @returns {Promise<{ messages: Summary[] }>}
 */
export function send(mailbox, mail) {
  return ask(below('api', 'v2', 'mailbox', mailbox), json(mail));
}

/**
 * How many attachments these messages have; those that are gone are left out.
 * @param {string} mailbox
 * @param {string[]} ids At most 200.
 * @param {AbortSignal} [signal]
 * @returns {Promise<Record<string, number>>}
 */
export function attachmentCounts(mailbox, ids, signal) {
  return ask(below('api', 'v2', 'mailbox', mailbox, 'attachments') + parameters({ ids: ids.join(',') }), { signal });
}

/** How many messages one request may be about. */
export const MOST_IDS = 20_000;

/**
 * Marks messages as read, or as unread; those that are gone are left out.
 * @param {string} mailbox
 * @param {string[]} ids
 * @param {boolean} seen
 * @returns {Promise<{ marked: number }>}
 */
export function markAll(mailbox, ids, seen) {
  return ask(below('api', 'v2', 'mailbox', mailbox, 'mark'), json({ ids, seen }));
}

/**
 * Deletes messages. Those that are gone already are as good as deleted.
 * @param {string} mailbox
 * @param {string[]} ids
 * @param {{ keepalive?: boolean }} [how] Whether the request outlives the page, for which it may have 64 KB.
 * @returns {Promise<{ deleted: number }>}
 */
export function removeAll(mailbox, ids, { keepalive = false } = {}) {
  return ask(below('api', 'v2', 'mailbox', mailbox, 'delete'), { ...json({ ids }), keepalive });
}

/** @param {string} mailbox */
export function purge(mailbox) {
  return ask(below('api', 'v1', 'mailbox', mailbox), { method: 'DELETE' });
}

/**
 * Deletes all mail, in all mailboxes.
 * @returns {Promise<{ deleted: number }>}
 */
export function purgeAll() {
  return ask(below('api', 'v2', 'mailboxes'), { method: 'DELETE' });
}

/**
 * @param {{ prefix?: string, limit?: number, signal?: AbortSignal }} [page]
 * @returns {Promise<MailboxPage>}
 */
export function mailboxes({ prefix, limit, signal } = {}) {
  return ask(below('api', 'v2', 'mailboxes') + parameters({ prefix, limit }), { signal });
}

/** @type {Promise<Server> | null} */
let server = null;

/** Says that the server may have been started anew, perhaps with another configuration. */
export function restarted() {
  server = null;
}
connection.changes.addEventListener('change', restarted);

/**
 * What there is to know about the server; asked once for as long as it runs.
 * @returns {Promise<Server>}
 */
export function about() {
  if (server) return server;
  const asked = ask(below('api', 'v2', 'server'));
  asked.catch(() => server === asked && restarted());
  return (server = asked);
}

/**
 * @param {AbortSignal} [signal]
 * @returns {Promise<Status>}
 */
export const status = (signal) => ask(below('serve', 'status'), { signal });

/**
 * The counters, and what the server's own clock says, which may differ from ours.
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ vars: Vars, now: number }>}
 */
export async function vars(signal) {
  const response = await answered(below('debug', 'vars'), { signal });
  return { vars: await content(response, 'json'), now: Date.parse(response.headers.get('Date') ?? '') || Date.now() };
}

/** The operator's greeting, as markup. */
export async function greeting() {
  const response = await answered(below('serve', 'greeting'));
  return content(response, 'text');
}

/**
 * Whether an error only says that nobody waits for the answer any more.
 * @param {unknown} error
 */
export const wasAborted = (error) => error instanceof DOMException && error.name === 'AbortError';

/**
 * A sentence about an error, for people.
 * @param {unknown} error
 */
export const sentence = (error) => (error instanceof Error ? error.message : String(error));

/**
 * @param {string} path
 * @param {RequestInit} [how]
 */
async function ask(path, how) {
  const response = await answered(path, how);
  return content(response, 'json');
}

/**
 * What an answer holds. It may be cut off on the way, or be somebody else's.
 * @param {Response} response
 * @param {'json' | 'text'} form
 */
async function content(response, form) {
  try {
    return await response[form]();
  } catch (error) {
    if (wasAborted(error)) throw error;
    if (error instanceof SyntaxError) throw new ApiError(response.status, 'The answer cannot be understood. Is there a proxy that answers in the place of the server?');
    throw new ApiError(0, 'The answer of the server was cut off on the way.');
  }
}

/**
 * @param {string} path
 * @param {RequestInit} [how]
 */
async function answered(path, how) {
  const response = await fetch(path, how).catch((error) => {
    if (wasAborted(error)) throw error;
    throw new ApiError(0, 'The server does not answer. Is it still running?');
  });
  if (response.ok) return response;
  if (response.status === 401) login.ask();
  const problem = await response.json().catch(() => ({}));
  const said = typeof problem.detail === 'string' ? problem.detail : problem.title;
  throw new ApiError(response.status, said || `The server answered ${response.status} ${response.statusText}.`, typeof problem.position === 'number' ? problem.position : null);
}

/**
 * @param {unknown} value
 * @returns {RequestInit}
 */
function json(value) {
  return { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(value) };
}
