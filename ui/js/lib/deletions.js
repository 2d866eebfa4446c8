// Deleting messages with undo: they are hidden at once, and deleted on the server when the time for undo is over, the user
// navigates away or the page is closed. Larger deletions need a confirmation instead. A deletion always applies to the list
// in which it started, even if another one is shown when it ends.

/** @import { Messages } from './messages.js' */
/** @import { Scope } from './scope.js' */
/** @import { Toast } from './feedback.js' */

import * as api from './api.js';
import { chunks } from './batch.js';
import { count, plural } from './format.js';
import { confirm, toast } from './feedback.js';

/** The time for undo. */
const UNDO_MS = 6_000;
/** More messages need a confirmation: a page that is being closed can send one request of 64 KB only. */
const MAX_UNDOABLE = 2_500;
/** The number of messages per request, and thus per progress message. */
const BATCH_SIZE = 5_000;
/** Longer than any deletion takes. */
const PROGRESS_TOAST_MS = 3_600_000;

export class Deletions {
  #messages;
  /** @type {Set<string>} */
  #pending = new Set();
  /** @type {(() => void)[]} */
  #onUndo = [];
  /** @type {Toast | null} */
  #toast = null;

  /** @param {Messages} messages */
  constructor(messages) {
    this.#messages = messages;
  }

  /**
   * Continues with another list. Deletions stay pending if it has the same kind of ids; otherwise they are committed.
   * @param {Messages} messages
   */
  show(messages) {
    if (messages.scope.mailbox !== this.#messages.scope.mailbox) this.commit();
    this.#messages = messages;
    messages.hide([...this.#pending]);
  }

  /**
   * Deletes messages. Pending deletions are undone together.
   * @param {string[]} ids
   * @param {{ leaving(): void, undone(): void }} callbacks Called before the messages are hidden, and after an undo.
   */
  async start(ids, { leaving, undone }) {
    if (ids.length > MAX_UNDOABLE) {
      const messages = this.#messages;
      const all = plural(ids.length, 'message');
      const isSure = await confirm({ title: `Delete ${all}?`, text: 'This cannot be undone.', action: `Delete ${all}`, danger: true });
      if (isSure) await this.#deleteNow(messages, ids, leaving);
      return;
    }
    if (ids.length + this.#pending.size > MAX_UNDOABLE) this.commit();
    ids.forEach((id) => this.#pending.add(id));
    this.#onUndo.push(undone);
    leaving();
    this.#messages.hide(ids);
    this.#showToast(`Deleted ${plural(this.#pending.size, 'message')}`, { action: { label: 'Undo', key: 'z', run: () => this.undo() }, millis: UNDO_MS, onEnd: () => this.commit() });
  }

  /** Deletes all messages of the scope after a confirmation. Returns whether they were deleted. */
  async deleteEverything() {
    const messages = this.#messages;
    const [all, place] = await Promise.all([countText(messages), describeScope(messages.scope)]);
    // The user may have navigated in the meantime.
    if (messages !== this.#messages) return false;
    const isSure = await confirm({ title: `Delete ${all}?`, text: `${place} This cannot be undone.`, action: `Delete ${all}`, danger: true });
    if (!isSure) return false;
    const pending = this.#takePending();
    try {
      await messages.removeEverything();
      messages.drop(pending);
      toast(`Deleted ${all}.`);
      return true;
    } catch (error) {
      messages.restore(pending);
      toast(`The messages could not be deleted. ${api.sentence(error)}`, { bad: true });
      return false;
    }
  }

  /** Deletes the pending messages on the server. */
  async commit() {
    const ids = this.#takePending();
    const messages = this.#messages;
    if (ids.length === 0) return;
    try {
      await api.removeAll(messages.scope.mailbox, ids, { keepalive: true });
      messages.drop(ids);
    } catch (error) {
      messages.restore(ids);
      failed(ids.length, error);
    }
  }

  /** Restores the pending messages. */
  undo() {
    const callbacks = this.#onUndo;
    this.#messages.restore(this.#takePending());
    callbacks.forEach((callback) => callback());
  }

  /**
   * Deletes messages without undo. Each batch leaves the list after it was deleted.
   * @param {Messages} messages The list in which the deletion started.
   * @param {string[]} ids
   * @param {() => void} leaving
   */
  async #deleteNow(messages, ids, leaving) {
    this.commit();
    leaving();
    let done = 0;
    try {
      for (const batch of chunks(ids, BATCH_SIZE)) {
        this.#showToast(`Deleting: ${count(done)} of ${plural(ids.length, 'message')}…`, { millis: PROGRESS_TOAST_MS });
        await api.removeAll(messages.scope.mailbox, batch);
        messages.drop(batch);
        done += batch.length;
      }
      this.#showToast(`Deleted ${plural(ids.length, 'message')}.`);
    } catch (error) {
      this.#toast?.close();
      failed(ids.length - done, error);
    }
  }

  /**
   * Replaces the current toast.
   * @param {Parameters<typeof toast>} options
   */
  #showToast(...options) {
    this.#toast?.close();
    this.#toast = toast(...options);
  }

  #takePending() {
    const ids = [...this.#pending];
    if (ids.length > 0) this.#toast?.close();
    this.#pending = new Set();
    this.#onUndo = [];
    return ids;
  }
}

/**
 * @param {number} messages
 * @param {unknown} error
 */
function failed(messages, error) {
  toast(`${plural(messages, 'message')} could not be deleted. ${api.sentence(error)}`, { bad: true });
}

/**
 * Returns the number of messages of a list as text. If the list is not complete, the server is asked.
 * @param {Messages} messages
 */
async function countText({ scope: { mailbox, query }, isComplete, entries }) {
  if (isComplete) return plural(entries.length, 'message');
  if (query !== '') return 'all matching messages';
  const found = mailbox === null
    ? await api.usage().then((usage) => usage.messages, () => null)
    : await api.mailboxes({ prefix: mailbox, limit: 1 }).then(({ mailboxes }) => mailboxes.find(({ name }) => name === mailbox)?.messages, () => null);
  return typeof found === 'number' ? plural(found, 'message') : 'all messages';
}

/**
 * Describes where messages are deleted.
 * @param {Scope} scope
 */
async function describeScope({ mailbox, query }) {
  const all = mailbox === null ? await api.usage().then((usage) => `all ${plural(usage.mailboxes, 'mailbox', 'mailboxes')}`, () => 'all mailboxes') : `the mailbox ${mailbox}`;
  return query === '' ? `All messages in ${all} will be deleted.` : `All messages in ${all} that match ${query} will be deleted.`;
}
