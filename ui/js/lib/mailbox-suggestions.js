// Suggestions of mailbox names: those that were opened recently, then those that contain messages.

/** @import { Mailbox } from '../types.js' */
/** @import { Suggestion } from './combobox.js' */

import * as api from './api.js';
import * as prefs from './prefs.js';
import { address, count, plural } from './format.js';

const MAX_SUGGESTIONS = 10;
const MAX_RECENT = 5;

/**
 * Yields the suggestions for the start of a name: first those that are known at once, then all.
 * @param {string} text
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Suggestion[], void>}
 */
export async function* suggestMailboxes(text, signal) {
  const prefix = address(text).address;
  const recent = prefs.recent().filter((name) => name.toLowerCase().startsWith(prefix.toLowerCase())).slice(0, MAX_RECENT);
  yield combine(recent, []);
  const server = await api.about();
  // If the monitor is disabled, the names of all mailboxes are not shown.
  if (!server['monitor-visible']) return;
  const { mailboxes } = await api.mailboxes({ prefix, limit: MAX_SUGGESTIONS, signal });
  yield combine(recent, mailboxes);
}

/**
 * @param {string[]} recent
 * @param {Mailbox[]} mailboxes
 * @returns {Suggestion[]}
 */
function combine(recent, mailboxes) {
  const notes = new Map(recent.map((name) => [name, 'recent']));
  for (const { name, messages, unseen } of mailboxes) {
    notes.set(name, unseen > 0 ? `${count(unseen)} unread` : plural(messages, 'message'));
  }
  return [...notes].slice(0, MAX_SUGGESTIONS).map(([value, note]) => ({ value, note }));
}
