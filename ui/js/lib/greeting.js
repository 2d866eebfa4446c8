// The operator's greeting: the only text that is inserted as HTML. It comes from a file that the operator has named in the
// configuration, never from a message. If that file contains a script, the page's policy blocks inline scripts, event handlers in
// attributes and `javascript:` links.

import * as api from './api.js';

/** @typedef {{ createHTML(text: string): string }} Policy */

// Browsers without Trusted Types use the text as it is. A policy can be created only once, so it is created here.
/** @type {Policy} */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy('greeting', { createHTML: (/** @type {string} */ text) => text })
  ?? { createHTML: (text) => text };

/** The last greeting, shown at once when the user returns to the page. */
let last = '';

/**
 * Shows the greeting in an element: first the cached one, then the current one. The element stays hidden if there is none or the
 * request fails.
 * @param {HTMLElement} element
 */
export async function showGreeting(element) {
  if (last) show(element, last);
  const text = await api.greeting().catch(() => last);
  if (text !== last || element.hidden) show(element, text);
  last = text;
}

/**
 * @param {HTMLElement} element
 * @param {string} text
 */
function show(element, text) {
  element.innerHTML = policy.createHTML(text);
  element.hidden = text.trim() === '';
}
