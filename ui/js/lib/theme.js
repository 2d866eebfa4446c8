// Light or dark: as the system has it, unless the reader chose.

import * as prefs from './prefs.js';

/** @typedef {'system' | 'light' | 'dark'} Theme */

const ORDER = /** @type {const} */ (['system', 'light', 'dark']);

/** @returns {Theme} */
export function chosen() {
  return ORDER.find((theme) => theme === prefs.read('theme', 'system')) ?? 'system';
}

/** Chooses the next one; `restante:theme` tells of it. */
export function next() {
  prefs.write('theme', ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
}

/** Makes the page look as chosen. */
export function apply() {
  const theme = chosen();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
