// Light or dark: as the system has it, unless the reader chose.

import * as prefs from './prefs.js';

/** @typedef {'system' | 'light' | 'dark'} Theme */

const ORDER = /** @type {const} */ (['system', 'light', 'dark']);
const DARK = matchMedia('(prefers-color-scheme: dark)');

/** @returns {Theme} */
export function chosen() {
  return ORDER.find((theme) => theme === prefs.read('theme', 'system')) ?? 'system';
}

/** Chooses the next one. */
export function next() {
  prefs.write('theme', ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
  apply();
}

/** Makes the page look as chosen. */
export function apply() {
  const theme = chosen();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Whether the page is dark now. */
export function isDark() {
  return chosen() === 'dark' || (chosen() === 'system' && DARK.matches);
}
