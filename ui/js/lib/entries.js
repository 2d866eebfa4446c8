// The messages of a list, newest first. Lookup, insertion and removal do not scan the list, which can have 100,000 entries.
// Loading and events are in `messages.js`.

/** @import { Summary } from '../types.js' */

/** Up to this number, removing entries one by one is faster than filtering the whole list. */
const MAX_SINGLE_REMOVALS = 64;

/** A message of the list. */
export class Entry {
  /** @param {Summary} summary */
  constructor(summary) {
    this.summary = summary;
    this.id = summary.id;
    this.seen = summary.seen;
    this.millis = Date.parse(summary.received);
  }
}

/**
 * Compares ids, which are decimal numbers of any length: the older one first.
 * @param {string} a
 * @param {string} b
 */
export function compare(a, b) {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Returns the index of a message in a list that is newest first, or -1.
 * @param {readonly Entry[]} list
 * @param {string} id
 */
export function indexOfEntry(list, id) {
  const index = firstNotAfter(list, id);
  return list[index]?.id === id ? index : -1;
}

export class Entries {
  /** @type {Entry[]} */
  #all = [];
  /** @type {Map<string, Entry>} */
  #byId = new Map();
  /** Messages that will be deleted. They are not shown. @type {Set<string>} */
  #hidden = new Set();
  /** @type {Entry[] | null} */
  #shown = null;
  #unread = 0;

  /** The number of messages, including hidden ones. */
  get size() {
    return this.#all.length;
  }

  get newest() {
    return this.#all.at(0)?.id;
  }

  get oldest() {
    return this.#all.at(-1)?.id;
  }

  /** The messages that are not hidden. Every change creates a new array, so an array never changes after it was returned. */
  get shown() {
    this.#shown ??= this.#hidden.size > 0 ? this.#all.filter(({ id }) => !this.#hidden.has(id)) : this.#all;
    return this.#shown;
  }

  /** The number of unread messages that are not hidden. */
  get unread() {
    return this.#unread - [...this.#hidden].filter((id) => this.#byId.get(id)?.seen === false).length;
  }

  /** @param {string} id */
  has(id) {
    return this.#byId.has(id);
  }

  /**
   * Returns a message, even if it is hidden.
   * @param {string} id
   */
  get(id) {
    return this.#byId.get(id);
  }

  /** @param {string} id */
  isHidden(id) {
    return this.#hidden.has(id);
  }

  /** @param {string} id */
  find(id) {
    return this.#hidden.has(id) ? undefined : this.#byId.get(id);
  }

  /**
   * Returns the messages from `oldest` (inclusive) to `before` (exclusive).
   * @param {string | undefined} oldest
   * @param {string | undefined} before
   */
  between(oldest, before) {
    const first = before === undefined ? 0 : firstNotAfter(this.#all, before);
    const start = this.#all[first]?.id === before ? first + 1 : first;
    const last = oldest === undefined ? this.#all.length : firstNotAfter(this.#all, oldest);
    return this.#all.slice(start, this.#all[last]?.id === oldest ? last + 1 : last);
  }

  /** @param {Entry[]} added Newest first; none of them is in the list. */
  add(added) {
    if (added.length === 0) return;
    for (const entry of added) {
      this.#byId.set(entry.id, entry);
      if (!entry.seen) this.#unread += 1;
    }
    this.#replace(merged(this.#all, added));
  }

  /** @param {Iterable<string>} ids */
  remove(ids) {
    const gone = new Set([...ids].filter((id) => this.#byId.has(id)));
    if (gone.size === 0) return;
    for (const id of gone) {
      if (this.#byId.get(id)?.seen === false) this.#unread -= 1;
      this.#byId.delete(id);
      this.#hidden.delete(id);
    }
    this.#replace(without(this.#all, gone));
  }

  /**
   * Removes the oldest messages above a limit. Returns whether there were any.
   * @param {number} limit
   */
  trim(limit) {
    const isMore = this.#all.length > limit;
    if (isMore) this.remove(this.#all.slice(limit).map(({ id }) => id));
    return isMore;
  }

  /**
   * @param {Entry} entry
   * @param {boolean} seen
   */
  mark(entry, seen) {
    if (entry.seen === seen) return;
    entry.seen = seen;
    if (this.#byId.get(entry.id) === entry) this.#unread += seen ? -1 : 1;
  }

  /**
   * Hides messages, or shows them again.
   * @param {string[]} ids
   * @param {boolean} isHidden
   */
  hide(ids, isHidden) {
    for (const id of ids) {
      if (isHidden) this.#hidden.add(id);
      else this.#hidden.delete(id);
    }
    this.#shown = null;
  }

  /** @param {Entry[]} all */
  #replace(all) {
    this.#all = all;
    this.#shown = null;
  }
}

/**
 * Returns the first index of a list, newest first, whose message is not newer than `id`.
 * @param {readonly Entry[]} list
 * @param {string} id
 */
function firstNotAfter(list, id) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(list[middle].id, id) > 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Merges two lists that are newest first.
 * @param {Entry[]} list
 * @param {Entry[]} added
 */
function merged(list, added) {
  if (list.length === 0) return added;
  // The usual cases: new messages go to the front, the next page of a listing to the end.
  if (compare(added[added.length - 1].id, list[0].id) > 0) return added.concat(list);
  if (compare(added[0].id, list[list.length - 1].id) < 0) return list.concat(added);
  /** @type {Entry[]} */
  const both = [];
  let taken = 0;
  for (const entry of list) {
    while (taken < added.length && compare(added[taken].id, entry.id) > 0) both.push(added[taken++]);
    both.push(entry);
  }
  return both.concat(added.slice(taken));
}

/**
 * Returns a list without the given messages.
 * @param {Entry[]} list
 * @param {Set<string>} gone
 */
function without(list, gone) {
  if (gone.size > MAX_SINGLE_REMOVALS) return list.filter(({ id }) => !gone.has(id));
  const rest = list.slice();
  for (const id of gone) rest.splice(indexOfEntry(rest, id), 1);
  return rest;
}
