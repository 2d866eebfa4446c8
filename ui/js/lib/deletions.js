// Deleting with a way back: what is deleted vanishes at once, but the server is told only when the reader can no longer
// change their mind, because they let the time pass, went elsewhere or closed the page. What is too much for that is asked
// about first. All of it concerns the mailbox in which it began, whatever is shown when it ends.

/** @import { Messages } from './messages.js' */
/** @import { Toast } from './talk.js' */

import * as api from './api.js';
import { chunks } from './batch.js';
import { count, plural } from './format.js';
import { ask, toast } from './talk.js';

/** How long there is a way back. */
const PATIENCE = 6_000;
/** A page that is closed can leave one request behind, of 64 KB; more than fits into it is asked about instead. */
export const MOST_UNDOABLE = 2_500;
/** How many are deleted between two words about how far it is. */
const STEP = 5_000;
/** Longer than any of this takes. */
const STAYS = 3_600_000;

export class Deletions {
  #messages;
  /** @type {Set<string>} */
  #pending = new Set();
  /** @type {(() => void)[]} */
  #undone = [];
  /** @type {Toast | null} */
  #toast = null;

  /** @param {Messages} messages */
  constructor(messages) {
    this.#messages = messages;
  }

  /**
   * Deletes messages; those of the last seconds can be brought back together.
   * @param {string[]} ids
   * @param {{ leaving(): void, undone(): void }} then What to do before they are out of sight, and when they are back.
   */
  async begin(ids, { leaving, undone }) {
    if (ids.length > MOST_UNDOABLE) {
      const all = plural(ids.length, 'message');
      const isSure = await ask({ title: `Delete ${all}?`, text: 'So many at once cannot be brought back.', yes: `Delete ${all}`, danger: true });
      if (isSure) await this.#deleteNow(ids, leaving);
      return;
    }
    if (ids.length + this.#pending.size > MOST_UNDOABLE) this.commit();
    ids.forEach((id) => this.#pending.add(id));
    this.#undone.push(undone);
    leaving();
    this.#messages.hide(ids);
    this.#say(`Deleted ${plural(this.#pending.size, 'message')}`, { action: { label: 'Undo', key: 'z', run: () => this.undo() }, millis: PATIENCE, over: () => this.commit() });
  }

  /** Empties the mailbox, if the reader is sure. Returns whether it is empty. */
  async empty() {
    const { mailbox } = this.#messages;
    const all = await this.#howMany();
    const isSure = await ask({ title: `Empty the mailbox ${mailbox}?`, text: `All that is in it, ${all}, is deleted. This cannot be undone.`, yes: `Delete ${all}`, danger: true });
    if (!isSure) return false;
    const ids = this.#messages.entries.map(({ id }) => id);
    try {
      await api.purge(mailbox);
    } catch (error) {
      toast(`The mailbox could not be emptied. ${api.sentence(error)}`, { bad: true });
      return false;
    }
    this.#messages.drop(ids.concat(this.#end()));
    toast(`Deleted ${all}.`);
    return true;
  }

  /** Makes it final. */
  async commit() {
    const ids = this.#end();
    if (ids.length === 0) return;
    try {
      await api.removeAll(this.#messages.mailbox, ids, { keepalive: true });
      this.#messages.drop(ids);
    } catch (error) {
      this.#messages.restore(ids);
      failed(ids.length, error);
    }
  }

  /** Brings back what can be brought back. */
  undo() {
    const undone = this.#undone;
    this.#messages.restore(this.#end());
    undone.forEach((act) => act());
  }

  /**
   * Deletes without a way back. What is gone leaves the list, not before.
   * @param {string[]} ids
   * @param {() => void} leaving
   */
  async #deleteNow(ids, leaving) {
    this.commit();
    leaving();
    let done = 0;
    try {
      for (const some of chunks(ids, STEP)) {
        this.#say(`Deleting: ${count(done)} of ${plural(ids.length, 'message')}…`, { millis: STAYS });
        await api.removeAll(this.#messages.mailbox, some);
        this.#messages.drop(some);
        done += some.length;
      }
      this.#say(`Deleted ${plural(ids.length, 'message')}.`);
    } catch (error) {
      this.#toast?.close();
      failed(ids.length - done, error);
    }
  }

  /** How many the mailbox holds, in words. */
  async #howMany() {
    const { mailbox, isWhole, entries } = this.#messages;
    if (isWhole) return plural(entries.length, 'message');
    const found = await api.mailboxes({ prefix: mailbox, limit: 1 }).then(({ mailboxes }) => mailboxes.at(0), () => undefined);
    return found?.name === mailbox ? plural(found.messages, 'message') : 'all messages';
  }

  /**
   * Says something in place of what was said before.
   * @param {Parameters<typeof toast>} said
   */
  #say(...said) {
    this.#toast?.close();
    this.#toast = toast(...said);
  }

  #end() {
    const ids = [...this.#pending];
    if (ids.length > 0) this.#toast?.close();
    this.#pending = new Set();
    this.#undone = [];
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
