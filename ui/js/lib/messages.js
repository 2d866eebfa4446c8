// All messages of one mailbox, newest first, kept true while somebody looks: listed page by page, then told of arrivals
// and deletions, and listed anew when something may have been missed. What of it is shown, and how, is for others.

/** @import { Summary } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';
import { each } from './batch.js';
import { compare, Entry, interleaved } from './entries.js';

const FIRST_PAGE = 500;
const NEXT_PAGE = 2_000;
/** More than this is kept by the server only. */
const MOST = 100_000;
/** Arrivals and deletions that come together are taken together, in a long list less often. */
const GATHER = 40;
const GATHER_PER_MESSAGE = 1 / 500;
const RETRY = 5_000;
/** A page that was hidden for so long may have slept through something. */
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

  /** @type {Entry[]} */
  #all = [];
  /** @type {Map<string, Entry>} */
  #byId = new Map();
  /** Those to be deleted, which nobody sees any more. @type {Set<string>} */
  #hidden = new Set();
  /** @type {Entry[] | null} */
  #shown = null;
  /** Those whose `seen` the server is being told. @type {Set<string>} */
  #marking = new Set();
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
      else if (Date.now() - hiddenAt > LONG_HIDDEN) this.list();
    };
    document.addEventListener('visibilitychange', back, { signal });
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
    this.#shown ??= this.#hidden.size > 0 ? this.#all.filter(({ id }) => !this.#hidden.has(id)) : this.#all;
    return this.#shown;
  }

  get unread() {
    return this.entries.reduce((sum, { seen }) => sum + (seen ? 0 : 1), 0);
  }

  /** @param {string} id */
  find(id) {
    return this.#hidden.has(id) ? undefined : this.#byId.get(id);
  }

  /** Asks the server for everything, from the newest on, and takes over what is different. */
  async list() {
    this.#listing?.abort();
    clearTimeout(this.#retry);
    if (this.#end.signal.aborted) return;
    const { signal } = this.#listing = new AbortController();
    this.#came.clear();
    this.#went.clear();
    try {
      await this.#listPages(signal);
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    }
    if (!signal.aborted) this.#listing = null;
  }

  /** @param {AbortSignal} signal */
  async #listPages(signal) {
    let limit = FIRST_PAGE;
    let left = MOST;
    /** @type {string | undefined} */
    let before;
    for (;;) {
      const page = await api.list(this.mailbox, { limit, before, signal });
      if (signal.aborted) return;
      const isLast = page.length < limit;
      left -= page.length;
      this.error = null;
      this.isCut = !isLast && left <= 0;
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
    this.#gather();
    const newest = this.#all.at(0)?.id;
    const wasListed = this.state !== 'waiting';
    const listed = new Map(page.map((summary) => [summary.id, summary]));
    const isCovered = (/** @type {string} */ id) => (before === undefined || compare(id, before) < 0) && (isLast || compare(id, page[0].id) >= 0);
    const kept = this.#all.filter(({ id }) => listed.has(id) || this.#came.has(id) || !isCovered(id));
    for (const entry of kept) {
      if (!this.#marking.has(entry.id)) entry.seen = listed.get(entry.id)?.seen ?? entry.seen;
    }
    const added = page.filter(({ id }) => !this.#byId.has(id) && !this.#went.has(id)).reverse().map((summary) => new Entry(summary));
    this.#replace(interleaved(kept, added));
    if (this.state !== 'complete') this.state = isLast || this.isCut ? 'complete' : 'partial';
    this.#learnName(page.at(-1));
    this.#changed();
    if (wasListed && before === undefined) this.#tellArrived(added.filter(({ id }) => newest === undefined || compare(id, newest) > 0));
  }

  /** @param {Summary} summary */
  #stored(summary) {
    if (this.#byId.has(summary.id) || this.#went.has(summary.id)) return;
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
    }, GATHER + this.#all.length * GATHER_PER_MESSAGE);
  }

  /** Takes in what has come and gone. */
  #gather() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const arrived = [...this.#arriving.values()].filter(({ id }) => !this.#byId.has(id)).map((summary) => new Entry(summary)).sort((a, b) => compare(b.id, a.id));
    if (arrived.length === 0 && this.#leaving.size === 0) return [];
    const merged = interleaved(this.#all.filter(({ id }) => !this.#leaving.has(id)), arrived);
    this.isCut ||= merged.length > MOST;
    this.#replace(merged.slice(0, MOST));
    this.#arriving.clear();
    this.#leaving.clear();
    this.#learnName(arrived.at(0)?.summary);
    return arrived;
  }

  /**
   * Tells the server whether messages count as read. Shown at once, and taken back where it fails.
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  async mark(entries, seen) {
    const changed = entries.filter((entry) => entry.seen !== seen);
    if (changed.length === 0) return;
    for (const entry of changed) {
      entry.seen = seen;
      this.#marking.add(entry.id);
    }
    this.#changed();
    const failed = await each(changed, ({ id }) => api.mark(this.mailbox, id, seen));
    changed.forEach(({ id }) => this.#marking.delete(id));
    // One that is gone needs no mark, and leaves the list by itself.
    const problems = failed.filter(({ error }) => !(error instanceof api.ApiError && error.status === 404));
    if (problems.length === 0) return;
    for (const { item } of problems) item.seen = !seen;
    this.#changed();
    throw problems[0].error;
  }

  /**
   * Makes messages invisible that are going to be deleted.
   * @param {string[]} ids
   */
  hide(ids) {
    ids.forEach((id) => this.#hidden.add(id));
    this.#changed();
  }

  /** @param {string[]} ids */
  restore(ids) {
    ids.forEach((id) => this.#hidden.delete(id));
    this.#changed();
  }

  /**
   * Forgets messages that are deleted.
   * @param {string[]} ids
   */
  drop(ids) {
    const dropped = new Set(ids);
    if (this.#listing) ids.forEach((id) => this.#went.add(id));
    ids.forEach((id) => this.#hidden.delete(id));
    this.#replace(this.#all.filter(({ id }) => !dropped.has(id)));
    this.#changed();
  }

  /** @param {Entry[]} all */
  #replace(all) {
    this.#all = all;
    this.#shown = null;
    this.#byId = new Map(all.map((entry) => [entry.id, entry]));
  }

  /** @param {Summary | undefined} summary */
  #learnName(summary) {
    if (!summary || this.isNamed) return;
    this.isNamed = true;
    this.mailbox = summary.mailbox;
    this.dispatchEvent(new Event('named'));
  }

  #changed() {
    this.#shown = null;
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Entry[]} entries */
  #tellArrived(entries) {
    if (entries.length > 0) this.dispatchEvent(new CustomEvent('arrived', { detail: entries }));
  }
}
