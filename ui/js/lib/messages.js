// The messages of a scope, newest first: listed page by page, updated by events, and listed again if events may have been missed.
// Does not contain the display.

/** @import { Scope } from './scope.js' */
/** @import { Summary, SummaryPage } from '../types.js' */

import * as api from './api.js';
import * as live from './live.js';
import { compare, Entries, Entry } from './entries.js';
import { ReadState } from './read-state.js';

const FIRST_PAGE_SIZE = 100;
const NEXT_PAGE_SIZE = 500;
/** The number of messages that are listed again after a reconnect. The older ones stay as they are. */
const MAX_RELOADED = 1_000;
/** The maximum number of messages in the list. */
const MAX_MESSAGES = 100_000;
/** Events are collected for this time in milliseconds, and longer in a long list. */
const COLLECT_MS = 40;
const COLLECT_MS_PER_MESSAGE = 1 / 500;
/** A search is repeated this time after new messages arrived, and while the index is incomplete. */
const SEARCH_AGAIN_MS = 500;
const INCOMPLETE_AGAIN_MS = 2_000;
const RETRY_MS = 5_000;
/** The maximum number of requests of one listing. */
const MAX_PAGES = 20;
/** An id before that of every message. */
const OLDEST_ID = '0';

/**
 * Dispatches `change` after every change; `arrived` with the new entries as detail, after the `change`; and `named` when the
 * server's name of the mailbox is known.
 */
export class Messages extends EventTarget {
  /** No messages yet; listed; or the server refuses the mailbox or the query. @type {'waiting' | 'listed' | 'refused'} */
  state = 'waiting';
  /** The error of the listing, or null. @type {Error | null} */
  error = null;
  /** The cursor of the next page, or null. @type {string | null} */
  next = null;
  /** True if the search index does not contain all messages yet. */
  isIndexIncomplete = false;
  /** While paused, new messages are counted but not shown. */
  isPaused = false;
  /** The message that is shown. It stays in search results even if it does not match any more. @type {string | null} */
  shown = null;

  #entries = new Entries();
  #readState = new ReadState(this.#entries, () => this.#changed());
  /** The newest message at the start of the pause; null if the list was not loaded. @type {string | null} */
  #newestBeforePause = null;
  /** The messages that arrived during the pause, with the mailboxes that contain a copy. @type {Map<string, string[]>} */
  #heldBack = new Map();
  /** Messages stored since the current requests started, which they may not reflect. @type {Set<string>} */
  #storedDuringRequest = new Set();
  /** Messages deleted since then: the mailboxes of the deleted copies, or null for all. @type {Map<string, Set<string> | null>} */
  #deletedDuringRequest = new Map();
  /** @type {Map<string, Summary>} */
  #newMessages = new Map();
  /** @type {Set<string>} */
  #deletedIds = new Set();
  /** @type {Record<'events' | 'list', number | undefined>} */
  #timers = { events: undefined, list: undefined };
  /** True while the first pages are loading. */
  #isListing = false;
  /** The number of messages to list after the current listing; 0 if no other listing must follow. */
  #listAgain = 0;
  /** True while the next page is loading. */
  #isLoadingMore = false;
  #stopped = new AbortController();

  /** @param {Scope} scope The mailbox may be given by a name or by an address. */
  constructor(scope) {
    super();
    this.scope = scope;
  }

  /** Starts the listing and the subscription. */
  start() {
    const { signal } = this.#stopped;
    const visibilityChanged = () => document.visibilityState === 'visible' && this.state === 'listed' && this.list();
    document.addEventListener('visibilitychange', visibilityChanged, { signal });
    this.#readState.listen(() => this.scope.mailbox, () => this.#listIn(SEARCH_AGAIN_MS), signal);
    live.subscribe(this.scope.mailbox, {
      // Events before this point are missing, so a listing that started earlier is incomplete.
      connected: () => this.list(),
      stored: (summary) => this.#stored(summary),
      deleted: (mailbox, copy, message) => this.#deleted(mailbox, copy, message),
    }, signal);
    this.list();
  }

  stop() {
    this.#stopped.abort();
    Object.values(this.#timers).forEach(clearTimeout);
  }

  /** The messages, newest first. */
  get entries() {
    return this.#entries.shown;
  }

  get unread() {
    return this.#entries.unread;
  }

  /** The number of messages that arrived during the pause. */
  get waiting() {
    return this.#heldBack.size;
  }

  /** True if `entries` are all messages of the scope. */
  get isComplete() {
    return this.state === 'listed' && this.next === null;
  }

  /** True if the list has the maximum length. */
  get isTruncated() {
    return this.next !== null && this.#entries.size >= MAX_MESSAGES;
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
   * Holds new messages back, or shows those that arrived in the meantime.
   * @param {boolean} isPaused
   */
  pause(isPaused) {
    this.isPaused = isPaused;
    this.#newestBeforePause = isPaused && this.state === 'listed' ? this.#entries.newest ?? OLDEST_ID : null;
    this.#heldBack.clear();
    if (!isPaused && this.state === 'listed') this.list();
    this.#changed();
  }

  /**
   * Lists the messages from the newest on, and applies the differences. If a listing is running, another one follows it.
   * @param {number} [size] The number of messages to list; by default as many as the list has, within a limit.
   */
  async list(size = MAX_RELOADED) {
    if (this.#stopped.signal.aborted) return;
    if (this.#isListing) {
      this.#listAgain = Math.max(this.#listAgain, size);
      return;
    }
    clearTimeout(this.#timers.list);
    this.#timers.list = undefined;
    this.#isListing = true;
    if (!this.#isLoadingMore) this.#forgetEvents();
    try {
      await this.#listPages(Math.min(Math.max(this.#entries.size, FIRST_PAGE_SIZE), size));
    } catch (error) {
      if (!this.#stopped.signal.aborted) this.#failed(error);
    }
    this.#isListing = false;
    if (this.#stopped.signal.aborted) return;
    // From here on, more messages can be loaded.
    this.#changed();
    const again = this.#listAgain;
    this.#listAgain = 0;
    if (again > 0) this.list(again);
  }

  /** Loads the next page, if there is one and no request is running. */
  async loadMore() {
    const before = this.next;
    if (before === null || this.#isListing || this.#isLoadingMore || this.isTruncated) return;
    this.#isLoadingMore = true;
    this.#forgetEvents();
    try {
      const page = await api.list(this.scope, { limit: NEXT_PAGE_SIZE, before, signal: this.#stopped.signal });
      this.#isLoadingMore = false;
      // A listing in the meantime may have shortened the list. After the change, the list requests another page.
      if (this.next !== before) return this.#changed();
      this.error = null;
      this.next = page.next;
      this.#merge(page, before);
    } catch (error) {
      this.#isLoadingMore = false;
      if (!this.#stopped.signal.aborted) this.#failed(error);
    }
  }

  /** Forgets the events of earlier requests. */
  #forgetEvents() {
    this.#storedDuringRequest.clear();
    this.#deletedDuringRequest.clear();
  }

  get #isRequesting() {
    return this.#isListing || this.#isLoadingMore;
  }

  /**
   * Lists the first pages. Some pages of a search can be empty although others follow.
   * @param {number} wanted
   */
  async #listPages(wanted) {
    const { signal } = this.#stopped;
    const newestBefore = this.#entries.newest;
    /** @type {string | null} */
    let before = null;
    for (let listed = 0, pages = 0; listed < wanted && pages < MAX_PAGES; pages += 1) {
      /** @type {SummaryPage} */
      const page = await api.list(this.scope, { limit: Math.min(wanted - listed, NEXT_PAGE_SIZE), before, signal });
      listed += page.messages.length;
      const isLastPage = page.next === null || listed >= wanted || pages === MAX_PAGES - 1;
      // Without an overlap, messages between this page and the older ones may be missing.
      const hasGap = !this.isPaused && isLastPage && page.next !== null && newestBefore !== undefined && compare(page.next, newestBefore) > 0;
      if (hasGap) this.#entries.remove(this.#entries.between(undefined, page.next ?? undefined).map(({ id }) => id));
      // The cursor stays if older messages are loaded.
      const { oldest } = this.#entries;
      const hasOlder = page.next !== null && oldest !== undefined && compare(oldest, page.next) < 0;
      if (!hasOlder) this.next = page.next;
      this.error = null;
      this.#nameMailbox(page.mailbox);
      this.isIndexIncomplete = page.complete === false;
      this.#merge(page, before);
      if (this.isIndexIncomplete) this.#listIn(INCOMPLETE_AGAIN_MS);
      before = page.next;
      if (before === null) return;
    }
  }

  /** @param {unknown} error */
  #failed(error) {
    this.error = error instanceof Error ? error : new Error(String(error));
    if (error instanceof api.ApiError && error.status === 400) {
      this.state = 'refused';
      this.stop();
    } else {
      this.#listIn(RETRY_MS);
    }
    this.#changed();
  }

  /**
   * Lists again later, unless that is scheduled already.
   * @param {number} millis
   * @param {number} [size]
   */
  #listIn(millis, size) {
    this.#timers.list ??= window.setTimeout(() => {
      this.#timers.list = undefined;
      this.list(size);
    }, millis);
  }

  /**
   * Applies a page of the listing, which contains all messages between its cursor `next` and `before`.
   * @param {SummaryPage} page
   * @param {string | null} before
   */
  #merge({ messages, next }, before) {
    const wasListed = this.state !== 'waiting';
    const { newest } = this.#entries;
    const collected = this.#applyEvents();
    const listed = new Map(messages.map((summary) => [summary.id, summary]));
    const covered = this.#entries.between(next ?? undefined, before ?? undefined);
    this.#entries.remove(covered.filter(({ id }) => !listed.has(id) && !this.#storedDuringRequest.has(id) && !this.#isKept(id)).map(({ id }) => id));
    for (const entry of covered) this.#update(entry, listed.get(entry.id));
    const unknown = messages.filter(({ id }) => !this.#entries.has(id)).flatMap((summary) => this.#withoutDeleted(summary) ?? []);
    this.#updateHeldBack(unknown, next, before);
    const added = unknown.filter(({ id }) => !this.#isHeldBack(id)).map((summary) => new Entry(summary));
    this.#entries.add(added);
    if (messages.length > 0 || next === null) this.state = 'listed';
    if (this.isPaused && this.state === 'listed') this.#newestBeforePause ??= this.#entries.newest ?? OLDEST_ID;
    this.#changed();
    const isNew = (/** @type {Entry} */ { id }) => newest === undefined || compare(id, newest) > 0;
    if (wasListed) this.#dispatchArrived(collected.concat(added.filter(isNew)));
  }

  /**
   * Returns a message without the copies that were deleted during the request, or null if none is left.
   * @param {Summary} summary
   */
  #withoutDeleted(summary) {
    const deleted = this.#deletedDuringRequest.get(summary.id);
    if (deleted === undefined) return summary;
    const mailboxes = deleted === null ? [] : summary.mailboxes.filter((name) => !deleted.has(name));
    return mailboxes.length > 0 ? { ...summary, mailboxes } : null;
  }

  /** @param {string} id */
  #isKept(id) {
    return this.scope.query !== '' && id === this.shown;
  }

  /** @param {string} id */
  #isHeldBack(id) {
    return this.#newestBeforePause !== null && compare(id, this.#newestBeforePause) > 0;
  }

  /**
   * Updates the messages that are held back with a page of the listing.
   * @param {Summary[]} unknown The messages of the page that are not in the list.
   * @param {string | null} next
   * @param {string | null} before
   */
  #updateHeldBack(unknown, next, before) {
    const isCovered = (/** @type {string} */ id) => (next === null || compare(id, next) >= 0) && (before === null || compare(id, before) < 0);
    for (const id of this.#heldBack.keys()) if (isCovered(id) && !this.#storedDuringRequest.has(id)) this.#heldBack.delete(id);
    for (const { id, mailboxes } of unknown) if (this.#isHeldBack(id)) this.#heldBack.set(id, mailboxes);
  }

  /**
   * @param {Entry} entry
   * @param {Summary | undefined} summary
   */
  #update(entry, summary) {
    if (!summary) return;
    entry.summary = summary;
    this.#readState.update(entry, summary.seen);
  }

  /** @param {Summary} summary */
  #stored(summary) {
    const { id, mailboxes } = summary;
    if (this.#entries.has(id) || this.#newMessages.has(id) || this.#heldBack.has(id) || !this.#withoutDeleted(summary)) return;
    if (this.scope.query !== '') {
      // Only the server knows whether the message matches. A hidden tab lists again when it is shown.
      if (!document.hidden) this.#listIn(SEARCH_AGAIN_MS, FIRST_PAGE_SIZE);
      return;
    }
    if (this.#isRequesting) this.#storedDuringRequest.add(id);
    if (this.#isHeldBack(id)) this.#heldBack.set(id, mailboxes);
    else this.#newMessages.set(id, summary);
    this.#scheduleEvents();
  }

  /**
   * @param {string} mailbox
   * @param {string} copy
   * @param {string} message
   */
  #deleted(mailbox, copy, message) {
    const id = this.scope.mailbox === null ? message : copy;
    if (this.#isRequesting) this.#recordDeletion(id, mailbox);
    const known = this.#entries.get(id);
    const summary = known?.summary ?? this.#newMessages.get(id);
    const mailboxes = summary?.mailboxes ?? this.#heldBack.get(id) ?? [];
    // In a mailbox, the list contains the copy.
    const remaining = this.scope.mailbox === null ? mailboxes.filter((name) => name !== mailbox) : [];
    if (remaining.length === 0) {
      this.#newMessages.delete(id);
      this.#heldBack.delete(id);
      this.#deletedIds.add(id);
    } else if (known) {
      known.summary = { ...known.summary, mailboxes: remaining };
    } else if (summary) {
      this.#newMessages.set(id, { ...summary, mailboxes: remaining });
    } else {
      this.#heldBack.set(id, remaining);
    }
    this.#scheduleEvents();
  }

  /**
   * Records a deletion that the current requests may not reflect.
   * @param {string} id
   * @param {string} mailbox
   */
  #recordDeletion(id, mailbox) {
    const deleted = this.#deletedDuringRequest.get(id);
    if (this.scope.mailbox !== null) this.#deletedDuringRequest.set(id, null);
    else if (deleted === undefined) this.#deletedDuringRequest.set(id, new Set([mailbox]));
    else deleted?.add(mailbox);
  }

  #scheduleEvents() {
    // The first listing applies earlier events: the server sends the last messages on every connection.
    if (this.state === 'waiting') return;
    this.#timers.events ??= window.setTimeout(() => {
      const arrived = this.#applyEvents();
      this.#changed();
      this.#dispatchArrived(arrived);
    }, COLLECT_MS + this.#entries.size * COLLECT_MS_PER_MESSAGE);
  }

  /** Applies the collected events. Returns the new entries. */
  #applyEvents() {
    clearTimeout(this.#timers.events);
    this.#timers.events = undefined;
    const oldest = this.next === null ? undefined : this.#entries.oldest;
    // The server also sends old messages again. Those that are older than the listed ones would leave a gap.
    const isInList = (/** @type {Summary} */ { id }) => !this.#entries.has(id) && (oldest === undefined || compare(id, oldest) > 0);
    const arrived = [...this.#newMessages.values()].filter(isInList).map((summary) => new Entry(summary)).sort((a, b) => compare(b.id, a.id));
    this.#entries.remove(this.#deletedIds);
    this.#entries.add(arrived);
    if (this.#entries.trim(MAX_MESSAGES)) this.next = this.#entries.oldest ?? null;
    this.#newMessages.clear();
    this.#deletedIds.clear();
    return arrived;
  }

  /**
   * Marks messages as read or unread.
   * @param {Entry[]} entries
   * @param {boolean} seen
   */
  mark(entries, seen) {
    return this.#readState.mark(this.scope.mailbox, entries, seen);
  }

  /**
   * Marks messages by their ids, including a message that is shown but is not in the list.
   * @param {string[]} ids
   * @param {boolean} seen
   */
  async markIds(ids, seen) {
    const others = ids.filter((id) => !this.find(id));
    if (others.length > 0) await api.markAll(this.scope.mailbox, others, seen);
    await this.mark(ids.flatMap((id) => this.find(id) ?? []), seen);
    if (others.length > 0) this.list();
  }

  /**
   * Shows the tags of a message after they were changed on the server.
   * @param {string} id
   * @param {string[]} tags
   */
  showTags(id, tags) {
    const entry = this.#entries.get(id);
    if (entry) entry.summary = { ...entry.summary, tags };
    this.#changed();
  }

  /**
   * Marks all messages of the scope, including those that are not loaded.
   * @param {boolean} seen
   */
  async markEverything(seen) {
    await api.markScope(this.scope, seen);
    this.#readState.markedEverything(seen);
    this.list();
  }

  /** Deletes all messages of the scope, including those that are not loaded. */
  async removeEverything() {
    const ids = this.#entries.shown.map(({ id }) => id);
    await api.removeScope(this.scope);
    this.drop(ids);
    this.list();
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
    if (this.#isRequesting) ids.forEach((id) => this.#deletedDuringRequest.set(id, null));
    this.#entries.hide(ids, false);
    this.#entries.remove(ids);
    this.#changed();
  }

  /**
   * Replaces the name that the user has entered by the server's name of the mailbox.
   * @param {string | undefined} name
   */
  #nameMailbox(name) {
    if (name === undefined || name === this.scope.mailbox) return;
    this.scope = { ...this.scope, mailbox: name };
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
