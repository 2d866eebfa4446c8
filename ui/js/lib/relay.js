// Requests of the relay, which sends messages to other mail servers: its targets and the entries of its queue.

/** @import { RelayEntry, RelayEntryPage, RelayState, RelayTarget, Server, TranscriptLine } from '../types.js' */

import { about, json, requestJson } from './api.js';
import { parameters, serverPath } from './paths.js';

/**
 * Dispatches `change` after this page has added or changed entries, and `entries`, with `{ message, entries }` as detail, when those
 * of the shown message were loaded again.
 */
export const changes = new EventTarget();

/** The maximum number of entries that are shown with a message. */
const MAX_OF_MESSAGE = 20;

/** The targets, and the information about the server for which they were loaded. @type {{ server: Promise<Server>, targets: Promise<RelayTarget[]> } | null} */
let cached = null;

/**
 * Returns the targets, or none if the relay is not configured, not permitted or not available. They are cached as long as the
 * information about the server: states and counts in them are not current.
 * @returns {Promise<RelayTarget[]>}
 */
export function targets() {
  const server = about();
  if (cached?.server !== server) cached = { server, targets: load(server) };
  return cached.targets;
}

/**
 * @param {Promise<Server>} server
 * @returns {Promise<RelayTarget[]>}
 */
async function load(server) {
  try {
    const { relay = [] } = await server;
    return relay.length > 0 ? await overview() : [];
  } catch {
    cached = null;
    return [];
  }
}

/**
 * Returns the targets with their current states and the number of their entries.
 * @param {AbortSignal} [signal]
 * @returns {Promise<RelayTarget[]>}
 */
export const overview = async (signal) => (await requestJson(serverPath('api', 'v2', 'relay'), { signal })).targets;

/**
 * Lists entries, newest first.
 * @param {{ message?: string | null, state?: RelayState | null, before?: string | null, limit?: number, signal?: AbortSignal }} filter
 * @returns {Promise<RelayEntryPage>}
 */
export function entries({ message, state, before, limit, signal }) {
  return requestJson(serverPath('api', 'v2', 'relay', 'entries') + parameters({ message, state, before, limit }), { signal });
}

/**
 * Returns the newest entries of a message. None are requested without targets.
 * @param {string} message
 * @param {AbortSignal} [signal]
 * @returns {Promise<RelayEntryPage | null>} Null if there are no targets.
 */
export async function entriesOf(message, signal) {
  const all = await targets();
  return all.length === 0 ? null : entries({ message, limit: MAX_OF_MESSAGE, signal });
}

/**
 * Returns the transcript of the last attempt to send an entry.
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @returns {Promise<TranscriptLine[]>}
 */
export const transcript = async (id, signal) => (await requestJson(serverPath('api', 'v2', 'relay', 'entries', id), { signal })).transcript ?? [];

/**
 * Adds a message to the queue.
 * @param {string} id The id of the message, or of a copy.
 * @param {{ target: string, to: string[] }} release
 * @returns {Promise<RelayEntry>}
 */
export const release = (id, { target, to }) => change(['messages', id, 'release'], { target, to });

/** @typedef {{ ids: string[] } | { all: true }} Selection The entries that are changed. */

/**
 * Makes entries due now. Returns their number.
 * @param {Selection} selection
 * @returns {Promise<number>}
 */
export const retry = async (selection) => (await change(['relay', 'retry'], selection)).retried;

/**
 * Cancels entries that are queued or being sent. Returns their number.
 * @param {Selection} selection
 * @returns {Promise<number>}
 */
export const cancel = async (selection) => (await change(['relay', 'cancel'], selection)).cancelled;

/**
 * @param {string[]} path
 * @param {unknown} body
 */
async function change(path, body) {
  const response = await requestJson(serverPath('api', 'v2', ...path), json('POST', body));
  changes.dispatchEvent(new Event('change'));
  return response;
}

/** @type {readonly RelayState[]} */
const PENDING = ['queued', 'sending'];
/** @type {readonly RelayState[]} */
const RETRYABLE = ['queued', 'failed', 'cancelled'];

/**
 * Returns whether an entry may still change without a request. Only such an entry can be cancelled.
 * @param {RelayEntry} entry
 */
export const isPending = ({ state }) => PENDING.includes(state);

/**
 * Returns whether an entry can be made due now.
 * @param {RelayEntry} entry
 */
export const isRetryable = ({ state }) => RETRYABLE.includes(state);

/**
 * Returns whether any entry of the targets can be cancelled.
 * @param {RelayTarget[]} targets
 */
export const isAnyPending = (targets) => hasEntries(targets, PENDING);

/**
 * Returns whether any entry of the targets can be made due now.
 * @param {RelayTarget[]} targets
 */
export const isAnyRetryable = (targets) => hasEntries(targets, RETRYABLE);

/**
 * Returns whether any entry of the targets is in one of the states.
 * @param {RelayTarget[]} targets
 * @param {readonly RelayState[]} states
 */
const hasEntries = (targets, states) => targets.some(({ entries }) => states.some((state) => entries[state] > 0));
