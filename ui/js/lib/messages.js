// The messages of one mailbox, newest first: listed page by page, updated by events, and listed again if events may have been
// missed. Does not contain the display.

/** @import { Summary } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';
import { compare, Entries, Entry } from './entries.js';
import { ReadState } from './read-state.js';

const FIRST_PAGE_SIZE = 500;
const NEXT_PAGE_SIZE = 2_000;
/** The maximum number of messages in the list. */
const MAX_MESSAGES = 100_000;
/** Events are collected for this time in milliseconds, and longer in a long list. */
const COLLECT_MS = 40;
const COLLECT_MS_PER_MESSAGE = 1 / 500;
const RETRY_MS = 5_000;
/** A page that was hidden for longer lists all messages again; otherwise only the newest. */
const LONG_HIDDEN_MS = 120_000;

/**
 * Dispatches `change` after every change; `arrived` with the new entries as detail, after the `change`; and `named` when the
 * server's name of the mailbox is known.
 */
export class Messages extends EventTarget {
  /** No messages yet, the newest, all; or the server refuses the name. @type {'waiting' | 'partial' | 'complete' | 'refused'} */
  state = 'waiting';
  /** The error of the listing, or null. @type {Error | null} */
  error = null;
  /** True if the mailbox has more messages than the list may have. */
  isTruncated = false;

  #entries = new Entries();
  #readState = new ReadState(this.#entries, () => this.#changed());
  /** Messages stored and deleted since the current listing started, which it may not reflect. @type {Set<string>} */
  #storedDuringListing = new Set();
  /** @type {Set<string>} */
  #deletedDuringListing = new Set();
  /** @type {Map<string, Summary>} */
  #newMessages = new Map();
  /** @type {Set<string>} */
  #deletedIds = new Set();
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #retry;
  /** @type {AbortController | null} */
  #listing = null;
  #stopped = new AbortController();

  /** @param {string} mailbox The name or an address of the mailbox. */
  constructor(mailbox) {
    super();
    this.mailbox = mailbox;
    this.isNamed = false;
  }

  /** Starts the listing and the subscription. */
  start() {
    const signal = this.#stopped.signal;
    let hiddenAt = Date.now();
    const visibilityChanged = () => {
      if (document.visibilityState === 'hidden') hiddenAt = Date.now();
      else this.#refresh(Date.now() - hiddenAt > LONG_HIDDEN_MS);
    };
    document.addEventListener('visibilitychange', visibilityChanged, { signal });
    this.#readState.listen(() => this.mailbox, signal);
    this.list();
    live.subscribe(this.mailbox, {
      // Events before this point are missing, so a listing that started earlier is incomplete.
      connected: () => this.list(),
      stored: (summary) => this.#stored(summary),
      deleted: (_, id) => this.#deleted(id),
    }, signal);
  }

  stop() {
    this.#stopped.abort();
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

  /** True if `entries` are all messages of the mailbox. */
  get isComplete() {
    return this.state === 'complete' && !this.isTruncated;
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
   * Lists the messages, from the newest on, and applies the differences.
   * @param {number} [limit] The number of newest messages to list.
   */
  async list(limit = MAX_MESSAGES) {
    this.#listing?.abort();
    clearTimeout(this.#retry);
    if (this.#stopped.signal.aborted) return;
    const { signal } = this.#listing = new AbortController();
    this.#storedDuringListing.clear();
    this.#deletedDuringListing.clear();
    try {
      await this.#listPages(limit, signal);
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    }
    if (!signal.aborted) this.#listing = null;
  }

  /** @param {boolean} isLong True if the page was hidden for a long time. */
  #refresh(isLong) {
    if (isLong) this.list();
    else if (!this.#listing && this.state === 'complete') this.list(FIRST_PAGE_SIZE);
  }

  /**
   * @param {number} total
   * @param {AbortSignal} signal
   */
  async #listPages(total, signal) {
    let limit = Math.min(FIRST_PAGE_SIZE, total);
    let left = total;
    /** @type {string | undefined} */
    let before;
    for (;;) {
      const page = await api.list(this.mailbox, { limit, before, signal });
      if (signal.aborted) return;
      const isLast = page.length < limit;
      left -= page.length;
      this.error = null;
      if (isLast || total === MAX_MESSAGES) this.isTruncated = !isLast && left <= 0;
      this.#merge(page, before, isLast);
      if (isLast || left <= 0) return;
      before = page[0].id;
      limit = Math.min(NEXT_PAGE_SIZE, left);
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
      this.#retry = window.setTimeout(() => this.list(), RETRY_MS);
    }
    this.#changed();
  }

  /**
   * Applies a page of the listing, which contains all messages between its oldest message and `before`.
   * @param {Summary[]} page Oldest first.
   * @param {string | undefined} before
   * @param {boolean} isLast
   */
  #merge(page, before, isLast) {
    const wasListed = this.state !== 'waiting';
    const { newest } = this.#entries;
    const collected = this.#applyEvents();
    const listed = new Map(page.map((summary) => [summary.id, summary]));
    const covered = this.#entries.between(isLast ? undefined : page[0].id, before);
    this.#entries.remove(covered.filter(({ id }) => !listed.has(id) && !this.#storedDuringListing.has(id)).map(({ id }) => id));
    for (const entry of covered) this.#readState.update(entry, listed.get(entry.id)?.seen ?? entry.seen);
    const added = page.filter(({ id }) => !this.#entries.has(id) && !this.#deletedDuringListing.has(id)).reverse().map((summary) => new Entry(summary));
    this.#entries.add(added);
    if (this.state !== 'complete') this.state = isLast || this.isTruncated ? 'complete' : 'partial';
    this.#setName(page.at(-1));
    this.#changed();
    const isNew = (/** @type {Entry} */ { id }) => newest === undefined || compare(id, newest) > 0;
    if (wasListed) this.#dispatchArrived(collected.concat(added.filter(isNew)));
  }

  /** @param {Summary} summary */
  #stored(summary) {
    if (this.#entries.has(summary.id) || this.#deletedDuringListing.has(summary.id)) return;
    if (this.#listing) this.#storedDuringListing.add(summary.id);
    this.#newMessages.set(summary.id, summary);
    this.#scheduleEvents();
  }

  /** @param {string} id */
  #deleted(id) {
    if (this.#listing) this.#deletedDuringListing.add(id);
    this.#newMessages.delete(id);
    this.#deletedIds.add(id);
    this.#scheduleEvents();
  }

  #scheduleEvents() {
    this.#timer ??= window.setTimeout(() => {
      const wasListed = this.state !== 'waiting';
      const arrived = this.#applyEvents();
      this.#changed();
      // Messages before the first listing are not new: the server sends the last messages on every connection.
      if (wasListed) this.#dispatchArrived(arrived);
    }, COLLECT_MS + this.#entries.size * COLLECT_MS_PER_MESSAGE);
  }

  /** Applies the collected events. Returns the new entries. */
  #applyEvents() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const arrived = [...this.#newMessages.values()].filter(({ id }) => !this.#entries.has(id)).map((summary) => new Entry(summary)).sort((a, b) => compare(b.id, a.id));
    this.#entries.remove(this.#deletedIds);
    this.#entries.add(arrived);
    this.isTruncated = this.#entries.trim(MAX_MESSAGES) || this.isTruncated;
    this.#newMessages.clear();
    this.#deletedIds.clear();
    this.#setName(arrived.at(0)?.summary);
    return arrived;
  }

  /**
   * Marks messages as read or unread.
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  mark(entries, seen) {
    return this.#readState.mark(this.mailbox, entries, seen);
  }

  /**
   * Hides messages that will be deleted.
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
   * Removes deleted messages from the list.
   * @param {string[]} ids
   */
  drop(ids) {
    if (this.#listing) ids.forEach((id) => this.#deletedDuringListing.add(id));
    this.#entries.hide(ids, false);
    this.#entries.remove(ids);
    this.#changed();
  }

  /** @param {Summary | undefined} summary */
  #setName(summary) {
    if (!summary || this.isNamed) return;
    this.isNamed = true;
    this.mailbox = summary.mailbox;
    this.dispatchEvent(new Event('named'));
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }

  /** @param {Entry[]} entries */
  #dispatchArrived(entries) {
    const detail = entries.sort((a, b) => compare(b.id, a.id));
    if (detail.length > 0) this.dispatchEvent(new CustomEvent('arrived', { detail }));
  }
}
