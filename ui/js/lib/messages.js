// All messages of one mailbox, newest first, kept true while somebody looks: listed page by page, then told of arrivals
// and deletions, and listed anew when something may have been missed. What of it is shown, and how, is for others.

/** @import { Summary } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';
import { compare, Entries, Entry } from './entries.js';
import { Marks } from './marks.js';

const FIRST_PAGE = 500;
const NEXT_PAGE = 2_000;
/** More than this is kept by the server only. */
const MOST = 100_000;
/** Arrivals and deletions that come together are taken together, in a long list less often. */
const GATHER = 40;
const GATHER_PER_MESSAGE = 1 / 500;
const RETRY = 5_000;
/** A page that was hidden for so long may have slept through something; before that, the newest ones are worth a look. */
const LONG_HIDDEN = 120_000;

/**
 * Tells of itself by events: `change` whenever something is different; `arrived` with the new entries as detail, after
 * the `change`; `named` when the server's own name for the mailbox is known.
 */
export class Messages extends EventTarget {
  /** Nothing yet, the newest ones, all of them; or the server says that there is no such mailbox. @type {'waiting' | 'partial' | 'complete' | 'refused'} */
  state = 'waiting';
  /** Why the listing does not come, while it does not. @type {Error | null} */
  error = null;
  /** Whether there are more than are kept here. */
  isCut = false;

  #entries = new Entries();
  #marks = new Marks(this.#entries, () => this.#changed());
  /** What came and went since the listing under way began, which need not know of it. @type {Set<string>} */
  #came = new Set();
  /** @type {Set<string>} */
  #went = new Set();
  /** @type {Map<string, Summary>} */
  #arriving = new Map();
  /** @type {Set<string>} */
  #leaving = new Set();
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #retry;
  /** @type {AbortController | null} */
  #listing = null;
  #end = new AbortController();

  /** @param {string} mailbox By any name that the server understands. */
  constructor(mailbox) {
    super();
    this.mailbox = mailbox;
    this.isNamed = false;
  }

  /** Begins to list and to listen. */
  start() {
    const signal = this.#end.signal;
    let hiddenAt = Date.now();
    const back = () => {
      if (document.visibilityState === 'hidden') hiddenAt = Date.now();
      else this.#lookAgain(Date.now() - hiddenAt > LONG_HIDDEN);
    };
    document.addEventListener('visibilitychange', back, { signal });
    this.#marks.listen(() => this.mailbox, signal);
    this.list();
    live.listen(this.mailbox, {
      // What happened before this was told to nobody, so a listing that began earlier is worth nothing.
      begun: () => this.list(),
      stored: (summary) => this.#stored(summary),
      deleted: (_, id) => this.#deleted(id),
    }, signal);
  }

  stop() {
    this.#end.abort();
    this.#listing?.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
  }

  /** The messages, newest first. */
  get entries() {
    return this.#entries.shown;
  }

  get unread() {
    return this.#entries.unread;
  }

  /** Whether `entries` are all that the mailbox holds. */
  get isWhole() {
    return this.state === 'complete' && !this.isCut;
  }

  /** @param {string} id */
  find(id) {
    return this.#entries.find(id);
  }

  /** @param {string} id */
  isHidden(id) {
    return this.#entries.isHidden(id);
  }

  /**
   * Asks the server for everything, from the newest on, and takes over what is different.
   * @param {number} [most] Of the newest, how many to ask for.
   */
  async list(most = MOST) {
    this.#listing?.abort();
    clearTimeout(this.#retry);
    if (this.#end.signal.aborted) return;
    const { signal } = this.#listing = new AbortController();
    this.#came.clear();
    this.#went.clear();
    try {
      await this.#listPages(most, signal);
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    }
    if (!signal.aborted) this.#listing = null;
  }

  /** @param {boolean} isLong Whether it is long since anybody looked. */
  #lookAgain(isLong) {
    if (isLong) this.list();
    else if (!this.#listing && this.state === 'complete') this.list(FIRST_PAGE);
  }

  /**
   * @param {number} most
   * @param {AbortSignal} signal
   */
  async #listPages(most, signal) {
    let limit = Math.min(FIRST_PAGE, most);
    let left = most;
    /** @type {string | undefined} */
    let before;
    for (;;) {
      const page = await api.list(this.mailbox, { limit, before, signal });
      if (signal.aborted) return;
      const isLast = page.length < limit;
      left -= page.length;
      this.error = null;
      if (isLast || most === MOST) this.isCut = !isLast && left <= 0;
      this.#merge(page, before, isLast);
      if (isLast || left <= 0) return;
      before = page[0].id;
      limit = Math.min(NEXT_PAGE, left);
    }
  }

  /** @param {unknown} error */
  #failed(error) {
    this.error = error instanceof Error ? error : new Error(String(error));
    if (error instanceof api.ApiError && error.status === 400) {
      this.state = 'refused';
      this.stop();
    } else {
      clearTimeout(this.#retry);
      this.#retry = window.setTimeout(() => this.list(), RETRY);
    }
    this.#changed();
  }

  /**
   * Takes over a part of the listing, which is all that there is between its oldest message and `before`.
   * @param {Summary[]} page Oldest first.
   * @param {string | undefined} before
   * @param {boolean} isLast
   */
  #merge(page, before, isLast) {
    const wasListed = this.state !== 'waiting';
    const { newest } = this.#entries;
    const gathered = this.#gather();
    const listed = new Map(page.map((summary) => [summary.id, summary]));
    const covered = this.#entries.between(isLast ? undefined : page[0].id, before);
    this.#entries.remove(covered.filter(({ id }) => !listed.has(id) && !this.#came.has(id)).map(({ id }) => id));
    for (const entry of covered) this.#marks.learn(entry, listed.get(entry.id)?.seen ?? entry.seen);
    const added = page.filter(({ id }) => !this.#entries.has(id) && !this.#went.has(id)).reverse().map((summary) => new Entry(summary));
    this.#entries.add(added);
    if (this.state !== 'complete') this.state = isLast || this.isCut ? 'complete' : 'partial';
    this.#learnName(page.at(-1));
    this.#changed();
    const isNew = (/** @type {Entry} */ { id }) => newest === undefined || compare(id, newest) > 0;
    if (wasListed) this.#tellArrived(gathered.concat(added.filter(isNew)));
  }

  /** @param {Summary} summary */
  #stored(summary) {
    if (this.#entries.has(summary.id) || this.#went.has(summary.id)) return;
    if (this.#listing) this.#came.add(summary.id);
    this.#arriving.set(summary.id, summary);
    this.#soon();
  }

  /** @param {string} id */
  #deleted(id) {
    if (this.#listing) this.#went.add(id);
    this.#arriving.delete(id);
    this.#leaving.add(id);
    this.#soon();
  }

  #soon() {
    this.#timer ??= window.setTimeout(() => {
      const wasListed = this.state !== 'waiting';
      const arrived = this.#gather();
      this.#changed();
      // Before the first listing these are no news: the last messages are told once more to everybody who comes.
      if (wasListed) this.#tellArrived(arrived);
    }, GATHER + this.#entries.size * GATHER_PER_MESSAGE);
  }

  /** Takes in what has come and gone. */
  #gather() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const arrived = [...this.#arriving.values()].filter(({ id }) => !this.#entries.has(id)).map((summary) => new Entry(summary)).sort((a, b) => compare(b.id, a.id));
    this.#entries.remove(this.#leaving);
    this.#entries.add(arrived);
    this.isCut = this.#entries.trim(MOST) || this.isCut;
    this.#arriving.clear();
    this.#leaving.clear();
    this.#learnName(arrived.at(0)?.summary);
    return arrived;
  }

  /**
   * Marks messages as read, or as unread.
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  mark(entries, seen) {
    return this.#marks.mark(this.mailbox, entries, seen);
  }

  /**
   * Makes messages invisible that are going to be deleted.
   * @param {string[]} ids
   */
  hide(ids) {
    this.#entries.hide(ids, true);
    this.#changed();
  }

  /** @param {string[]} ids */
  restore(ids) {
    this.#entries.hide(ids, false);
    this.#changed();
  }

  /**
   * Forgets messages that are deleted.
   * @param {string[]} ids
   */
  drop(ids) {
    if (this.#listing) ids.forEach((id) => this.#went.add(id));
    this.#entries.hide(ids, false);
    this.#entries.remove(ids);
    this.#changed();
  }

  /** @param {Summary | undefined} summary */
  #learnName(summary) {
    if (!summary || this.isNamed) return;
    this.isNamed = true;
    this.mailbox = summary.mailbox;
    this.dispatchEvent(new Event('named'));
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Entry[]} entries */
  #tellArrived(entries) {
    const detail = entries.sort((a, b) => compare(b.id, a.id));
    if (detail.length > 0) this.dispatchEvent(new CustomEvent('arrived', { detail }));
  }
}
