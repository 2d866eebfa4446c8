// Requests of the relay, which sends messages to other mail servers. Those of its queue are in `queue.js`.

/** @import { RelayEntry, RelayEntryPage, RelayTarget, Server } from '../types.js' */

import { about } from './api.js';
import { serverPath } from './paths.js';
import { Queue } from './queue.js';

/**
 * The relay queue. Its `changes` also dispatch `entries`, with `{ message, entries }` as detail, when those of the shown message were
 * loaded again.
 * @type {Queue<RelayTarget, RelayEntry>}
 */
export const queue = new Queue('relay');

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
    return relay.length > 0 ? await queue.targets() : [];
  } catch {
    cached = null;
    return [];
  }
}

/**
 * Returns the newest entries of a message. None are requested without targets.
 * @param {string} message
 * @param {AbortSignal} [signal]
 * @returns {Promise<RelayEntryPage | null>} Null if there are no targets.
 */
export async function entriesOf(message, signal) {
  const all = await targets();
  return all.length === 0 ? null : queue.entries({ message, limit: MAX_OF_MESSAGE, signal });
}

/**
 * Adds a message to the queue.
 * @param {string} id The id of the message, or of a copy.
 * @param {{ target: string, to: string[], 'subject-prefix': string }} release
 * @returns {Promise<RelayEntry>}
 */
export const release = (id, release) => queue.change(serverPath('api', 'v2', 'messages', id, 'release'), release);
