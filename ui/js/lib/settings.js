// The settings of the user, stored in this browser. Every change, also in another tab, dispatches `restante:setting` on the window.
// The theme and the desktop notifications have modules of their own.

import * as prefs from './prefs.js';

/**
 * @typedef {object} Settings
 * @property {'system' | '24' | '12'} clock
 * @property {'local' | 'utc'} timeZone
 * @property {'comfortable' | 'compact'} density
 * @property {'last' | 'html' | 'text' | 'source'} defaultTab The tab in which a message is opened; `last` is the one used last.
 * @property {'ask' | 'always'} remoteContent
 * @property {boolean} openNewest Whether the inbox opens the newest message.
 */

/**
 * The values of each setting, the default first.
 * @type {{ [K in keyof Settings]: readonly Settings[K][] }}
 */
const VALUES = {
  clock: ['system', '24', '12'],
  timeZone: ['local', 'utc'],
  density: ['comfortable', 'compact'],
  defaultTab: ['last', 'html', 'text', 'source'],
  remoteContent: ['ask', 'always'],
  openNewest: [false, true],
};

/** The name of the stored object, and of its event. */
const NAME = 'setting';

let stored = load();

/** @returns {Record<string, unknown>} */
function load() {
  return prefs.read(NAME, /** @type {Record<string, unknown>} */ ({}));
}

/**
 * Returns a setting. A stored value that is not valid is ignored.
 * @template {keyof Settings} K
 * @param {K} name
 * @returns {Settings[K]}
 */
export function get(name) {
  const values = VALUES[name];
  return values.find((value) => Object.hasOwn(stored, name) && value === stored[name]) ?? values[0];
}

/**
 * @template {keyof Settings} K
 * @param {K} name
 * @param {Settings[K]} value
 */
export function set(name, value) {
  const names = /** @type {(keyof Settings)[]} */ (Object.keys(VALUES));
  prefs.write(NAME, { ...Object.fromEntries(names.map((each) => [each, get(each)])), [name]: value });
}

/** Resets all settings of this module to their defaults. */
export function reset() {
  prefs.write(NAME, {});
}

/** Applies the density to the page. The style sheets use the attribute. */
function applyDensity() {
  document.documentElement.dataset.density = get('density');
}

// This listener is the first one, so that all others see the new values.
window.addEventListener(`restante:${NAME}`, () => {
  stored = load();
  applyDensity();
});
applyDensity();
