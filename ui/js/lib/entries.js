// A message in the list of a mailbox, and the order in which such messages stand.

/** @import { Summary } from '../types.js' */

import { fold } from './filter.js';

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
 * The order of ids, which are numbers of any length: the older one first.
 * @param {string} a
 * @param {string} b
 */
export function compare(a, b) {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Two lists, both newest first, as one.
 * @param {Entry[]} one
 * @param {Entry[]} other
 */
export function interleaved(one, other) {
  /** @type {Entry[]} */
  const both = [];
  let taken = 0;
  for (const entry of one) {
    while (taken < other.length && compare(other[taken].id, entry.id) > 0) both.push(other[taken++]);
    both.push(entry);
  }
  return both.concat(other.slice(taken));
}
