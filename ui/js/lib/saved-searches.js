// The searches that the user has saved in this browser. Every change dispatches `restante:searches` on the window.

/** @import { Scope } from './scope.js' */

import * as prefs from './prefs.js';
import { isSameScope } from './scope.js';

const MAX_SEARCHES = 20;
const MAX_QUERY_LENGTH = 512;
export const MAX_NAME_LENGTH = 64;

/** @typedef {Scope & { name: string }} SavedSearch */

/** Returns the searches in the order of their names. @returns {SavedSearch[]} */
export function all() {
  return prefs.read('searches', /** @type {SavedSearch[]} */ ([])).filter(isValid).slice(0, MAX_SEARCHES).sort((a, b) => a.name.localeCompare(b.name));
}

/** @param {Scope} scope */
export const find = (scope) => all().find((search) => isSameScope(search, scope));

/**
 * Saves a search, or renames it. Throws if that is not possible.
 * @param {string} name
 * @param {Scope} scope
 */
export function save(name, { mailbox, query }) {
  const others = all().filter((search) => !isSameScope(search, { mailbox, query }));
  if (query.length > MAX_QUERY_LENGTH) throw new Error(`A query of more than ${MAX_QUERY_LENGTH} characters cannot be saved.`);
  if (others.length >= MAX_SEARCHES) throw new Error(`At most ${MAX_SEARCHES} searches can be saved. Delete one first.`);
  if (others.some((search) => search.name === name)) throw new Error('Another search has this name.');
  const isSaved = prefs.write('searches', [...others, { name, mailbox, query }]);
  if (!isSaved) throw new Error('The browser has no room for this search. Delete another one first.');
}

/** @param {Scope} scope */
export function remove(scope) {
  prefs.write('searches', all().filter((search) => !isSameScope(search, scope)));
}

/** @param {SavedSearch} search A value of the storage. */
function isValid(search) {
  return typeof search?.name === 'string' && search.name !== '' && search.name.length <= MAX_NAME_LENGTH
    && typeof search.query === 'string' && search.query !== '' && search.query.length <= MAX_QUERY_LENGTH
    && (search.mailbox === null || (typeof search.mailbox === 'string' && search.mailbox.isWellFormed()));
}
