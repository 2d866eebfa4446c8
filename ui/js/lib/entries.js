// The messages of a mailbox in their order, newest first: found, added and taken away without going through all of them,
// which may be a hundred thousand. What the server says about them, and who is told, is not decided here.

/** @import { Summary } from '../types.js' */

import { fold } from './filter.js';

/** Up to so many are taken out of a list one by one; for more it is faster to go through all. */
const FEW = 64;

/** A message in the list, and what is known of it beyond the listing. */
export class Entry {
  /** How many attachments it has, once somebody asked. @type {number | undefined} */
  attachments;
  /** @type {string | undefined} */
  #folded;
  /** The last filter, and whether this passes it. @type {{ filter: (folded: string) => boolean, fits: boolean } | undefined} */
  #tested;

  /** @param {Summary} summary */
  constructor(summary) {
    this.summary = summary;
    this.id = summary.id;
    this.seen = summary.seen;
  }

  /**
   * Whether sender, recipients and subject together pass a filter.
   * @param {(folded: string) => boolean} filter
   */
  fits(filter) {
    if (this.#tested?.filter !== filter) {
      const { from, to, subject } = this.summary;
      this.#folded ??= fold([from, ...to, subject].join('\n'));
      this.#tested = { filter, fits: filter(this.#folded) };
    }
    return this.#tested.fits;
  }
}

/**
 * The order of ids, which are numbers of any length: the older one first.
 * @param {string} a
 * @param {string} b
 */
export function compare(a, b) {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Where a message stands in a list that is newest first; -1 if it is not there.
 * @param {readonly Entry[]} list
 * @param {string} id
 */
export function placeOf(list, id) {
  const place = firstNotAfter(list, id);
  return list[place]?.id === id ? place : -1;
}

export class Entries {
  /** @type {Entry[]} */
  #all = [];
  /** @type {Map<string, Entry>} */
  #byId = new Map();
  /** Those to be deleted, which nobody sees any more. @type {Set<string>} */
  #hidden = new Set();
  /** @type {Entry[] | null} */
  #shown = null;
  #unread = 0;

  /** How many there are, also hidden ones. */
  get size() {
    return this.#all.length;
  }

  get newest() {
    return this.#all.at(0)?.id;
  }

  /** Those that are not hidden. Each change makes another list, so that one that was taken stays as it is. */
  get shown() {
    this.#shown ??= this.#hidden.size > 0 ? this.#all.filter(({ id }) => !this.#hidden.has(id)) : this.#all;
    return this.#shown;
  }

  /** How many are unread, of those that are not hidden. */
  get unread() {
    return this.#unread - [...this.#hidden].filter((id) => this.#byId.get(id)?.seen === false).length;
  }

  /** @param {string} id */
  has(id) {
    return this.#byId.has(id);
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
   * All from `oldest` on, itself included, that are older than `before`.
   * @param {string | undefined} oldest
   * @param {string | undefined} before
   */
  between(oldest, before) {
    const first = before === undefined ? 0 : firstNotAfter(this.#all, before);
    const start = this.#all[first]?.id === before ? first + 1 : first;
    const last = oldest === undefined ? this.#all.length : firstNotAfter(this.#all, oldest);
    return this.#all.slice(start, this.#all[last]?.id === oldest ? last + 1 : last);
  }

  /** @param {Entry[]} added Newest first, none of them known. */
  add(added) {
    if (added.length === 0) return;
    for (const entry of added) {
      this.#byId.set(entry.id, entry);
      if (!entry.seen) this.#unread += 1;
    }
    this.#replace(together(this.#all, added));
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
   * Forgets the oldest if there are more than so many; returns whether there were.
   * @param {number} most
   */
  trim(most) {
    const isMore = this.#all.length > most;
    if (isMore) this.remove(this.#all.slice(most).map(({ id }) => id));
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
 * The first place of a list, newest first, that is not newer than this.
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
 * Two lists, both newest first, as one.
 * @param {Entry[]} list
 * @param {Entry[]} added
 */
function together(list, added) {
  if (list.length === 0) return added;
  // New mail, and the next page of a listing: what comes goes on top or below.
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
 * A list without some of its messages.
 * @param {Entry[]} list
 * @param {Set<string>} gone
 */
function without(list, gone) {
  if (gone.size > FEW) return list.filter(({ id }) => !gone.has(id));
  const rest = list.slice();
  for (const id of gone) rest.splice(placeOf(rest, id), 1);
  return rest;
}
