// All messages of one mailbox, newest first, kept true while somebody looks: listed page by page, then told of arrivals
// and deletions, and listed anew when something may have been missed. What of it is shown, and how, is for others.

/** @import { Summary } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';
import { fold } from './filter.js';

const FIRST_PAGE = 500;
const NEXT_PAGE = 2_000;
/** More than this is kept by the server only. */
const MOST = 100_000;
/** Arrivals and deletions that come together are taken together. */
const GATHER = 40;
const RETRY = 5_000;
/** How many requests go out together. */
const AT_ONCE = 6;
/** A page that was hidden for so long may have slept through something. */
const LONG_HIDDEN = 120_000;

/** A message in the list, and what is known of it beyond the listing. */
export class Entry {
  /** How many attachments it has, once somebody asked. @type {number | undefined} */
  attachments;
  /** @type {string | undefined} */
  #folded;

  /** @param {Summary} summary */
  constructor(summary) {
    this.summary = summary;
    this.id = summary.id;
    this.seen = summary.seen;
  }

  /** Sender, recipients and subject, as the filter compares them. */
  get folded() {
    const { from, to, subject } = this.summary;
    this.#folded ??= fold([from, ...to, subject].join('\n'));
    return this.#folded;
  }
}

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
  /** Whether the reader's browser knows of the mailbox. */
  isRemembered = false;

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
  /** What came and went since the present listing began, and which it need not know. */
  #came = new Set();
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
      if (api.wasAborted(error) || signal.aborted) return;
      this.#failed(error);
    }
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
    this.#came.add(summary.id);
    this.#arriving.set(summary.id, summary);
    this.#soon();
  }

  /** @param {string} id */
  #deleted(id) {
    this.#went.add(id);
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
    }, GATHER);
  }

  /** Takes in what has come and gone. */
  #gather() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const arrived = [...this.#arriving.values()].filter(({ id }) => !this.#byId.has(id)).map((summary) => new Entry(summary)).sort((a, b) => compare(b.id, a.id));
    if (arrived.length === 0 && this.#leaving.size === 0) return [];
    this.#learnName(arrived.at(0)?.summary);
    const merged = interleaved(this.#all.filter(({ id }) => !this.#leaving.has(id)), arrived);
    this.isCut ||= merged.length > MOST;
    this.#replace(merged.slice(0, MOST));
    this.#arriving.clear();
    this.#leaving.clear();
    return arrived;
  }

  /**
   * Tells the server whether messages count as read. Shown at once, and taken back where it fails.
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  async mark(entries, seen) {
    const waiting = entries.filter((entry) => entry.seen !== seen);
    for (const entry of waiting) {
      entry.seen = seen;
      this.#marking.add(entry.id);
    }
    if (waiting.length === 0) return;
    this.#changed();
    /** @type {unknown} */
    let problem = null;
    const worker = async () => {
      for (let entry = waiting.pop(); entry; entry = waiting.pop()) {
        problem = await this.#markOne(entry, seen) ?? problem;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    if (problem === null) return;
    this.#changed();
    throw problem;
  }

  /**
   * @param {Entry} entry
   * @param {boolean} seen
   * @returns {Promise<unknown>} What went wrong, or null.
   */
  async #markOne(entry, seen) {
    try {
      await api.mark(this.mailbox, entry.id, seen);
      return null;
    } catch (error) {
      // One that is gone needs no mark, and leaves by itself.
      if (error instanceof api.ApiError && error.status === 404) return null;
      entry.seen = !seen;
      return error;
    } finally {
      this.#marking.delete(entry.id);
    }
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
    ids.forEach((id) => this.#went.add(id));
    ids.forEach((id) => this.#hidden.delete(id));
    this.#replace(this.#all.filter(({ id }) => !dropped.has(id)));
    this.#changed();
  }

  /** @param {Entry[]} all */
  #replace(all) {
    this.#all = all;
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

/**
 * The order of ids, which are numbers of any length: the older one first.
 * @param {string} a
 * @param {string} b
 */
function compare(a, b) {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Two lists, both newest first, as one.
 * @param {Entry[]} one
 * @param {Entry[]} other
 */
function interleaved(one, other) {
  /** @type {Entry[]} */
  const both = [];
  let taken = 0;
  for (const entry of one) {
    while (taken < other.length && compare(other[taken].id, entry.id) > 0) both.push(other[taken++]);
    both.push(entry);
  }
  return both.concat(other.slice(taken));
}
