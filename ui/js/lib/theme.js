// The color theme: light, dark, or that of the system.

import * as prefs from './prefs.js';

/** @typedef {'system' | 'light' | 'dark'} Theme */

const ORDER = /** @type {const} */ (['system', 'light', 'dark']);

/** @returns {Theme} */
export function chosen() {
  return ORDER.find((theme) => theme === prefs.read('theme', 'system')) ?? 'system';
}

/**
 * Selects a theme and dispatches `restante:theme`.
 * @param {Theme} theme
 */
export function choose(theme) {
  prefs.write('theme', theme);
}

/** Selects the next theme. */
export function next() {
  choose(ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
}

/** Applies the selected theme to the page. */
export function apply() {
  const theme = chosen();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
