// Deleting with a way back: what is deleted vanishes at once, but the server is told only when the reader can no longer
// change their mind, because they let the time pass, went elsewhere or closed the page.

/** @import { Messages } from './messages.js' */
/** @import { Toast } from './talk.js' */

import * as api from './api.js';
import { AT_ONCE, each } from './batch.js';
import { plural } from './format.js';
import { ask, toast } from './talk.js';

/** How long there is a way back. */
const PATIENCE = 6_000;
/** A page that is closed can leave only so many requests behind; more than this is asked about instead. */
const MOST_UNDOABLE = 200;

export class Deletions {
  #messages;
  /** @type {Set<string>} */
  #pending = new Set();
  /** @type {(() => void)[]} */
  #undone = [];
  /** @type {Toast | null} */
  #toast = null;
  /** @type {number | undefined} */
  #timer;

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
    const text = `Deleted ${plural(ids.length + this.#pending.size, 'message')}`;
    if (ids.length + this.#pending.size > MOST_UNDOABLE) {
      const isSure = await ask({ title: `Delete ${plural(ids.length, 'message')}?`, text: 'So many at once cannot be brought back.', yes: 'Delete', danger: true });
      if (!isSure) return;
      this.commit();
      leaving();
      this.#messages.hide(ids);
      await this.#tell(ids, AT_ONCE);
      return;
    }
    ids.forEach((id) => this.#pending.add(id));
    this.#undone.push(undone);
    leaving();
    this.#messages.hide(ids);
    this.#toast?.close();
    this.#toast = toast(text, { action: { label: 'Undo', run: () => this.undo() }, millis: PATIENCE });
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.commit(), PATIENCE);
  }

  /** Makes it final. */
  commit() {
    const ids = this.#end();
    // All at once: the page may be about to end, and nothing would send the rest.
    if (ids.length > 0) this.#tell(ids, ids.length);
  }

  /** Brings back what can be brought back. */
  undo() {
    const undone = this.#undone;
    this.#messages.restore(this.#end());
    undone.forEach((act) => act());
  }

  /** Forgets what was about to be deleted, because something else has removed it. */
  forget() {
    this.#messages.drop(this.#end());
  }

  #end() {
    const ids = [...this.#pending];
    clearTimeout(this.#timer);
    this.#toast?.close();
    this.#toast = null;
    this.#pending = new Set();
    this.#undone = [];
    return ids;
  }

  /**
   * @param {string[]} ids
   * @param {number} atOnce
   */
  async #tell(ids, atOnce) {
    const failed = await each(ids, (id) => api.remove(this.#messages.mailbox, id), atOnce);
    const unharmed = new Set(failed.map(({ item }) => item));
    this.#messages.drop(ids.filter((id) => !unharmed.has(id)));
    if (failed.length === 0) return;
    this.#messages.restore([...unharmed]);
    toast(`${plural(failed.length, 'message')} could not be deleted. ${api.sentence(failed[0].error)}`, { bad: true });
  }
}
