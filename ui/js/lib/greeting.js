// The operator's greeting: the one place where a text becomes markup. It is safe because of whose text it is: a file
// that the operator of the server named in its configuration, never anything of a mail. And should that file hold a
// script after all, the page's policy runs no inline script, no handler in an attribute and no `javascript:` link.

import * as api from './api.js';

/** @typedef {{ createHTML(text: string): string }} Policy */

// Browsers without Trusted Types take the text as it is. A policy can be made once only, hence here.
/** @type {Policy} */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy('greeting', { createHTML: (/** @type {string} */ text) => text })
  ?? { createHTML: (text) => text };

/** What was shown last, so that coming back to the page does not wait for it. */
let last = '';

/**
 * Puts the greeting into an element: at once the one that is known, then the current one. Without one, or when it
 * cannot be asked, the element stays hidden: nobody misses it.
 * @param {HTMLElement} place
 */
export async function greet(place) {
  if (last) show(place, last);
  const text = await api.greeting().catch(() => last);
  if (text !== last || place.hidden) show(place, text);
  last = text;
}

/**
 * @param {HTMLElement} place
 * @param {string} text
 */
function show(place, text) {
  place.innerHTML = policy.createHTML(text);
  place.hidden = text.trim() === '';
}
