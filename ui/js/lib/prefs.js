// Preferences in the local storage of the browser: settings, the theme, recent mailboxes, saved searches. A missing storage and foreign
// values are tolerated. Every change, also in another tab, dispatches an event on the window: `restante:theme`,
// `restante:recent` and so on.

import { inbox } from './paths.js';

const PREFIX = 'restante.';
/** The values that belong to the mail that is shown: each project has its own. */
const OF_PROJECT = ['recent', 'searches'];
/** The end of their keys: `/p/shop/`, or nothing outside of a project. */
const PROJECT = /\/p\/[^/]+\/$/u.exec(inbox())?.[0] ?? '';
const MAX_RECENT = 12;
/** Longer values were not written by this module. */
const MAX_VALUE_LENGTH = 16_384;
const MAX_NAME_LENGTH = 512;

/** @param {string} name */
const keyOf = (name) => PREFIX + name + (OF_PROJECT.includes(name) ? PROJECT : '');

/**
 * @template T
 * @param {string} name
 * @param {T} fallback
 * @returns {T}
 */
export function read(name, fallback) {
  try {
    const text = localStorage.getItem(keyOf(name));
    const value = text === null || text.length > MAX_VALUE_LENGTH ? null : JSON.parse(text);
    const same = typeof value === typeof fallback && Array.isArray(value) === Array.isArray(fallback);
    return same && value !== null ? value : fallback;
  } catch {
    return fallback;
  }
}

/**
 * Writes a value. Returns whether it was saved.
 * @param {string} name
 * @param {unknown} value
 */
export function write(name, value) {
  const text = JSON.stringify(value);
  let isSaved = text.length <= MAX_VALUE_LENGTH;
  try {
    if (isSaved) localStorage.setItem(keyOf(name), text);
  } catch {
    // The storage is full or disabled.
    isSaved = false;
  }
  dispatchChange(name);
  return isSaved;
}

window.addEventListener('storage', ({ key, storageArea }) => {
  if (storageArea !== localStorage) return;
  const name = key?.slice(PREFIX.length, PROJECT && key.endsWith(PROJECT) ? -PROJECT.length : undefined) ?? '';
  if (key === keyOf(name)) dispatchChange(name);
  // The whole storage was cleared.
  if (key === null) ['theme', 'recent', 'searches', 'setting', 'notices'].forEach(dispatchChange);
});

/** @param {string} name */
function dispatchChange(name) {
  window.dispatchEvent(new Event(`restante:${name}`));
}

/** Returns the recently opened mailboxes, the last one first. */
export function recent() {
  return read('recent', /** @type {string[]} */ ([])).filter((name) => typeof name === 'string' && name.length <= MAX_NAME_LENGTH && name.isWellFormed()).slice(0, MAX_RECENT);
}

/** @param {string} mailbox */
export function opened(mailbox) {
  write('recent', [mailbox, ...recent().filter((other) => other !== mailbox)].slice(0, MAX_RECENT));
}

/** @param {string} mailbox */
export function forget(mailbox) {
  write('recent', recent().filter((other) => other !== mailbox));
}
